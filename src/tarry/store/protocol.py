"""The seam under which a store lives: tables in, tables out.

A store decides nothing. It begins a transaction, loads what a batch of commands needs, saves the rows that
the core decided, and commits. All rules are therefore tested without a database, and all stores behave alike
by construction; `tarry.testing.conformance` is the suite that a new one has to pass.

Everything here is synchronous: who must not block (an event loop) goes through `writer` and `reader`, which
own the threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from tarry.core.journal import Journal
from tarry.core.view import Needs, View, Write
from tarry.model import (
    Arrival,
    ArrivalKind,
    Audit,
    Entry,
    Letter,
    Outgoing,
    Page,
    RunRecord,
    Status,
    Wait,
    WaitKind,
    WorkerRecord,
)


class Clock(Protocol):
    """The store's two clocks. Deadlines go by `now_ms` (wall clock, UTC), leases by `lease_ms`, which runs on
    over suspends and is not moved by whoever sets the time; it counts only within one `boot`."""

    @property
    def boot(self) -> str: ...
    def now_ms(self) -> int: ...
    def lease_ms(self) -> int: ...


class Sealer(Protocol):
    """The codec seam (rule 13): what happens to payload bytes between clear text and the file. `context` is what
    the bytes belong to, so that sealed bytes cannot be moved to another row."""

    def seal(self, data: bytes, context: str) -> bytes: ...
    def open(self, data: bytes, context: str) -> bytes: ...


class Transaction(Protocol):
    """One write transaction. `now_ms` is the store's clock, read once when it began. Left without `commit`,
    it is rolled back."""

    now_ms: int

    def __enter__(self) -> Transaction: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def commit(self, batch: str = "") -> None:
        """Makes it durable. `batch` names it for `Store.landed`, where a store can lose the answer."""
        ...

    def load(self, needs: Mapping[str, Needs]) -> dict[str, View]:
        """The runs named, as on file: the row, all open and settled waits with the arrivals that settled them,
        and what `needs` names: arrivals by key, the live arrivals of a signal's name in order of number
        (for a channel's name: none), slots (a fresh one where none is on file), pages of messages (of a
        channel, after a number, by number)."""
        ...

    def save(self, writes: Sequence[Write]) -> None:
        """Writes rows in bulk, the last version of each winning. Entries are only ever inserted: a number that
        is taken raises LeaseLost (the second fence)."""
        ...

    def intern(self, documents: Mapping[str, bytes]) -> None:
        """Keeps documents by digest; what is there stays."""
        ...

    def due(self, workflows: Sequence[str], limit: int) -> list[tuple[str, str]]:
        """(run id, workflow) of ready or waiting runs of these workflows whose due_ms has come, by due_ms."""
        ...

    def held(self, worker: str) -> list[tuple[str, int]]:
        """(run id, epoch) of the runs that this worker holds."""
        ...

    def orphans(self, limit: int) -> list[tuple[str, str]]:
        """(run id, worker) of runs whose worker has no live lease (another boot, lapsed, or no row at all)."""
        ...

    def journals(self, claimed: Sequence[View]) -> list[Journal]:
        """For each run just claimed, what its pass answers from (see `Journal`). Row and waits are in the views as
        they stand after the claim; only the rest is read."""
        ...

    def register(self, worker: WorkerRecord) -> None:
        """A new worker's row, with its lease."""
        ...

    def beat(self, worker: WorkerRecord) -> bool:
        """Renews the lease of a registered worker. False where its row is gone: it was reaped and must not go
        on under this id."""
        ...

    def leave(self, worker: str) -> None:
        """Takes a worker's row away."""
        ...

    def live(self, worker: str) -> bool:
        """Whether the worker's lease is live: required by its claims."""
        ...

    def lapsed(self) -> list[str]:
        """Workers whose lease is over and which hold no run any longer."""
        ...

    def outgoing(self, limit: int) -> list[Outgoing]: ...
    def drop_outgoing(self, rows: Sequence[Outgoing]) -> None: ...
    def expire_letters(self, limit: int) -> int:
        """Deletes dead letters whose time is over; how many."""
        ...


@dataclass(frozen=True)
class RunFilter:
    workflow: str | None = None
    status: Status | None = None
    tag: tuple[str, str] | None = None
    prefix: str | None = None


@dataclass(frozen=True)
class WaitFilter:
    """Open waits only; `overdue_at_ms`: with a deadline before it; `opened_before_ms`: at least that old."""

    run_id: str | None = None
    workflow: str | None = None
    name: str | None = None
    kind: WaitKind | None = None
    tag: tuple[str, str] | None = None
    overdue_at_ms: int | None = None
    opened_before_ms: int | None = None


@dataclass(frozen=True)
class LetterFilter:
    run_id: str | None = None
    name: str | None = None
    reason: str | None = None


class Reads(Protocol):
    """Reading on connections of its own: beside a writer, never in its way. Lists are keyset pages, newest last;
    `limit` is 1 to 1000."""

    def run(self, run_id: str) -> RunRecord | None: ...
    def gone(self, run_id: str) -> bool: ...
    def statuses(self, run_ids: Sequence[str]) -> dict[str, Status]: ...
    def runs(self, where: RunFilter, cursor: str | None, limit: int) -> Page[RunRecord]: ...
    def waits(self, where: WaitFilter, cursor: str | None, limit: int) -> Page[tuple[RunRecord, Wait]]: ...
    def journal(self, run_id: str, cursor: str | None, limit: int) -> Page[Entry]: ...
    def arrivals(self, run_id: str, cursor: str | None, limit: int) -> Page[Arrival]: ...
    def arrival(self, run_id: str, kind: ArrivalKind, name: str, key: str) -> Arrival | None: ...
    def winner(self, run_id: str, name: str) -> Arrival | None:
        """The arrival that settled a signal's name."""
        ...

    def acked(self, run_id: str, channel: str) -> int: ...
    def letters(self, where: LetterFilter, cursor: str | None, limit: int) -> Page[Letter]: ...
    def audit(self, run_id: str | None, cursor: str | None, limit: int) -> Page[Audit]: ...
    def workers(self) -> tuple[tuple[WorkerRecord, bool], ...]:
        """All workers' rows, and whether the lease of each is live."""
        ...

    def addresses(self) -> dict[str, str]:
        """The socket addresses of live workers, by worker id."""
        ...

    def due(self, workflows: Sequence[str]) -> bool:
        """Whether a claim would find something: a peek, so that workers do not wake each other for ever."""
        ...

    def due_runs(self, workflows: Sequence[str], limit: int) -> list[str]:
        """The runs that a claim would find, by due_ms."""
        ...

    def next_due_ms(self, workflows: Sequence[str]) -> int | None: ...
    def change(self) -> int:
        """A number that changes when another connection, in this process or another, has committed."""
        ...

    def document(self, digest: str) -> bytes | None: ...


class Store(Reads, Protocol):
    """What `tarry.testing.conformance` tests. `begin(wait=False)` returns None where another process is
    writing just now, instead of waiting for it."""

    @property
    def clock(self) -> Clock: ...
    def begin(self, *, wait: bool = True) -> Transaction | None: ...
    def landed(self, batch: str) -> bool:
        """After CommitUnknown: whether the batch of this id was committed after all."""
        ...

    def tidy(self) -> None:
        """Housekeeping while nobody writes (a checkpoint)."""
        ...

    def close(self) -> None: ...

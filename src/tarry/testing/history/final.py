"""What the store holds when all is over: the other half of the evidence.

Rows as plain text and numbers, named as in the store; whoever dumps a store fills in what it has. A dump is
taken when the system has been left alone for longer than rule H9 allows it to be late.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ENDED = frozenset({"succeeded", "failed", "cancelled", "expired"})


@dataclass(frozen=True)
class RunRow:
    """A run: `due_ms` is when the store has to look at it next, `changed_ms` when its row was written."""

    id: str
    status: str
    worker: str | None = None
    epoch: int = 0
    due_ms: int | None = None
    changed_ms: int | None = None
    result: str | None = None
    cancelling: bool = False
    expiring: bool = False

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def closing(self) -> bool:
        """Over, or about to be: what comes now is answered `stale`."""
        return self.ended or self.cancelling or self.expiring


@dataclass(frozen=True)
class WaitRow:
    """A wait: open until `outcome` is set, and gone when the outcome has its place in the journal."""

    run: str
    kind: str
    name: str
    scope: str = ""
    round: int = 0
    deadline_ms: int | None = None
    outcome: str | None = None
    arrival: int | None = None


@dataclass(frozen=True)
class EntryRow:
    """A line of the journal. Its digest is what `Pass.read` gives for it, its epoch the one that wrote it."""

    run: str
    no: int
    kind: str
    name: str
    outcome: str
    scope: str = ""
    round: int = 0
    payload: str | None = None
    arrival: int | None = None
    digest: str | None = None
    epoch: int | None = None


@dataclass(frozen=True)
class ArrivalRow:
    """A delivery that took its key. Where the caller gave none, `key` is None, whatever the store has."""

    run: str
    no: int
    kind: str
    name: str
    key: str | None
    payload: str
    actor: str | None = None
    status: str = "delivered"
    at_ms: int | None = None


@dataclass(frozen=True)
class HeadRow:
    """How far a channel is acked: the arrival number of the last acked message."""

    run: str
    channel: str
    acked: int


@dataclass(frozen=True)
class LetterRow:
    """A dead letter."""

    run: str
    name: str
    payload: str
    reason: str
    key: str | None = None


@dataclass(frozen=True)
class Final:
    """The dump. `now_ms` is the store's clock at the dump, `taken_ns` the monotonic one: without the two, rule
    H9 has nothing to go by but the last line of the history."""

    runs: tuple[RunRow, ...] = ()
    waits: tuple[WaitRow, ...] = ()
    entries: tuple[EntryRow, ...] = ()
    arrivals: tuple[ArrivalRow, ...] = ()
    heads: tuple[HeadRow, ...] = ()
    letters: tuple[LetterRow, ...] = ()
    pruned: frozenset[str] = field(default_factory=frozenset[str])
    now_ms: int | None = None
    taken_ns: int | None = None

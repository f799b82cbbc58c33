"""The records of a store, frozen: what every room of Tarry hands to the next.

Times are whole milliseconds since 1970 (UTC) by the store's clock and end in `_ms`; durations too. Payloads
are the bytes of JSON text, in clear: a store seals and opens them at its own edge (rule 13). A record is
never changed in place: the core returns a new one, and the store writes it over the old.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Status(StrEnum):
    """Where a run stands (rule 1)."""

    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Blocked(StrEnum):
    """Why a run is blocked; what to do about it is in its `reason` text (rule 1)."""

    CHANGED_CODE = "changed code"
    MISSING_CODE = "missing code"
    UNDECODABLE = "undecodable"
    UNKNOWN_OUTCOME = "unknown outcome"
    NOT_DURABLE = "not durable"
    DEADLOCK = "deadlock"
    POISON = "poison"
    LIMIT = "limit"


class ReceiptStatus(StrEnum):
    """What became of a delivery: a closed set (rule 4.4)."""

    DELIVERED = "delivered"
    BUFFERED = "buffered"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    ALREADY_SETTLED = "already_settled"
    NOT_WAITING = "not_waiting"
    STALE = "stale"
    INVALID = "invalid"
    GONE = "gone"


class Safety(StrEnum):
    """What a crash between doing and recording may cost a step (rule 3.5)."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    AT_MOST_ONCE = "at_most_once"


@dataclass(frozen=True)
class Limits:
    """Rule 13. A breach is a clear error and nothing is lost."""

    payload_bytes: int = 1 << 20
    depth: int = 200
    name_chars: int = 200
    key_bytes: int = 512
    actor_chars: int = 200
    open_waits: int = 1_000
    buffered_names: int = 1_000
    buffered_bytes: int = 64 << 20
    tags: int = 32
    tag_chars: int = 200
    entries_warn: int = 10_000
    entries: int = 1_000_000
    crashes: int = 5
    page: int = 1_000


class FieldError(NamedTuple):
    """One reason why a payload does not fit its type: where, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class ErrorRecord:
    """An exception as plain data: reading it imports and runs nothing (rule 3.7)."""

    type: str
    message: str
    traceback: str = ""
    mro: tuple[str, ...] = ()
    cause: ErrorRecord | None = None


@dataclass(frozen=True)
class RunRecord:
    """One execution of a workflow. `due_ms` is when the store has to look at it next: negative for a
    run that was woken (see `states.at_once`); None: when told."""

    id: str
    workflow: str
    status: Status
    input: bytes
    tags: tuple[tuple[str, str], ...] = ()
    accepts: str | None = None
    due_ms: int | None = None
    deadline_ms: int | None = None
    epoch: int = 0
    worker: str | None = None
    arrivals: int = 0
    buffered: int = 0
    buffered_bytes: int = 0
    crashes: int = 0
    attempt: int = 1
    cancelling: bool = False
    expiring: bool = False
    cancel_actor: str | None = None
    blocked: Blocked | None = None
    reason: str | None = None
    result: bytes | None = None
    error: bytes | None = None
    culprit: int | None = None
    created_ms: int = 0
    changed_ms: int = 0
    ended_ms: int | None = None


class EntryKind(StrEnum):
    """What an entry of the journal records."""

    STEP = "step"
    ATTEMPT = "attempt"
    INTENT = "intent"
    RESOLVE = "resolve"
    WAIT = "wait"
    TIMER = "timer"
    FIRST = "first"
    RECEIVE = "receive"
    NOW = "now"


class Outcome(StrEnum):
    """How a journaled call came out."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    FIRED = "fired"
    CLOSED = "closed"


class EntryId(NamedTuple):
    """What identifies an entry: its name, never its position (rule 3.3)."""

    kind: EntryKind
    scope: str
    name: str
    round: int


@dataclass(frozen=True)
class Entry:
    """One line of a run's journal, numbered by the fenced owner in the order in which the pass took it in."""

    run_id: str
    no: int
    kind: EntryKind
    scope: str
    name: str
    round: int
    outcome: Outcome
    value: bytes | None = None
    digest: str | None = None
    arrival: int | None = None
    at_ms: int = 0

    @property
    def id(self) -> EntryId:
        return EntryId(self.kind, self.scope, self.name, self.round)


class WaitKind(StrEnum):
    """What a wait waits for."""

    SIGNAL = "signal"
    CHANNEL = "channel"
    TIMER = "timer"
    RETRY = "retry"


class WaitId(NamedTuple):
    """A wait of a run: (kind, scope, name, round); a group member's scope ends with its group's name."""

    kind: WaitKind
    scope: str
    name: str
    round: int


@dataclass(frozen=True)
class Wait:
    """A boundary on which a run is paused. It is open until `outcome` is set, by the first transaction that
    may (rule 4.8), and leaves this table when the pass has placed the outcome in the journal.

    `group` is shared by the members of one `first`; `early` and `late` say whether a delivery outside of an open
    round is kept; `cursor` is the last message that the pass has seen. `number` orders outcomes, in the same
    count as arrivals; `arrival` is the delivery that settled the wait."""

    run_id: str
    kind: WaitKind
    scope: str
    name: str
    round: int
    group: str | None = None
    member: int = 0
    deadline_ms: int | None = None
    schema: str | None = None
    early: bool = True
    late: bool = False
    cursor: int = 0
    opened_ms: int = 0
    outcome: Outcome | None = None
    number: int | None = None
    arrival: int | None = None

    @property
    def id(self) -> WaitId:
        return WaitId(self.kind, self.scope, self.name, self.round)


class ArrivalKind(StrEnum):
    """What arrives at a run from outside; named as the thing it is delivered through."""

    SIGNAL = "signal"
    CHANNEL = "channel"


class NameId(NamedTuple):
    """A signal's or a channel's name in one run."""

    kind: ArrivalKind
    name: str


class KeyId(NamedTuple):
    """The key of a delivery: unique per (run, kind, name)."""

    kind: ArrivalKind
    name: str
    key: str


class ArrivalStatus(StrEnum):
    """Where an accepted delivery stands: what `app.receipt` tells later (rule 4.5)."""

    DELIVERED = "delivered"
    BUFFERED = "buffered"
    ALREADY_SETTLED = "already_settled"
    INVALID = "invalid"
    STALE = "stale"


@dataclass(frozen=True)
class Arrival:
    """A delivery that took its key, numbered under the run's lock: commit order is delivery order."""

    run_id: str
    no: int
    kind: ArrivalKind
    name: str
    key: str
    payload: bytes
    actor: str | None
    status: ArrivalStatus
    settles: bool = False
    detail: bytes | None = None
    at_ms: int = 0


@dataclass(frozen=True)
class Slot:
    """What is remembered of a name beside its arrivals: a channel's head and the state of the fold over it (they
    are one row, so that they commit together), or why a signal's last round closed without a payload."""

    run_id: str
    kind: ArrivalKind
    name: str
    acked: int = 0
    state: bytes | None = None
    closed: str | None = None
    closed_ms: int | None = None


@dataclass(frozen=True)
class Letter:
    """A dead letter: what could not be applied, with the reason, until its time is over (rule 4.16)."""

    id: str
    run_id: str
    kind: ArrivalKind
    name: str
    key: str | None
    payload: bytes
    actor: str | None
    reason: str
    detail: bytes | None
    at_ms: int
    until_ms: int


@dataclass(frozen=True)
class Audit:
    """What an operator did: who, when, what (rule 12.4)."""

    run_id: str
    actor: str | None
    action: str
    detail: str
    at_ms: int


@dataclass(frozen=True)
class Outgoing:
    """What a decision about one run means for another: delivered from here until it is applied."""

    run_id: str
    no: int
    target: str
    action: str
    body: bytes
    at_ms: int


@dataclass(frozen=True)
class WorkerRecord:
    """A process that claims runs. Its lease is by the boot clock of the machine named in `boot`."""

    id: str
    boot: str
    lease_until_ms: int
    address: str | None
    host: str
    pid: int
    workflows: tuple[str, ...]
    started_ms: int
    beat_ms: int


@dataclass(frozen=True)
class Receipt:
    """What every delivery returns (rule 4.4): its status, and the payload that the run keeps for the name."""

    run_id: str
    name: str
    status: ReceiptStatus
    key: str | None = None
    payload: bytes | None = None
    actor: str | None = None
    reason: str | None = None
    errors: tuple[FieldError, ...] = ()
    number: int | None = None

    @property
    def accepted(self) -> bool:
        """Whether this very delivery was taken for the run."""
        return self.status in (ReceiptStatus.DELIVERED, ReceiptStatus.BUFFERED)


@dataclass(frozen=True)
class CancelReceipt:
    """What became of a cancel (rule 3.12): `cancelling`, `cancelled`, or the status that won."""

    run_id: str
    status: str


@dataclass(frozen=True)
class Page(Generic[T]):
    """One keyset page. `next_cursor` is None on the last one."""

    rows: tuple[T, ...]
    next_cursor: str | None

"""Everything that can be asked about one run, as frozen data.

A command names its run and nothing else that it could touch: what it means for another run leaves as an
`Outgoing` row (one aggregate per command). Senders and operators give the first half; the worker that owns a
run gives `Advance`, which carries all that one turn of the run has to write, so that an outcome taken in, an
ack or a closed wait costs no transaction of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tarry.model import (
    Arrival,
    ArrivalKind,
    Blocked,
    Entry,
    FieldError,
    KeyId,
    Outcome,
    RunRecord,
    Status,
    Wait,
    WaitId,
)

# --- senders and operators ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    run_id: str
    workflow: str
    input: bytes
    tags: tuple[tuple[str, str], ...] = ()
    accepts: str | None = None
    deadline_ms: int | None = None
    due_ms: int | None = None


@dataclass(frozen=True)
class Deliver:
    """A signal or a channel message. Where the sender gave no key, it is one derived from payload and actor."""

    run_id: str
    kind: ArrivalKind
    name: str
    payload: bytes
    key: str
    actor: str | None = None
    require_wait: bool = False


@dataclass(frozen=True)
class CloseChannel:
    run_id: str
    name: str
    actor: str | None = None


@dataclass(frozen=True)
class Cancel:
    run_id: str
    actor: str | None = None
    force: bool = False


@dataclass(frozen=True)
class Retry:
    run_id: str
    actor: str | None = None


@dataclass(frozen=True)
class Resolve:
    """Says what became of an AT_MOST_ONCE step whose outcome, in entry `no`, is unknown. Outcome.UNKNOWN means:
    do it again."""

    run_id: str
    step: str
    no: int
    outcome: Outcome
    value: bytes | None
    actor: str | None = None


# --- the owner of a run ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """Takes one ready run for a worker. `accepts` is what the worker's code declares for the workflow."""

    run_id: str
    worker: str
    accepts: str | None = None


@dataclass(frozen=True)
class Record:
    """An entry for the journal; `wait` is the wait whose outcome it places, which is then off the table."""

    entry: Entry
    wait: WaitId | None = None


@dataclass(frozen=True)
class Opening:
    """A wait to open. Its deadline becomes absolute in the store: `timeout_ms` from now, or `until_ms`."""

    wait: Wait
    timeout_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True)
class Open:
    """A wait met for the first time, or all members of a `first`: what is on file settles it at once."""

    waits: tuple[Opening, ...]


@dataclass(frozen=True)
class Close:
    """Waits on file that this pass did not meet: abandoned."""

    waits: tuple[WaitId, ...]


@dataclass(frozen=True)
class Ack:
    """The oldest message of a channel is done: `size` bytes of payload no longer count as buffered. `state` is
    the fold's new one; what was journaled under `drop_scope` (a prefix) goes."""

    channel: str
    number: int
    size: int
    state: bytes | None = None
    drop_scope: str | None = None


@dataclass(frozen=True)
class Refuse:
    """A payload passed the schema at the door and its type refuses it: the outcome is withdrawn (rule 4.6).
    `waits` are those of the call that refuses, with the cursors that it has reached: once open again, they are
    answered by what else is on file."""

    arrival: int
    key: KeyId
    errors: tuple[FieldError, ...]
    waits: tuple[Wait, ...] = ()


Part = Record | Open | Close | Ack | Refuse


@dataclass(frozen=True)
class Park:
    """The run is quiescent and lets go of its worker, unless something on file can still be taken in."""

    saw_cancel: bool = False


@dataclass(frozen=True)
class Finish:
    """`culprit` is the entry of the failed step that ended the body: a retry does that step again."""

    status: Status
    result: bytes | None = None
    error: bytes | None = None
    culprit: int | None = None


@dataclass(frozen=True)
class Block:
    why: Blocked
    reason: str


@dataclass(frozen=True)
class Release:
    """Gives the run back as it is; it is ready again after `delay_ms`. `again`: the body failed and is retried,
    and so is the step whose entry is the `culprit`."""

    delay_ms: int = 0
    again: bool = False
    culprit: int | None = None


End = Park | Finish | Block | Release


@dataclass(frozen=True)
class Want:
    """Messages of a channel after a number, at most `limit`: read in the same transaction."""

    channel: str
    after: int
    limit: int = 100


@dataclass(frozen=True)
class Advance:
    """All that one turn of a run has to write, under its fence: parts in order, then the end, if it ends."""

    run_id: str
    worker: str
    epoch: int
    parts: tuple[Part, ...] = ()
    end: End | None = None
    wants: tuple[Want, ...] = ()


@dataclass(frozen=True)
class Reap:
    """Takes a run from a worker whose lease is over."""

    run_id: str
    worker: str


Command = Start | Deliver | CloseChannel | Cancel | Retry | Resolve | Claim | Advance | Reap

# --- results -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    run: RunRecord
    created: bool


@dataclass(frozen=True)
class Claimed:
    """The run under its new epoch, or None where there was nothing (any longer) to claim."""

    run: RunRecord | None


@dataclass(frozen=True)
class Advanced:
    """What the owner learns with each write: where the run stands, its waits, open and settled, with what settled
    them, and the messages it wanted. `over`: the run is no longer this worker's, by its own `end`."""

    run: RunRecord
    over: bool
    now_ms: int
    waits: tuple[Wait, ...] = ()
    arrivals: dict[int, Arrival] = field(default_factory=dict[int, Arrival])
    pages: dict[str, list[Arrival]] = field(default_factory=dict[str, "list[Arrival]"])
    closed: frozenset[str] = frozenset()

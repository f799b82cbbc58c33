"""What the processes of a test write down while the system under test is being broken.

A history is what could be seen from outside: what was asked for and answered, what a workflow's body was
given, and what was done to the world. Nothing here reads the engine, so that a fault of the engine cannot
hide itself. A payload is any text that tells payloads apart: the JSON itself, or `fingerprint` of it.

The order of writing matters. `Invoke` and `Effect` are written before the deed, the answer and `Done` after
it: a process killed in between leaves an open end, which reads as "unknown", never as "did not happen".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

SIGNAL, CHANNEL, VOTE = "signal", "channel", "vote"
CLEAR_BYTES = 64


def fingerprint(payload: bytes | str) -> str:
    """The canonical text of a small JSON payload, the digest of a large one: equal payloads, equal texts."""
    text = json.dumps(json.loads(payload), sort_keys=True, separators=(",", ":"))
    if len(text) <= CLEAR_BYTES:
        return text
    return "blake2b:" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Invoke:
    """A delivery is about to be made. `kind`: signal, channel, or vote (an answer of many)."""

    op: int
    run: str
    kind: str
    name: str
    payload: str
    key: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class Ok:
    """A delivery was answered by a receipt (rule 4.4)."""

    op: int
    status: str
    reason: str | None = None
    retained: str | None = None
    number: int | None = None


@dataclass(frozen=True)
class Fail:
    """A delivery surely did nothing: it was refused before it was queued, or the run is not there."""

    op: int
    error: str


@dataclass(frozen=True)
class Info:
    """Nobody knows what became of a delivery: it may have been applied, or may yet be."""

    op: int
    error: str


@dataclass(frozen=True)
class Outcome:
    """A body took the outcome of a wait in (payload, timeout, closed, cancelled). Written in every pass.

    `decided_at_ms` is the instant, by the store's clock, of the transaction that settled the wait; leave it
    None where that is not known, as the instant of taking it in is another one.
    """

    run: str
    name: str
    outcome: str
    payload: str | None = None
    scope: str = ""
    round: int = 0
    deadline_ms: int | None = None
    decided_at_ms: int | None = None
    pass_id: str = ""


@dataclass(frozen=True)
class Effect:
    """A step is about to change the outside world. Its epoch is its fencing token; `once`: AT_MOST_ONCE."""

    run: str
    step: str
    key: str
    attempt: int = 1
    epoch: int = 0
    pid: int = 0
    scope: str = ""
    once: bool = False


@dataclass(frozen=True)
class Done:
    """The step has changed the outside world, and is about to return."""

    run: str
    step: str
    key: str
    attempt: int = 1
    epoch: int = 0
    scope: str = ""


@dataclass(frozen=True)
class Received:
    """A body was handed a message of a channel; `number` is its arrival number in the run. A plain loop reads
    again from the beginning in every pass, a fold does not."""

    run: str
    channel: str
    key: str
    number: int
    payload: str | None = None
    pass_id: str = ""
    fold: bool = False


@dataclass(frozen=True)
class Acked:
    """A body has acked a message. The ack is durable only with the run's next write."""

    run: str
    channel: str
    key: str
    number: int
    pass_id: str = ""


@dataclass(frozen=True)
class Pass:
    """A pass begins: the entries that it read, as (number, digest), and how far each channel was acked."""

    run: str
    pass_id: str
    worker: str
    epoch: int
    read: tuple[tuple[int, str], ...] = ()
    heads: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Ended:
    """Somebody was told how a run ended."""

    run: str
    status: str
    result: str | None = None


@dataclass(frozen=True)
class Healed:
    """From here on no fault is injected: what was accepted has to come through (rule H9)."""


Event = (
    Invoke | Ok | Fail | Info | Outcome | Effect | Done | Received | Acked | Pass | Ended | Healed
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """An event, and who wrote it when. Order in real time is by the monotonic clock, which all processes of
    a machine share and nobody sets."""

    process: str
    wall_ns: int
    mono_ns: int
    event: Event


@dataclass(frozen=True)
class History:
    """All lines in the order of the monotonic clock, and how many were torn by a kill."""

    lines: tuple[Line, ...]
    torn: int = 0

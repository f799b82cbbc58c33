"""The statuses of a run, as one table (rule 1).

    ready → running → waiting → ready …      a pause and its wake-up
                    → blocked → ready …      app.retry, app.resolve
                    → succeeded | failed | cancelled | expired

A run that was never claimed, or is ended by force, goes to its end from anywhere. `failed` is left only by an
operator's retry.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tarry.model import RunRecord, Status

ENDS: Final = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.EXPIRED})
CLAIMABLE: Final = frozenset({Status.READY, Status.WAITING})

_FORCED = frozenset({Status.CANCELLED, Status.EXPIRED})

TRANSITIONS: Final[dict[Status, frozenset[Status]]] = {
    Status.READY: frozenset({Status.RUNNING, Status.BLOCKED}) | _FORCED,
    Status.RUNNING: frozenset({Status.READY, Status.WAITING, Status.BLOCKED}) | ENDS,
    Status.WAITING: frozenset({Status.READY, Status.RUNNING, Status.BLOCKED}) | _FORCED,
    Status.BLOCKED: frozenset({Status.READY}) | _FORCED,
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset({Status.READY}),
    Status.CANCELLED: frozenset(),
    Status.EXPIRED: frozenset(),
}


def move(run: RunRecord, to: Status, now: int, **changes: Any) -> RunRecord:
    """The run under its new status. What only holds in one status is cleared on leaving it."""
    assert to in TRANSITIONS[run.status], f"{run.status} -> {to} of run {run.id}"
    if to is not Status.RUNNING:
        changes.setdefault("worker", None)
    if to is not Status.BLOCKED and run.blocked is not None:
        changes = {"blocked": None, "reason": None} | changes
    changes.setdefault("due_ms", None)
    return replace(run, status=to, changed_ms=now, **changes)


AT_ONCE: Final = -(1 << 50)


def at_once(now: int) -> int:
    """The due instant of a run that is woken now: before any instant, so that a clock set back cannot hold it up
    (rule 6.5), and among the woken in their order."""
    return AT_ONCE + now


def over(run: RunRecord) -> bool:
    return run.status in ENDS


def closing(run: RunRecord) -> str | None:
    """Why the run takes nothing in any more, as its senders are told (rule 4.4); None while it does."""
    if run.cancelling or run.status is Status.CANCELLED:
        return "cancel"
    if run.expiring or run.status is Status.EXPIRED:
        return "deadline"
    return "ended" if over(run) else None

"""Claims and reaping: who owns a run, and since which epoch (rules 11.1-11.4, 3.9)."""

from __future__ import annotations

from tarry.core.commands import Claim, Claimed, Reap
from tarry.core.decide.draft import LIMITS, Draft
from tarry.core.decide.finish import end
from tarry.core.decide.wait import fire
from tarry.core.states import CLAIMABLE, at_once
from tarry.model import Blocked, Status

NOTHING = Claimed(None)


def claim(draft: Draft, command: Claim) -> Claimed:
    """Takes a run that is ready, or whose deadline has come; each claim raises the epoch, which is the fence."""
    run = draft.run
    if run.status not in CLAIMABLE or run.due_ms is None or run.due_ms > draft.now:
        return NOTHING
    fire(draft)
    if draft.run.expiring and run.epoch == 0:
        end(draft, Status.EXPIRED)
        return NOTHING
    if run.crashes >= LIMITS.crashes:
        draft.move(Status.BLOCKED, blocked=Blocked.POISON, reason=_POISON.format(run.crashes))
        return NOTHING
    draft.move(
        Status.RUNNING,
        worker=command.worker,
        epoch=run.epoch + 1,
        accepts=command.accepts,
    )
    return Claimed(draft.run)


def reap(draft: Draft, command: Reap) -> bool:
    """The worker's lease is over: its run is ready for another one, and its own writes are fenced off."""
    run = draft.run
    if run.status is not Status.RUNNING or run.worker != command.worker:
        return False
    draft.move(Status.READY, due_ms=at_once(draft.now), epoch=run.epoch + 1, crashes=run.crashes + 1)
    return True


_POISON = "{} workers in a row died over it without recording anything new. Find out why, then: tarry retry RUN"

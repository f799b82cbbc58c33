"""What an operator does to a run: cancel, retry, resolve, close a channel; each leaves an audit row (rule 12)."""

from __future__ import annotations

from dataclasses import replace

from tarry.core.commands import Cancel, CloseChannel, Resolve, Retry
from tarry.core.decide.draft import Draft
from tarry.core.decide.finish import end
from tarry.core.decide.wait import close_all
from tarry.core.states import at_once, over
from tarry.core.view import DropEntries
from tarry.errors import NotResolvable, NotRetryable
from tarry.model import (
    ArrivalKind,
    Blocked,
    CancelReceipt,
    Entry,
    EntryKind,
    Outcome,
    Status,
    WaitKind,
)


def cancel(draft: Draft, command: Cancel) -> CancelReceipt:
    """Closes the waits and lets the body clean up; a run that no worker ever had, or by force, ends at once."""
    run = draft.run
    if over(run):
        return CancelReceipt(run.id, run.status.value)
    if run.cancelling and not command.force:
        return CancelReceipt(run.id, "cancelling")
    draft.audit(command.actor, "cancel", "force" if command.force else "")
    draft.set(cancelling=True, cancel_actor=command.actor)
    close_all(draft)
    if command.force or run.epoch == 0:
        end(draft, Status.CANCELLED)
        draft.set(epoch=run.epoch + 1)
        return CancelReceipt(run.id, Status.CANCELLED.value)
    if run.status is Status.BLOCKED:
        draft.move(Status.READY, due_ms=at_once(draft.now))
    draft.rouse()
    return CancelReceipt(run.id, "cancelling")


def retry(draft: Draft, command: Retry) -> Status:
    """A blocked run goes on; a failed one runs again, and so does the step that failed it."""
    run = draft.run
    if run.status not in (Status.BLOCKED, Status.FAILED):
        raise NotRetryable(run_id=run.id, status=run.status.value)
    if run.culprit is not None:
        draft.put(DropEntries(run.id, no=run.culprit))
    draft.audit(command.actor, "retry", run.blocked.value if run.blocked else run.status.value)
    draft.move(
        Status.READY,
        due_ms=at_once(draft.now),
        epoch=run.epoch + 1,
        crashes=0,
        attempt=run.attempt + (run.status is Status.FAILED),
        culprit=None,
        error=None,
        ended_ms=None,
    )
    return draft.run.status


def resolve(draft: Draft, command: Resolve) -> Status:
    """Says what became of a step; the unknown outcome stays in the journal, and this entry stands over it."""
    run = draft.run
    if run.blocked is not Blocked.UNKNOWN_OUTCOME:
        raise NotResolvable(run_id=run.id, step=command.step, reason=f"the run is {run.status.value}")
    unknown = draft.view.entries.get(command.no)
    if unknown is None or unknown.outcome is not Outcome.UNKNOWN:
        raise NotResolvable(run_id=run.id, step=command.step, reason=f"entry {command.no} records no unknown outcome")
    last = draft.view.last_entry + 1
    draft.put(
        Entry(
            run.id,
            last,
            EntryKind.RESOLVE,
            unknown.scope,
            unknown.name,
            last,
            command.outcome,
            command.value,
            at_ms=draft.now,
        )
    )
    draft.audit(command.actor, "resolve", f"{command.step}: {command.outcome.value}")
    draft.move(Status.READY, due_ms=at_once(draft.now), epoch=run.epoch + 1, crashes=0)
    return draft.run.status


def close_channel(draft: Draft, command: CloseChannel) -> bool:
    """Ends the loop over a channel after what is buffered (rule 5.6)."""
    slot = draft.slot(ArrivalKind.CHANNEL, command.name)
    if slot.closed is not None or over(draft.run):
        return False
    draft.put(replace(slot, closed="closed", closed_ms=draft.now))
    draft.audit(command.actor, "close_channel", command.name)
    if draft.open_waits(WaitKind.CHANNEL, command.name):
        draft.wake()
    return True

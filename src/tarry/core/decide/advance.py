"""One turn of a run, written by its owner under the fence: outcomes placed, steps, waits, acks, and the pause or the
end, in one command.

Park is level-triggered: it is refused while anything on file can still be taken in, whenever it came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tarry.core.commands import (
    Ack,
    Advance,
    Advanced,
    Block,
    Close,
    Finish,
    Open,
    Park,
    Record,
    Refuse,
    Release,
    Want,
)
from tarry.core.decide import wait
from tarry.core.decide.draft import Draft
from tarry.core.decide.finish import end
from tarry.core.states import at_once, over
from tarry.core.view import DropEntries
from tarry.errors import LeaseLost
from tarry.model import Arrival, ArrivalKind, Outcome, Status, Wait, WaitKind


def advance(draft: Draft, command: Advance) -> Advanced:
    run = draft.run
    if run.worker != command.worker or run.epoch != command.epoch:
        raise LeaseLost(run_id=command.run_id, epoch=command.epoch)
    for part in command.parts:
        _PARTS[type(part)](draft, part)
    wait.fire(draft)
    if command.end is not None:
        _ENDS[type(command.end)](draft, command.end)
    return _news(draft, command)


def _record(draft: Draft, part: Record) -> None:
    draft.put(replace(part.entry, at_ms=draft.now))
    if draft.run.crashes:
        draft.set(crashes=0)
    if part.wait is not None and (placed := draft.waits.get(part.wait)):
        wait.drop_placed(draft, placed)


def _ack(draft: Draft, part: Ack) -> None:
    """State and ack commit together; what an earlier ack covers is done already (rule 5.2, 5.3)."""
    slot = draft.slot(ArrivalKind.CHANNEL, part.channel)
    if part.number <= slot.acked:
        return
    draft.put(replace(slot, acked=part.number, state=part.state))
    draft.set(
        buffered=draft.run.buffered - 1,
        buffered_bytes=draft.run.buffered_bytes - part.size,
        crashes=0,
    )
    if part.drop_scope is not None:
        draft.put(DropEntries(draft.run.id, scope=part.drop_scope))


def _park(draft: Draft, part: Park) -> None:
    if _answerable(draft, part):
        return
    draft.move(Status.WAITING, due_ms=wait.next_deadline(draft))


def _answerable(draft: Draft, part: Park) -> bool:
    if (draft.run.cancelling or draft.run.expiring) and not part.saw_cancel:
        return True
    return any(
        w.outcome is not None or (w.kind is WaitKind.CHANNEL and w.group is None and _unread(draft, w))
        for w in draft.waits.values()
    )


def _unread(draft: Draft, waiting: Wait) -> bool:
    """Whether a channel holds something beyond what the pass has seen: a message, or its end."""
    for want, page in draft.view.pages.items():
        if want.channel == waiting.name and want.after >= waiting.cursor and page:
            return True
    return draft.slot(ArrivalKind.CHANNEL, waiting.name).closed is not None


def _finish(draft: Draft, part: Finish) -> None:
    end(draft, part.status, part.result, part.error, part.culprit)


def _block(draft: Draft, part: Block) -> None:
    draft.move(Status.BLOCKED, blocked=part.why, reason=part.reason)


def _release(draft: Draft, part: Release) -> None:
    if part.culprit is not None:
        draft.put(DropEntries(draft.run.id, no=part.culprit))
    due_ms = draft.now + part.delay_ms if part.delay_ms else at_once(draft.now)
    deadline_ms = draft.run.deadline_ms
    if deadline_ms is not None and not (draft.run.expiring or draft.run.cancelling):
        due_ms = min(due_ms, deadline_ms)
    draft.move(Status.READY, due_ms=due_ms, attempt=draft.run.attempt + part.again)


def _news(draft: Draft, command: Advance) -> Advanced:
    """What is on file for the pass by now; it knows what of it is new."""
    gone = draft.run.worker is None or over(draft.run)
    if gone:
        return Advanced(draft.run, True, draft.now)
    waits = tuple(w for w in draft.waits.values() if w.outcome is not Outcome.CLOSED)
    pages = {want.channel: _page(draft, want) for want in command.wants}
    closed = frozenset(want.channel for want in command.wants if draft.slot(ArrivalKind.CHANNEL, want.channel).closed)
    arrivals = {w.arrival: _arrival(draft, w.arrival) for w in waits if w.arrival is not None}
    return Advanced(draft.run, False, draft.now, waits, arrivals, pages, closed)


def _page(draft: Draft, want: Want) -> list[Arrival]:
    return list(draft.view.pages[want])


def _arrival(draft: Draft, number: int) -> Arrival:
    """The delivery that settled a wait: on file before, or just now by an opening wait."""
    found = draft.view.settled.get(number)
    if found is not None:
        return found
    for arrivals in draft.view.live.values():
        for arrival in arrivals:
            if arrival.no == number:
                return arrival
    pages = draft.view.pages.values()
    return next(message for page in pages for message in page if message.no == number)


_PARTS: dict[type, Callable[[Draft, Any], None]] = {
    Record: _record,
    Open: wait.open_waits,
    Close: wait.close,
    Ack: _ack,
    Refuse: wait.withdraw,
}

_ENDS: dict[type, Callable[[Draft, Any], None]] = {
    Park: _park,
    Finish: _finish,
    Block: _block,
    Release: _release,
}

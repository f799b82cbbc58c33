"""Waits: how they open, and how the first transaction that may settles them (rules 4.1, 4.7-4.9, 4.13).

A wait is settled by a delivery, by its deadline or by what is on file when it opens. All members of a `first`
share a group: one of them is settled, the others are closed in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tarry.core.codec import field_errors
from tarry.core.commands import Close, Open, Opening, Refuse, Want
from tarry.core.decide import letters
from tarry.core.decide.draft import LIMITS, Draft
from tarry.errors import LimitExceeded
from tarry.model import Arrival, ArrivalStatus, FieldError, Outcome, Wait, WaitKind

TIMERS = (WaitKind.TIMER, WaitKind.RETRY)


def settle(draft: Draft, wait: Wait, outcome: Outcome, number: int, arrival: int | None = None) -> None:
    """Writes the outcome of an open wait, and closes the rest of its group."""
    draft.put_wait(replace(wait, outcome=outcome, number=number, arrival=arrival))
    if wait.group is None:
        return
    for other in list(draft.waits.values()):
        if other.group == wait.group and other.id != wait.id:
            draft.put_wait(replace(other, outcome=Outcome.CLOSED))
            draft.close_name(other, "lost_race")


def fire(draft: Draft) -> None:
    """At or past a deadline, whoever touches the run writes the timeout, the earliest first."""
    due = [w for w in draft.waits.values() if w.outcome is None and _past(w.deadline_ms, draft.now)]
    for wait in sorted(due, key=lambda w: (w.deadline_ms or 0, w.id)):
        if draft.waits[wait.id].outcome is not None:
            continue
        fired = wait.kind in TIMERS
        settle(draft, wait, Outcome.FIRED if fired else Outcome.TIMEOUT, draft.number())
        if not fired:
            draft.close_name(wait, "timeout")
    if due:
        draft.wake()
    if not draft.run.expiring and not draft.run.cancelling and _past(draft.run.deadline_ms, draft.now):
        expire(draft)


def expire(draft: Draft) -> None:
    """The run's own deadline: like a cancel, with another name."""
    draft.set(expiring=True)
    close_all(draft)
    draft.rouse()


def close_all(draft: Draft) -> None:
    for wait in list(draft.waits):
        draft.drop_wait(wait)


def open_waits(draft: Draft, part: Open) -> None:
    """Opens one wait, or the members of a `first`, and settles them by what is on file."""
    if draft.run.cancelling or draft.run.expiring:
        return
    if len(draft.waits) + len(part.waits) > LIMITS.open_waits:
        raise LimitExceeded(run_id=draft.run.id, what="open waits", limit=LIMITS.open_waits)
    opened = [_absolute(opening, draft.now) for opening in part.waits]
    for wait in opened:
        draft.put_wait(wait)
    _answer(draft, opened)


def _answer(draft: Draft, opened: Sequence[Wait]) -> None:
    """Settles one wait, or one race, by what is on file."""
    on_file = [(found.no, wait, found) for wait in opened if (found := _on_file(draft, wait))]
    if on_file:
        _, wait, found = min(on_file, key=lambda row: (row[0], row[1].member))
        settle(draft, wait, Outcome.OK, draft.number(), found.no)
        if wait.kind is WaitKind.SIGNAL:
            _take(draft, found)


def _absolute(opening: Opening, now: int) -> Wait:
    deadline = opening.until_ms
    if opening.timeout_ms is not None:
        deadline = now + opening.timeout_ms
    return replace(opening.wait, opened_ms=now, deadline_ms=deadline)


def _on_file(draft: Draft, wait: Wait) -> Arrival | None:
    """The delivery on file that answers a wait just opened. A channel's messages answer by themselves, except
    where they have to win a race."""
    if wait.kind is WaitKind.SIGNAL:
        return _buffered(draft, wait)
    if wait.kind is WaitKind.CHANNEL and wait.group is not None:
        page = draft.view.pages.get(Want(wait.name, wait.cursor, 1), [])
        return page[0] if page else None
    return None


def _buffered(draft: Draft, wait: Wait) -> Arrival | None:
    """The name's winner; where none was checked at the door, the first buffered one that fits (rule 4.3)."""
    arrivals = draft.live(wait.name)
    for arrival in arrivals:
        if arrival.settles:
            return arrival
    for arrival in arrivals:
        errors = unfit(draft, wait.schema, arrival.payload)
        if not errors:
            return arrival
        discard(draft, arrival, ArrivalStatus.INVALID, "invalid", errors)
    return None


def _take(draft: Draft, winner: Arrival) -> None:
    """The winner is delivered; what was buffered behind it has lost."""
    if winner.status is ArrivalStatus.BUFFERED:
        draft.buffer(winner, -1)
        draft.put(replace(winner, settles=True, status=ArrivalStatus.DELIVERED))
    for other in draft.live(winner.name):
        if other.no > winner.no and other.status is ArrivalStatus.BUFFERED:
            discard(draft, other, ArrivalStatus.ALREADY_SETTLED, "already_settled")


def discard(
    draft: Draft,
    arrival: Arrival,
    status: ArrivalStatus,
    reason: str,
    errors: tuple[FieldError, ...] = (),
) -> None:
    """Takes an accepted delivery back: its receipt tells the new truth, and it is a dead letter."""
    if arrival.status is ArrivalStatus.BUFFERED:
        draft.buffer(arrival, -1)
    detail = letters.write_errors(errors) if errors else None
    draft.put(replace(arrival, status=status, settles=False, detail=detail))
    letters.withdraw(draft, arrival, reason, errors)


def close(draft: Draft, part: Close) -> None:
    for wait_id in part.waits:
        wait = draft.waits.get(wait_id)
        if wait is not None:
            draft.close_name(wait, "abandoned")
            draft.drop_wait(wait_id)


def withdraw(draft: Draft, part: Refuse) -> None:
    """The type refused what the schema let pass: all waits that it settled reopen with their old deadlines, and
    so do the members of their groups (rule 4.6)."""
    reopened = [w for w in draft.waits.values() if w.outcome is Outcome.OK and w.arrival == part.arrival]
    groups = {wait.group for wait in reopened if wait.group is not None}
    reopened += [w for w in draft.waits.values() if w.outcome is Outcome.CLOSED and w.group in groups]
    for wait in reopened:
        draft.put_wait(replace(wait, outcome=None, number=None, arrival=None))
    on_file = draft.view.keys[part.key]
    arrival = None if on_file is None else draft.arrival(on_file)
    if arrival is not None and arrival.status is not ArrivalStatus.INVALID:
        discard(draft, arrival, ArrivalStatus.INVALID, "invalid", part.errors)
    _answer_again(draft, part.waits)


def _answer_again(draft: Draft, waits: Sequence[Wait]) -> None:
    """A wait that opens again is answered by what is on file, as one that opens: nobody else would wake it."""
    opened = [
        replace(on_file, cursor=wait.cursor)
        for wait in waits
        if (on_file := draft.waits.get(wait.id)) is not None and on_file.outcome is None
    ]
    for wait in opened:
        draft.put_wait(wait)
    _answer(draft, opened)


def drop_placed(draft: Draft, wait: Wait) -> None:
    """The pass has placed the outcome in the journal: the wait, and its group, leave the table."""
    for other in list(draft.waits.values()):
        if other.id == wait.id or (wait.group is not None and other.group == wait.group):
            draft.drop_wait(other.id)


def unfit(draft: Draft, schema: str | None, payload: bytes) -> tuple[FieldError, ...]:
    return field_errors(draft.view.schema(schema), payload) if schema is not None else ()


def next_deadline(draft: Draft) -> int | None:
    """When the paused run has to be looked at again, if nothing comes."""
    deadlines = [w.deadline_ms for w in draft.waits.values() if w.outcome is None and w.deadline_ms is not None]
    if draft.run.deadline_ms is not None:
        deadlines.append(draft.run.deadline_ms)
    return min(deadlines, default=None)


def _past(deadline_ms: int | None, now: int) -> bool:
    return deadline_ms is not None and deadline_ms <= now

"""A delivery: what becomes of it, in one transaction and in the order of rule 4.4.

    gone · key known · run over · unknown name · settled · deadline passed · type · open wait ·
    refused early · limits · buffered

Only `delivered` and `buffered` take the key. What is refused is kept as a dead letter, except a repetition of
what was already taken.
"""

from __future__ import annotations

from tarry.core.accepts import Declared
from tarry.core.codec import same
from tarry.core.commands import Deliver
from tarry.core.decide import letters
from tarry.core.decide.draft import LIMITS, Draft
from tarry.core.decide.wait import fire, settle, unfit
from tarry.core.states import closing
from tarry.core.view import DropArrival
from tarry.errors import ActorRequired, KeyRequired, LimitExceeded, UnknownSignal
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    FieldError,
    KeyId,
    Outcome,
    Receipt,
    ReceiptStatus,
    Status,
    Wait,
    WaitKind,
)


def deliver(draft: Draft, command: Deliver) -> Receipt | UnknownSignal:
    known = draft.view.keys[KeyId(command.kind, command.name, command.key)]
    if known is not None and (told := _repeated(draft, command, known)):
        return told
    if reason := closing(draft.run):
        return _refused(draft, command, ReceiptStatus.STALE, reason)
    declared = _declared(draft, command)
    if declared is None:
        return _unknown(draft, command)
    fire(draft)
    return _decide(draft, command, declared, known)


def _decide(draft: Draft, command: Deliver, declared: Declared, known: Arrival | None) -> Receipt:
    if command.kind is ArrivalKind.SIGNAL and (winner := _winner(draft, command.name)):
        letters.refuse(draft, command, "already_settled")
        return _told(command, ReceiptStatus.ALREADY_SETTLED, winner)
    if reason := closing(draft.run):
        return _refused(draft, command, ReceiptStatus.STALE, reason)
    waits = draft.open_waits(WaitKind(command.kind), command.name)
    if not waits and (reason := _closed(draft, command, declared)):
        return _refused(draft, command, ReceiptStatus.STALE, reason)
    checked, errors = _check(draft, command, declared, waits)
    if errors:
        return _refused(draft, command, ReceiptStatus.INVALID, "invalid", errors)
    if waits:
        return _deliver(draft, command, waits, known)
    if command.require_wait or not declared.early:
        return _refused(draft, command, ReceiptStatus.NOT_WAITING, "not_waiting")
    _check_room(draft, command)
    return _buffer(draft, command, checked, known)


def _repeated(draft: Draft, command: Deliver, known: Arrival) -> Receipt | None:
    """The key was taken before: by this very delivery, or by another one. A key that was freed is free, but the
    payload that was refused under it stays refused."""
    equal = same(command.payload, known.payload) and command.actor == known.actor
    if known.status is ArrivalStatus.INVALID:
        if not equal:
            return None
        return _told(command, ReceiptStatus.INVALID, None, letters.read_errors(known.detail))
    if equal:
        return _told(command, ReceiptStatus.DUPLICATE, known)
    letters.refuse(draft, command, "conflict")
    return _told(command, ReceiptStatus.CONFLICT, known)


def _declared(draft: Draft, command: Deliver) -> Declared | None:
    accepts = draft.accepts()
    declared = Declared() if accepts.open else accepts.get(command.kind, command.name)
    if declared is None:
        return None
    if declared.require_key and letters.shown(command.key) is None:
        raise KeyRequired(name=command.name)
    if declared.require_actor and command.actor is None:
        raise ActorRequired(name=command.name)
    return declared


def _unknown(draft: Draft, command: Deliver) -> UnknownSignal:
    letters.refuse(draft, command, "unknown_name")
    return UnknownSignal(
        run_id=draft.run.id,
        workflow=draft.run.workflow,
        kind=command.kind.value,
        name=command.name,
        near=draft.accepts().near(command.name),
    )


def _winner(draft: Draft, name: str) -> Arrival | None:
    return next((arrival for arrival in draft.live(name) if arrival.settles), None)


def _closed(draft: Draft, command: Deliver, declared: Declared) -> str | None:
    """The last round on this name closed without a payload, and no new one is open (rule 4.13)."""
    if declared.late:
        return None
    return draft.slot(command.kind, command.name).closed


def _check(
    draft: Draft, command: Deliver, declared: Declared, waits: list[Wait]
) -> tuple[bool, tuple[FieldError, ...]]:
    """Whether a type was on file to check against, and what does not fit it (rule 4.6)."""
    schemas = {declared.schema, *(wait.schema for wait in waits)} - {None}
    for schema in sorted(text for text in schemas if text is not None):
        if errors := unfit(draft, schema, command.payload):
            return True, errors
    return bool(schemas), ()


def _deliver(draft: Draft, command: Deliver, waits: list[Wait], known: Arrival | None) -> Receipt:
    """A wait is open: this transaction settles it. A message settles only races: its readers go by cursor, so that
    their wait is open still when the run is awake, and no longer lets everything through."""
    signal = command.kind is ArrivalKind.SIGNAL
    if not signal and draft.run.status is not Status.WAITING:
        _check_room(draft, command)
    status = ArrivalStatus.DELIVERED if signal else ArrivalStatus.BUFFERED
    arrival = _take_key(draft, command, status, signal, known)
    if not signal:
        draft.buffer(arrival, +1)
    for wait in waits:
        if (signal or wait.group is not None) and draft.waits[wait.id].outcome is None:
            settle(draft, wait, Outcome.OK, arrival.no, arrival.no)
    draft.wake()
    return _told(command, ReceiptStatus.DELIVERED, arrival)


def _buffer(draft: Draft, command: Deliver, checked: bool, known: Arrival | None) -> Receipt:
    settles = checked and command.kind is ArrivalKind.SIGNAL and not draft.live(command.name)
    arrival = _take_key(draft, command, ArrivalStatus.BUFFERED, settles, known)
    draft.buffer(arrival, +1)
    return _told(command, ReceiptStatus.BUFFERED, arrival)


def _take_key(draft: Draft, command: Deliver, status: ArrivalStatus, settles: bool, known: Arrival | None) -> Arrival:
    if known is not None:
        draft.put(DropArrival(draft.run.id, known.kind, known.name, known.no, known.key))
    arrival = Arrival(
        draft.run.id,
        draft.number(),
        command.kind,
        command.name,
        command.key,
        command.payload,
        command.actor,
        status,
        settles,
        None,
        draft.now,
    )
    draft.put(arrival)
    return arrival


def _check_room(draft: Draft, command: Deliver) -> None:
    """Rule 13: what a run buffers is bounded; a delivery beyond is refused, with everything kept."""
    run = draft.run
    if run.buffered_bytes + len(command.payload) > LIMITS.buffered_bytes:
        raise LimitExceeded(run_id=run.id, what="buffered bytes", limit=LIMITS.buffered_bytes)
    signal = command.kind is ArrivalKind.SIGNAL
    if signal and run.accepts is None and run.buffered >= LIMITS.buffered_names:
        raise LimitExceeded(run_id=run.id, what="buffered names", limit=LIMITS.buffered_names)


def _refused(
    draft: Draft,
    command: Deliver,
    status: ReceiptStatus,
    reason: str,
    errors: tuple[FieldError, ...] = (),
) -> Receipt:
    letters.refuse(draft, command, reason, errors)
    key = letters.shown(command.key)
    return Receipt(command.run_id, command.name, status, key, reason=reason, errors=errors)


def _told(
    command: Deliver,
    status: ReceiptStatus,
    retained: Arrival | None,
    errors: tuple[FieldError, ...] = (),
) -> Receipt:
    """The receipt, with the payload that the run keeps for the name or key."""
    key = letters.shown(command.key)
    if retained is None:
        return Receipt(command.run_id, command.name, status, key, reason=status.value, errors=errors)
    return Receipt(
        command.run_id,
        command.name,
        status,
        key,
        retained.payload,
        retained.actor,
        number=retained.no,
    )

"""(a run as on file, a command, now) -> what to write, and the result. Pure.

`needs` says, before anything is loaded, what a command will look at; `decide` looks at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tarry.core.commands import (
    Ack,
    Advance,
    Cancel,
    Claim,
    CloseChannel,
    Command,
    Deliver,
    Open,
    Part,
    Reap,
    Refuse,
    Resolve,
    Retry,
    Start,
    Want,
)
from tarry.core.decide.advance import advance
from tarry.core.decide.claim import claim, reap
from tarry.core.decide.deliver import deliver
from tarry.core.decide.draft import Draft
from tarry.core.decide.operate import cancel, close_channel, resolve, retry
from tarry.core.decide.start import start
from tarry.core.view import NOTHING, Decision, Needs, View
from tarry.errors import LeaseLost, RunGone, RunNotFound
from tarry.model import ArrivalKind, KeyId, NameId, Receipt, ReceiptStatus, Wait, WaitKind

__all__ = ["decide", "needs"]


def decide(view: View, command: Command, now: int) -> Decision:
    if isinstance(command, Start):
        return start(view, command, now)
    if view.run is None:
        return _absent(view, command)
    draft = Draft(view, view.run, now)
    result = _DECIDERS[type(command)](draft, command)
    return Decision(result, draft.rows())


_DECIDERS: dict[type, Callable[[Draft, Any], Any]] = {
    Deliver: deliver,
    CloseChannel: close_channel,
    Cancel: cancel,
    Retry: retry,
    Resolve: resolve,
    Claim: claim,
    Advance: advance,
    Reap: reap,
}


def _absent(view: View, command: Command) -> Decision:
    """The run was never started, or was pruned: its id answers `gone` for a while (rule 3.1)."""
    if isinstance(command, Advance):
        raise LeaseLost(run_id=command.run_id, epoch=command.epoch)
    if isinstance(command, Reap):
        return Decision(False)
    if not view.gone:
        raise RunNotFound(run_id=command.run_id)
    if isinstance(command, Deliver):
        return Decision(Receipt(command.run_id, command.name, ReceiptStatus.GONE, command.key))
    raise RunGone(run_id=command.run_id)


def needs(command: Command) -> Needs:
    if isinstance(command, Deliver):
        name = NameId(command.kind, command.name)
        key = KeyId(command.kind, command.name, command.key)
        return Needs(keys=frozenset((key,)), names=frozenset((name,)))
    if isinstance(command, Advance):
        return _of_advance(command)
    if isinstance(command, CloseChannel):
        return Needs(names=frozenset((NameId(ArrivalKind.CHANNEL, command.name),)))
    if isinstance(command, Resolve):
        return Needs(entries=frozenset((command.no,)))
    return NOTHING


def _of_advance(command: Advance) -> Needs:
    needed = Needs(wants=command.wants) if command.wants else NOTHING
    for want in command.wants:
        needed |= Needs(names=frozenset((NameId(ArrivalKind.CHANNEL, want.channel),)))
    for part in command.parts:
        needed |= _of_part(part)
    return needed


def _of_part(part: Part) -> Needs:
    if isinstance(part, Ack):
        return Needs(names=frozenset((NameId(ArrivalKind.CHANNEL, part.channel),)))
    if isinstance(part, Refuse):
        return Needs(keys=frozenset((part.key,))) | _of_waits(part.waits)
    if isinstance(part, Open):
        return _of_waits([opening.wait for opening in part.waits])
    return NOTHING


def _of_waits(waits: Sequence[Wait]) -> Needs:
    """What may answer waits at the moment they open."""
    names = {NameId(ArrivalKind(w.kind), w.name) for w in waits if w.kind in _FROM_OUTSIDE}
    races = tuple(Want(w.name, w.cursor, 1) for w in waits if w.kind is WaitKind.CHANNEL and w.group is not None)
    return Needs(names=frozenset(names), wants=races)


_FROM_OUTSIDE = (WaitKind.SIGNAL, WaitKind.CHANNEL)

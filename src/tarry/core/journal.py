"""What a worker gets with a claim: all that a pass over the run needs to answer from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tarry.core.commands import Want
from tarry.model import Arrival, Entry, EntryKind, RunRecord, Slot, Wait

PAGE = 100
"""Messages of one channel handed out at once; the pass asks for more as it goes."""


@dataclass(frozen=True)
class Journal:
    """`arrivals` are the signals on file by number, `slots` the heads of the run's channels. `messages` of a
    channel begin where its pass begins (see `first_want`)."""

    run: RunRecord
    entries: tuple[Entry, ...] = ()
    waits: tuple[Wait, ...] = ()
    arrivals: dict[int, Arrival] = field(default_factory=dict[int, Arrival])
    slots: dict[str, Slot] = field(default_factory=dict[str, Slot])
    messages: dict[str, list[Arrival]] = field(default_factory=dict[str, "list[Arrival]"])


def first_want(slot: Slot, entries: Sequence[Entry]) -> Want:
    """Where a pass begins to read a channel: a fold after its last acked message; a plain loop at the first
    message, with all that it received before (a `first` may have received one) and a page beyond."""
    received = sum(
        entry.kind is EntryKind.FIRST or (entry.kind is EntryKind.RECEIVE and entry.name == slot.name)
        for entry in entries
    )
    after = slot.acked if slot.state is not None else 0
    return Want(slot.name, after, received + PAGE)

"""What a worker gets with a claim: all that a pass over the run needs to answer from."""

from __future__ import annotations

from dataclasses import dataclass, field

from tarry.model import Arrival, Entry, RunRecord, Slot, Wait

PAGE = 100
"""Messages of one channel handed out at once; the pass asks for more as it goes."""


@dataclass(frozen=True)
class Journal:
    """`arrivals` are the signals on file by number. `messages` of a channel begin where its pass begins: after
    the fold's last acked one, else at the first; they hold what was received before and one page beyond."""

    run: RunRecord
    entries: tuple[Entry, ...] = ()
    waits: tuple[Wait, ...] = ()
    arrivals: dict[int, Arrival] = field(default_factory=dict[int, Arrival])
    slots: dict[str, Slot] = field(default_factory=dict[str, Slot])
    messages: dict[str, list[Arrival]] = field(default_factory=dict[str, "list[Arrival]"])

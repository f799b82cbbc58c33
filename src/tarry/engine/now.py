"""The store's clock, read once by name (rule 3.10)."""

from __future__ import annotations

from tarry.core.commands import Record
from tarry.engine.calls import Call
from tarry.engine.frame import Frame
from tarry.model import Entry, EntryId, EntryKind, Outcome


class NowCall(Call):
    """Its entry's own time is its value: the store stamps it as it commits."""

    def __init__(self, frame: Frame, name: str) -> None:
        super().__init__(frame, EntryId(EntryKind.NOW, frame.scope, name, 0), f"run.now({name!r})")
        self._entry: Entry | None = None

    def meet(self) -> None:
        self.turn.calls.use_name(self.id, "now")
        self._entry = self.turn.replay.recorded(self.id)
        if self._entry is not None:
            self.turn.replay.placed(self._entry.no, self)
        elif not self.turn.cancelling:
            number = self.turn.replay.next_number()
            kind, scope, name, round = self.id
            self.turn.put(Record(Entry(self.turn.run.id, number, kind, scope, name, round, Outcome.OK)))
            self.turn.replay.placed(number, self)

    def give(self) -> None:
        self.resolve(self._entry.at_ms if self._entry is not None else self.turn.written_ms)

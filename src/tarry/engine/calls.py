"""Durable calls that a pass has met and whose outcomes it has not given back yet."""

from __future__ import annotations

import asyncio
from typing import Any

from tarry.core.commands import Open
from tarry.engine.frame import Frame
from tarry.model import EntryId, Wait, WaitId


class Call:
    """One call in flight. `meet` looks it up in the journal, `give` hands its outcome to the code that waits for
    `future`; in between, its kind decides what happens."""

    def __init__(self, frame: Frame, entry_id: EntryId, text: str) -> None:
        self.frame = frame
        self.turn = frame.turn
        self.id = entry_id
        self.text = text
        self.future: asyncio.Future[Any] = self.turn.new_future(frame)

    @property
    def executing(self) -> bool:
        """Whether something is going on for it in this process, so that the run cannot be let go."""
        return False

    def meet(self) -> None:
        raise NotImplementedError

    def give(self) -> None:
        raise NotImplementedError

    def waits(self) -> tuple[WaitId, ...]:
        """The waits that it has, or will have, on file."""
        return ()

    def opening(self) -> Open:
        """The part that puts its waits on file."""
        raise NotImplementedError

    def settled(self, wait: Wait) -> None:
        """One of its waits has an outcome on file."""

    def resolve(self, value: Any) -> None:
        self.turn.done(self)
        if not self.future.done():
            self.future.set_result(value)

    def reject(self, error: BaseException) -> None:
        self.turn.done(self)
        if not self.future.done():
            self.future.set_exception(error)

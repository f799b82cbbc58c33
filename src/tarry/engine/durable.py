"""A durable call, not yet made: lazy, awaited once.

It is a Coroutine, so that gather, create_task and TaskGroup take it as they take any other; and being lazy, it
can be handed to `run.first` instead of being awaited. One that is forgotten warns (rule 2.5).
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tarry.engine.frame import Frame, frame

if TYPE_CHECKING:
    from tarry.engine.resume import Pass

T_co = TypeVar("T_co", covariant=True)

Begin = Callable[[Frame], asyncio.Future[Any]]


class Durable(Coroutine[Any, Any, T_co], Generic[T_co]):
    """A call of the pass `turn`. `begin` makes it in the frame where it is awaited; `member` is what `first` needs
    to make it a part of its own call."""

    __slots__ = ("_begin", "_inner", "_text", "_turn", "member")

    def __init__(self, turn: Pass, text: str, begin: Begin, member: Any = None) -> None:
        self._turn = turn
        self._text = text
        self._begin = begin
        self._inner: Coroutine[Any, Any, Any] | None = None
        self.member = member

    def start(self) -> Coroutine[Any, Any, T_co]:
        if self._inner is None:
            self._inner = self._made()
        return self._inner

    async def _made(self) -> Any:
        return await self._begin(frame(self._text))

    def taken(self) -> Any:
        """The member, for `first`, which makes the call in its own name."""
        self._inner = _nothing()
        self._inner.close()
        return self.member

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self.start().__await__()

    def send(self, value: Any) -> Any:
        return self.start().send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        return self.start().throw(typ, val, tb) if val is not None else self.start().throw(typ)  # type: ignore[arg-type]

    def close(self) -> None:
        self.start().close()

    def __repr__(self) -> str:
        return f"<durable {self._text}>"

    def __del__(self) -> None:
        if self._inner is None and not self._turn.ended:
            warnings.warn(f"{self._text} was never awaited", RuntimeWarning, stacklevel=2)


async def _nothing() -> None: ...

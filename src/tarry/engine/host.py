"""What a pass needs of the worker that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tarry.core.commands import Advance

if TYPE_CHECKING:
    from tarry.engine.resume import Pass


class Host(Protocol):
    """The worker's loop, its pool, its writer and its clock."""

    @property
    def id(self) -> str: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    def submit(self, command: Advance, done: Callable[[Any], None], documents: Mapping[str, bytes]) -> None: ...
    def spawn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...
    async def call(self, fn: Callable[..., Any], *args: Any) -> Any: ...
    async def sleep(self, delay_s: float) -> None: ...
    def later(self, delay_s: float, fn: Callable[[], Any]) -> asyncio.TimerHandle: ...
    def now_ms(self) -> int: ...
    def over(self, turn: Pass) -> None: ...


@dataclass(frozen=True)
class Writing:
    """A write in flight: the last entry that it carries, and who waits for it to be durable."""

    command: Advance
    documents: dict[str, bytes]
    last: int
    durable: list[asyncio.Future[None]]

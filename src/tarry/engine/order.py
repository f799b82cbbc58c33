"""The order of a pass: tasks and futures that sort themselves into sets the same way every time.

asyncio keeps tasks in sets (`asyncio.wait`, `TaskGroup`) and so wakes and cancels them in the order of
their hashes, which are addresses: forty passes over one body took up to forty orders. Here the hash is the
number of the task or future in its pass, so a replay meets the same sets in the same order (rule 3.2).

`asyncio.as_completed` goes further and makes its tasks out of a set of *coroutines*, whose hashes nobody
can choose: `given_together` finds what it was given, so that the loop makes the tasks in that order.
"""

from __future__ import annotations

import asyncio
import asyncio.tasks
from collections.abc import Awaitable, Coroutine, Generator, Iterable, Iterator
from types import FrameType
from typing import Any

# What asyncio takes for a coroutine: some of its own are generators.
Body = Coroutine[Any, Any, Any] | Generator[Any, None, Any]

# Whichever of asyncio's functions calls `loop.create_task` on behalf of gather, wait_for and as_completed.
ENSURE_FUTURE = getattr(asyncio.tasks, "_ensure_future", asyncio.ensure_future).__code__
_AS_COMPLETED = asyncio.as_completed.__code__


class RunFuture(asyncio.Future[Any]):
    """A future whose hash is its number in the pass; equality stays identity."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        return self.number


class RunTask(asyncio.Task[Any]):
    """A task whose hash is its number in the pass; equality stays identity."""

    __slots__ = ("number",)

    def __init__(self, number: int, coro: Body, **options: Any) -> None:
        self.number = number  # first: asyncio hashes the task while it is being made
        super().__init__(coro, **options)

    @property
    def unretrieved(self) -> bool:
        """It failed, and nobody has asked for its exception."""
        return self._log_traceback

    def __hash__(self) -> int:
        return self.number


def given_together(caller: FrameType) -> Iterable[Awaitable[Any]]:
    """What `asyncio.as_completed`, if it is the caller, was given in one call; else nothing."""
    frame: FrameType | None = caller
    while frame is not None and frame.f_code.co_filename == ENSURE_FUTURE.co_filename:
        if frame.f_code is _AS_COMPLETED:
            return frame.f_locals[_AS_COMPLETED.co_varnames[0]]
        frame = frame.f_back
    return ()


def is_ordered(given: Iterable[Awaitable[Any]]) -> bool:
    """Not so a set, whose order is one of addresses, nor an iterator, whose order is gone once read."""
    return not isinstance(given, set | frozenset | Iterator)


def unwrapped(coro: Body) -> Body | Awaitable[Any]:
    """The awaitable that `asyncio.ensure_future` wrapped in coro; else coro itself."""
    frame: FrameType | None = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
    if frame is not None and frame.f_code.co_name == "_wrap_awaitable":
        return frame.f_locals["awaitable"]
    return coro


def wrapped(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    """A coroutine for an awaitable, as asyncio.ensure_future would make it."""
    return awaitable if asyncio.iscoroutine(awaitable) else _awaited(awaitable)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable

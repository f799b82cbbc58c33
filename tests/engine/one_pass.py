"""A run's loop with the little that an engine does around it: outcomes by name, refusals on record."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from tarry.engine.loop import RunLoop
from tarry.engine.order import RunFuture, RunTask
from tarry.errors import NotDurable


class Parked(BaseException):
    """Stands for the engine's own pause."""


class OnePass:
    """One pass over one body; `wait(name)` is its durable call, `give(name, value)` the outcome."""

    def __init__(self, *, loop: type[RunLoop] = RunLoop, seed: int = 0) -> None:
        self.refused: list[NotDurable] = []
        self.open: dict[str, RunFuture] = {}
        self.log: list[Any] = []
        self.loop = loop(contextvars.copy_context(), self.refused.append, seed=seed)

    def run(self, body: Callable[[OnePass], Coroutine[Any, Any, Any]], limit: int = 100_000) -> RunTask:
        task = self.loop.spawn(body(self), name="body")
        self.loop.pump(limit)
        return task

    async def wait(self, name: str) -> Any:
        self.open[name] = self.loop.create_future()
        return await self.open[name]

    def give(self, name: str, value: Any = None) -> None:
        self.open.pop(name).set_result(value)
        self.loop.pump()

    def park(self) -> list[str]:
        return self.loop.unwind(self.raise_parked)

    def raise_parked(self) -> None:
        for future in self.open.values():
            if not future.done():
                future.set_exception(Parked())


def on_a_worker(work: Callable[[], Any]) -> Any:
    """What `work` returns when a worker's loop calls it, from a plain callback, as it does a pump."""

    async def worker() -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def call() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        asyncio.get_running_loop().call_soon(call)
        return await done

    return asyncio.run(worker())

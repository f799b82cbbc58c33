"""Workflow code outside of a run: an error, or inert plain code, as the process has chosen (rule 3.11)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast
from uuid import UUID

from tarry.clock import SystemClock
from tarry.core.durations import from_ms
from tarry.engine import context
from tarry.engine.context import Run
from tarry.engine.frame import current
from tarry.errors import NotInRun

MODES = ("raise", "inert")
_chosen = {"mode": "raise"}


def choose(mode: str | None) -> None:
    """`"raise"` or `"inert"`, for this process; None leaves it."""
    if mode is None:
        return
    if mode not in MODES:
        raise ValueError(f'outside= (or TARRY_OUTSIDE) is "raise" or "inert", not {mode!r}')
    _chosen["mode"] = mode


def current_run() -> Run[Any]:
    """The run that this code executes in. Outside of one NotInRun, or, where the process has chosen
    outside="inert", a run whose waits return None and whose steps simply call."""
    if current.get() is not None:
        return context.current_run()
    if _chosen["mode"] == "inert":
        return cast("Run[Any]", InertRun())
    raise NotInRun(call="tarry.current_run()")


class InertRun:
    """A run that is none: for calling workflow code as plain code, in tests and scripts."""

    def __init__(self) -> None:
        self.log = logging.LoggerAdapter(logging.getLogger("tarry.run"), {"run": "inert", "workflow": "inert"})
        self.state = None

    id = workflow = "inert"
    parking = False

    @property
    def tags(self) -> dict[str, str]:
        return {}

    async def step(self, name: str, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        value = fn(*args)
        return await value if inspect.isawaitable(value) else value

    async def wait(self, *args: Any, **options: Any) -> None: ...
    async def sleep(self, *args: Any) -> None: ...
    async def sleep_until(self, *args: Any) -> None: ...
    async def receive(self, *args: Any) -> None: ...
    async def ack(self, *args: Any) -> None: ...

    async def first(self, name: str, /, *waits: Any) -> tuple[int, None]:
        for wait in waits:
            wait.close()
        return 0, None

    def messages(self, channel: Any) -> Any:
        return _nothing()

    def fold(self, channel: Any, initial: Any, *, state_type: Any = None) -> Any:
        return InertFold(initial)

    async def now(self, name: str) -> datetime:
        return from_ms(SystemClock().now_ms())

    def uuid(self, name: str) -> UUID:
        return UUID(bytes=blake2b(name.encode(), digest_size=16).digest(), version=4)

    def random(self, name: str) -> float:
        return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) / 2**64

    def on_end(self, fn: Callable[[], Any]) -> None: ...


class InertFold:
    def __init__(self, state: Any) -> None:
        self.state = state

    def __aiter__(self) -> AsyncIterator[Any]:
        return _nothing()


async def _nothing() -> AsyncIterator[Any]:
    return
    yield

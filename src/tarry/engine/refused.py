"""What a body's loop refuses, and the durable call to use instead (rule 3.13).

A loop that lives for one pass can keep no promise of a later time, of a socket or of a thread: a timeout
accepted and never fired would lie. So whatever RunLoop does not offer itself raises NotDurable, at the
call and not at the await. The list is not kept by hand: it is asyncio's own, so that what a later Python
adds is refused too.
"""

from __future__ import annotations

import asyncio
import sys
from types import FrameType
from typing import NoReturn, Protocol, TypeVar

from tarry.errors import NotDurable

PAUSE = "await run.sleep(name, duration)"
LIMIT = "await run.wait(signal, timeout=...)"
STEP = "a step: await run.step(name, fn, *args), which runs on the worker's own loop or threads"

_INSTEAD = {
    "asyncio.sleep": PAUSE,
    "asyncio.as_completed": LIMIT,
    "asyncio.timeout": LIMIT,
    "asyncio.wait": LIMIT,
    "asyncio.wait_for": LIMIT,
    "loop.call_at": f"{PAUSE} to pause or {LIMIT} to limit a wait",
    "loop.call_later": f"{PAUSE} to pause or {LIMIT} to limit a wait",
    "loop.run_forever": "await: the body is running already",
    "loop.run_until_complete": "await: the body is running already",
    "loop.set_task_factory": "the loop's own tasks, which run in the same order in each pass",
    "loop.stop": "return, which ends the run",
}
_OURS = {__name__, "tarry.engine.loop"}
_FUNCTION = {"Timeout.__aenter__": "timeout", "Timeout.reschedule": "timeout"}
_RUN_HANDLE = asyncio.Handle._run.__code__


class Refusing(Protocol):
    """A loop that can refuse a call, and tells its engine of it."""

    def refusal(self, call: str, instead: str) -> NotDurable: ...


L = TypeVar("L", bound=Refusing)


def refuse_the_rest(loop: type[L]) -> type[L]:
    """Class decorator: each public method of asyncio's loops that `loop` does not define is refused."""
    for name in vars(asyncio.AbstractEventLoop):
        if not name.startswith("_") and name not in vars(loop):
            setattr(loop, name, _refusing(name))
    return loop


def refuse(loop: Refusing, method: str) -> NoReturn:
    """Refuses a method of the loop, in the name of the asyncio function that the body called."""
    call = _called(sys._getframe(1)) or f"loop.{method}"  # pyright: ignore[reportPrivateUsage]
    raise loop.refusal(call, _INSTEAD.get(call, STEP))


def _refusing(name: str) -> object:
    def refused(self: Refusing, *args: object, **kwargs: object) -> NoReturn:
        refuse(self, name)

    refused.__name__ = refused.__qualname__ = name
    return refused


def _called(frame: FrameType | None) -> str:
    """The asyncio function through which the body came here, as in `asyncio.sleep`; else ""."""
    while frame is not None and _module(frame) in _OURS:
        frame = frame.f_back
    name = ""
    while frame is not None and _module(frame).startswith("asyncio.") and frame.f_code is not _RUN_HANDLE:
        name = frame.f_code.co_qualname
        frame = frame.f_back
    return name and f"asyncio.{_FUNCTION.get(name, name)}"


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")

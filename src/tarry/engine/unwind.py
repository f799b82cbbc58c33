"""The end of a pass: whatever is left on a run's loop ends now, with that loop running (rule 3.8).

A pass that is parked away, has ended or has lost its lease leaves suspended tasks and generators behind.
Left to the garbage collector, their handlers would run at some later time, inside another run's turn. So
they are asked to end (by the engine's exception, then by cancellation), in bounded rounds, and then closed
by force. Nothing of it decides anything: the engine has latched the pass, and refuses whatever it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import AsyncGeneratorType
from typing import Any, Protocol, TypeVarTuple

from tarry.engine.order import Body, RunTask
from tarry.errors import NotDurable

Ts = TypeVarTuple("Ts")

_CLOSE_ATTEMPTS = 16

# Bodies that answered even GeneratorExit by going on. Memory is the price of never running them again:
# dropped, they would be resumed once more by the collector.
_UNCLOSABLE: list[object] = []


class Unwound(Protocol):
    """What unwinding needs of a loop."""

    @property
    def idle(self) -> bool: ...
    def live_tasks(self) -> list[RunTask]: ...
    def open_generators(self) -> Sequence[AsyncGeneratorType[Any, Any]]: ...
    def abandon(self) -> list[RunTask]: ...
    def close_generator(self, generator: AsyncGeneratorType[Any, Any]) -> None: ...
    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts) -> object: ...
    def pump(self, limit: int) -> None: ...


def unwind(loop: Unwound, raise_in: Callable[[], None] | None, rounds: int) -> list[str]:
    """Ends all tasks and async generators of the loop; the names of those that ended only by force."""
    forced: list[str] = []
    for _ in range(3):  # what is closed by force may begin something new
        _ask_to_end(loop, raise_in, rounds)
        if not loop.live_tasks():
            break
        forced += _close_tasks(loop)
    for generator in loop.open_generators():
        forced.append(generator.__qualname__)
        _UNCLOSABLE.append(generator)
    return forced


def _ask_to_end(loop: Unwound, raise_in: Callable[[], None] | None, rounds: int) -> None:
    for _ in range(rounds):
        if raise_in is not None:
            raise_in()
        _settle(loop)
        if not _press(loop):
            return
    _settle(loop)


def _press(loop: Unwound) -> bool:
    """Cancels the tasks that are left; when there are none, closes the generators. False: nothing is left."""
    if tasks := loop.live_tasks():
        for task in tasks:
            task.cancel()
        return True
    generators = loop.open_generators()
    for generator in generators:
        loop.close_generator(generator)
    return bool(generators)


def _close_tasks(loop: Unwound) -> list[str]:
    tasks = loop.abandon()
    for task in tasks:
        loop.call_soon(_close, task.get_coro())
    _settle(loop)
    return [task.get_name() for task in tasks]


def _close(coro: Body) -> None:
    for _ in range(_CLOSE_ATTEMPTS):
        try:
            return coro.close()
        except BaseException:  # it ended with this one, or awaits again: closing once more tells
            continue
    _UNCLOSABLE.append(coro)


def _settle(loop: Unwound) -> None:
    """Pumps, but no longer than the ending of so many tasks can take: a body that spins is cancelled next."""
    if loop.idle:
        return
    try:
        loop.pump(1_000 + 20 * len(loop.live_tasks()))
    except NotDurable:
        return

"""One thread, virtual time and a seed: the loop on which a whole cluster runs.

A process is a queue of callbacks. Within one process asyncio's order is first in, first out, and the engine
may count on that; *between* processes anything may happen, so which one runs next is the seed's choice. Time
stands still while anybody has something to do and jumps to the next timer when nobody has, so that an idle
year costs nothing.

A killed process never runs again: its callbacks are dropped but kept referenced, so that no `finally`, no
`except` and no `__del__` of it runs either. That is a kill; `Task.cancel()` is not.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, Protocol, TypeVarTuple

Ts = TypeVarTuple("Ts")

STEPS = 200_000


class Stalled(Exception):
    """The simulation itself does not come to an end: what it simulates spins, or waits for nothing."""


class Process:
    """What can be killed and paused as one. Callbacks belong to the process in whose context they were made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.held_until = 0.0
        self.ready: deque[asyncio.Handle] = deque()
        self.dropped: list[asyncio.Handle] = []
        self.priority = 0.0
        self.context = copy_context()
        self.context.run(PROCESS.set, self)

    def kill(self) -> None:
        self.alive = False
        self.dropped.extend(self.ready)
        self.ready.clear()

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Calls fn as code of this process."""
        return self.context.copy().run(fn, *args)

    def __repr__(self) -> str:
        return self.name


PROCESS: ContextVar[Process | None] = ContextVar("tarry_sim_process", default=None)


class Policy(Protocol):
    """Which of the processes that have something to do runs next."""

    def pick(self, runnable: Sequence[Process], step: int) -> Process: ...


class Uniform:
    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def pick(self, runnable: Sequence[Process], step: int) -> Process:
        return runnable[int(self._chance.random() * len(runnable))]


class InTurn:
    """The one that has waited longest."""

    def __init__(self) -> None:
        self._last: dict[Process, int] = {}

    def pick(self, runnable: Sequence[Process], step: int) -> Process:
        chosen = min(runnable, key=lambda process: self._last.get(process, -1))
        self._last[chosen] = step
        return chosen


class ByPriority:
    """Random priorities that change at a few random steps: what finds bugs of small depth soonest (PCT)."""

    def __init__(self, chance: Random, changes: int, length: int = 2_000) -> None:
        self._chance = chance
        self._changes = {int(chance.random() * length) for _ in range(changes)}

    def pick(self, runnable: Sequence[Process], step: int) -> Process:
        for process in runnable:
            process.priority = process.priority or self._chance.random() + 1
        chosen = max(runnable, key=lambda process: process.priority)
        if step in self._changes:
            chosen.priority = self._chance.random()
        return chosen


class OneSlow:
    """One process gets its turn rarely, whatever it has to do."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._slow: Process | None = None

    def pick(self, runnable: Sequence[Process], step: int) -> Process:
        if self._slow is None:
            self._slow = runnable[int(self._chance.random() * len(runnable))]
        others = [process for process in runnable if process is not self._slow]
        among = others if others and self._chance.random() < 0.9 else runnable
        return among[int(self._chance.random() * len(among))]


def policy(chance: Random) -> Policy:
    kind = chance.randrange(5)
    if kind == 0:
        return InTurn()
    if kind == 1:
        return ByPriority(chance, 1 + chance.randrange(4))
    return OneSlow(chance) if kind == 2 else Uniform(chance)


class SimLoop(asyncio.BaseEventLoop):
    """asyncio's loop without a selector: nothing comes from outside."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.set_debug(False)
        self.steps = 0
        self.world = Process("world")
        self.processes: list[Process] = [self.world]
        self._all: list[Process] = [self.world]
        self._policy = policy
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._halted = False

    def time(self) -> float:
        return self._now

    def process(self, name: str) -> Process:
        made = Process(name)
        self.processes.append(made)
        self._all.append(made)
        return made

    def revive(self) -> None:
        """The dead and the paused go on, so that they can be ended properly."""
        self.steps = 0
        for process in self._all:
            process.alive, process.held_until = True, 0.0
            process.ready.extend(process.dropped)
            process.dropped.clear()
        self.processes = list(self._all)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def stop(self) -> None:
        self._halted = True
        super().stop()

    # What asyncio's loop calls of itself.

    def _call_soon(self, callback: Callable[..., object], args: Any, context: Context | None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._queue(handle)
        return handle

    def _queue(self, handle: asyncio.Handle) -> None:
        owner = handle._context.get(PROCESS) or self.world
        if owner.alive:
            owner.ready.append(handle)
        else:
            owner.dropped.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio counts cancelled timers here; this loop meets them when they are due."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""

    def _run_once(self) -> None:
        self._halted = False
        while not self._halted:
            self._step()

    def _step(self) -> None:
        runnable = [p for p in self.processes if p.ready and p.held_until <= self._now]
        if not runnable:
            self._jump()
            return
        self.steps += 1
        if self.steps > STEPS:
            raise Stalled(f"{STEPS} steps and no end; at {self._now:.3f} s")
        process = runnable[0] if len(runnable) == 1 else self._policy.pick(runnable, self.steps)
        handle = process.ready.popleft()
        if not handle.cancelled():
            handle._run()

    def _jump(self) -> None:
        """To the next instant at which somebody has something to do."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        instants = [p.held_until for p in self.processes if p.ready]
        instants += [self._timers[0][0]] if self._timers else []
        if not instants:
            raise Stalled("nobody has anything to do, now or later")
        self._now = max(self._now, min(instants))
        while self._timers and self._timers[0][0] <= self._now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._queue(handle)

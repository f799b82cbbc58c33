"""A worker: claims due runs, takes each through its pass, and keeps one lease for all of them (rule 11).

It is woken by commits in its own process, by datagrams, by the next due instant, and by a slow poll. Its
heartbeat runs in a thread of its own, so that a blocked loop does not cost the lease; a loop that stays
blocked is reported with its stack, and after a while no longer vouched for.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

from tarry.core.commands import Advance, Release
from tarry.core.journal import Journal
from tarry.engine.resume import Pass
from tarry.engine.workflow import Registry
from tarry.errors import LeaseLost
from tarry.store.fold import Notes
from tarry.store.protocol import Store
from tarry.store.sweeps import ClaimDue

LOG = logging.getLogger("tarry.worker")

CLAIM_BATCH = 200
POLL_S = 0.1
LONGEST_S = 60.0
DRAIN_S = 5.0
GIVE_UP_S = 10.0


class Committer(Protocol):
    """The writer, as a worker needs it."""

    def submit(self, item: Any, done: Callable[[Any], None], documents: Mapping[str, bytes] = ...) -> None: ...
    async def commit(self, item: Any, documents: Mapping[str, bytes] = ...) -> Any: ...


class Runner:
    """The part of a worker that holds runs: also what drives a single one (rule 6.3)."""

    def __init__(
        self, id: str, store: Store, writer: Committer, registry: Registry, pool: ThreadPoolExecutor | None
    ) -> None:
        self.id = id
        self.loop = asyncio.get_running_loop()
        self.held: dict[str, Pass] = {}
        self.pool = pool
        self.on_over: Callable[[Pass], None] = lambda turn: None
        self._store = store
        self._writer = writer
        self._registry = registry
        self._tasks: set[asyncio.Task[Any]] = set()
        self._idle: asyncio.Future[None] | None = None

    async def claim(self, limit: int, only: list[tuple[str, str]] | None = None) -> int:
        """Claims due runs and starts their passes; how many. Raises LeaseLost."""
        sweep = ClaimDue(self.id, limit, self._registry.accepts, only)
        claimed: list[Journal] | LeaseLost = await self._writer.commit(sweep, self._registry.documents)
        if isinstance(claimed, LeaseLost):
            raise claimed
        for journal in claimed:
            self._take(journal)
        return len(claimed)

    def _take(self, journal: Journal) -> None:
        workflow = self._registry.find(journal.run.workflow)
        assert workflow is not None
        stale = self.held.pop(journal.run.id, None)
        if stale is not None:
            stale.lose()
        turn = self.held[journal.run.id] = Pass(self, workflow, journal)
        self.loop.call_soon(turn.start)

    # --- what a pass needs of its host ---

    def submit(self, command: Advance, done: Callable[[Any], None], documents: Mapping[str, bytes]) -> None:
        self._writer.submit(command, done, documents)

    def spawn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(coro)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_done)
        return task

    def _spawned_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a fault of the engine in a step", exc_info=error)

    async def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        """A plain function, in the pool: never on the loop (rule 11.2)."""
        if self.pool is None:
            return fn(*args)
        context = contextvars.copy_context()
        return await self.loop.run_in_executor(self.pool, lambda: context.run(fn, *args))

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def later(self, delay_s: float, fn: Callable[[], Any]) -> asyncio.TimerHandle:
        return self.loop.call_later(delay_s, fn)

    def now_ms(self) -> int:
        return self._store.clock.now_ms()

    def over(self, turn: Pass) -> None:
        if self.held.get(turn.run.id) is turn:
            del self.held[turn.run.id]
        if not self.held and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        self.on_over(turn)

    async def idle(self) -> None:
        """Until nothing is held."""
        while self.held:
            self._idle = self.loop.create_future()
            await self._idle

    async def drain(self, wait_s: float = DRAIN_S) -> None:
        """Lets all runs go: steps in progress get `wait_s` to be recorded, the rest is ready for others."""
        steps = [task for task in self._tasks if not task.done()]
        if steps and wait_s:
            await asyncio.wait(steps, timeout=wait_s)
        for turn in list(self.held.values()):
            turn.give_up(Release())
        with suppress(TimeoutError):
            await asyncio.wait_for(self.idle(), GIVE_UP_S)
        self.abandon()

    def abandon(self) -> None:
        """The lease is lost: nothing that is held may write any more."""
        for turn in list(self.held.values()):
            turn.lose()


class Worker:
    """Claims for ever, until stopped."""

    def __init__(
        self, runner: Runner, store: Store, registry: Registry, *, concurrency: int, poll_s: float = POLL_S
    ) -> None:
        self._runner = runner
        self._store = store
        self._registry = registry
        self._concurrency = concurrency
        self._poll_s = poll_s
        self._woken = asyncio.Event()
        self._stopping = self._lost = False
        self._change = -1
        runner.on_over = lambda turn: self._made_room()

    def heard(self, data: bytes) -> None:
        """A datagram, or a note of this process: a run's id is a nudge, anything else means: look."""
        turn = self._runner.held.get(data.decode(errors="replace")) if data != b"\0" else None
        if turn is not None:
            turn.nudge()
        else:
            self._woken.set()

    def noted(self, notes: Notes) -> None:
        for run_id, worker in notes.nudges:
            if worker == self._runner.id and (turn := self._runner.held.get(run_id)) is not None:
                turn.nudge()
        if notes.ready:
            self._woken.set()

    def look(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    def lose(self) -> None:
        """The lease is over: `run` raises LeaseLost."""
        self._lost = True
        self._woken.set()

    def _made_room(self) -> None:
        if len(self._runner.held) == self._concurrency - 1:
            self._woken.set()

    async def run(self) -> None:
        """Until stopped. Raises LeaseLost, and the errors of the store."""
        while not self._stopping:
            if self._lost:
                raise LeaseLost(run_id="*", epoch=0)
            self._woken.clear()
            room = self._concurrency - len(self._runner.held)
            claimed = 0
            if room > 0 and self._store.due(list(self._registry.accepts)):
                claimed = await self._runner.claim(min(room, CLAIM_BATCH))
            if not claimed or room <= claimed:
                await self._sleep()
            else:
                await asyncio.sleep(0)

    async def _sleep(self) -> None:
        """Until woken, until the next run is due, or until the poll sees that somebody else has written."""
        due_ms = self._store.next_due_ms(list(self._registry.accepts))
        now_ms = self._store.clock.now_ms()
        left_s = LONGEST_S if due_ms is None else min(LONGEST_S, (due_ms - now_ms) / 1000)
        full = len(self._runner.held) >= self._concurrency
        end = self._runner.loop.time() + (LONGEST_S if full else max(left_s, 0.001))
        while not self._woken.is_set():
            left = end - self._runner.loop.time()
            if left <= 0 or self._changed():
                return
            try:
                await asyncio.wait_for(self._woken.wait(), min(left, self._poll_s))
            except TimeoutError:
                continue

    def _changed(self) -> bool:
        before, self._change = self._change, self._store.change()
        return before != self._change

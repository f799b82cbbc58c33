"""A worker in this process: its row and lease, its socket, its heartbeat, and its end (rule 11).

The heartbeat has a thread of its own, since the lease must not depend on a loop that user code can block. It
watches that loop as well: one that does not answer is reported with its stack, and in the end no longer
vouched for, so that others take its runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType

from tarry.clock import elapsed_s, new_id
from tarry.core.commands import Advance, Release
from tarry.engine.wake import Mailbox, Wakeups
from tarry.engine.worker import Runner, Worker
from tarry.engine.workflow import Registry
from tarry.errors import LeaseLost, TarryError
from tarry.model import WorkerRecord
from tarry.store.fold import Notes
from tarry.store.protocol import Store
from tarry.store.sweeps import Beat, Leave, Register
from tarry.store.writer import Writer

LOG = logging.getLogger("tarry.worker")


@dataclass(frozen=True)
class WorkerOptions:
    """`concurrency`: runs held at once. `threads`: for plain functions as steps. `lease_s`: how long a dead
    worker's runs stay its own. `stuck_after_s`: when a loop that does not answer is reported."""

    concurrency: int = 1000
    threads: int = 32
    lease_s: float = 10.0
    stuck_after_s: float = 60.0
    drain_s: float = 5.0


class HostedWorker:
    """`async with`: works from entering to leaving; `wait()` until it is stopped. `claims=False`: it holds a lease
    and runs what `runner` is told to claim."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        wakeups: Wakeups,
        registry: Registry,
        options: WorkerOptions,
        *,
        claims: bool = True,
    ) -> None:
        self._store = store
        self._writer = writer
        self._wakeups = wakeups
        self._registry = registry
        self._options = options
        self._claims = claims
        self._stopping = False
        self._strays: set[tuple[str, int]] = set()

    async def __aenter__(self) -> HostedWorker:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._pool = ThreadPoolExecutor(self._options.threads, thread_name_prefix="tarry-step")
        self._mailbox = Mailbox(self._loop, self._heard)
        await self._begin()
        self._task = self._loop.create_task(self._work())
        self._heart = Heart(self._options, self._beat, self._loop, self._thread_id)
        self._heart.start()
        return self

    async def _begin(self) -> None:
        """A fresh incarnation: an id that no one else had, a row, a lease, and nothing held."""
        self.id = new_id("worker")
        self.runner = Runner(self.id, self._store, self._writer, self._registry, self._pool)
        concurrency = self._options.concurrency if self._claims else 0
        self._worker = Worker(self.runner, self._store, self._registry, concurrency=concurrency)
        self._record = self._new_record()
        await self._writer.commit(Register(self._record))
        self._wakeups.listen(self._noted, self.id)

    def _new_record(self) -> WorkerRecord:
        clock = self._store.clock
        return WorkerRecord(
            id=self.id,
            boot=clock.boot,
            lease_until_ms=clock.lease_ms() + self._lease_ms,
            address=self._mailbox.address,
            host=socket.gethostname(),
            pid=os.getpid(),
            workflows=tuple(sorted(self._registry.accepts)),
            started_ms=clock.now_ms(),
            beat_ms=clock.now_ms(),
        )

    @property
    def _lease_ms(self) -> int:
        return round(self._options.lease_s * 1000)

    async def _work(self) -> None:
        """One incarnation after the other, until it is stopped. Errors of the store are not the end of a worker."""
        while not self._stopping:
            try:
                await self._worker.run()
            except LeaseLost:
                LOG.warning("worker %s lost its lease; it goes on under a new id", self.id)
                self._wakeups.forget(self._noted, self.id)
                self.runner.abandon()
                await self._begin_again()
            except Exception as error:
                await self._recover(error)

    async def _begin_again(self) -> None:
        while not self._stopping:
            try:
                return await self._begin()
            except Exception as error:
                await self._recover(error)

    async def _recover(self, error: Exception) -> None:
        known = isinstance(error, TarryError)
        LOG.error("worker %s: %s", self.id, error, exc_info=None if known else error)
        await asyncio.sleep(self._options.lease_s / 10)

    async def wait(self) -> None:
        while not self._task.done():
            await asyncio.wait([self._task])

    def stop(self) -> None:
        """Claims nothing any more; leaving the context lets go of what is held (rule 11.4)."""
        self._stopping = True
        self._worker.stop()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        await self._task
        await self.runner.drain(self._options.drain_s)
        await asyncio.to_thread(self._heart.stop)
        self._wakeups.forget(self._noted, self.id)
        self._mailbox.close()
        await self._writer.commit(Leave(self.id))
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- wake-ups, from whatever thread ---

    def _heard(self, data: bytes) -> None:
        self._worker.heard(data)

    def _noted(self, notes: Notes) -> None:
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(self._worker.noted, notes)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._worker.noted, notes)

    # --- the heartbeat's thread ---

    def _beat(self) -> None:
        clock = self._store.clock
        until = clock.lease_ms() + self._lease_ms
        self._record = replace(self._record, lease_until_ms=until, beat_ms=clock.now_ms())
        try:
            held = self._writer.commit_sync(Beat(self._record))
        except LeaseLost:
            self._loop.call_soon_threadsafe(self._lost, self.id)
            return
        except Exception as error:  # the thread must live: the next beat may succeed
            LOG.error("worker %s: its heartbeat failed: %s", self.id, error)
            return
        self._loop.call_soon_threadsafe(self._compare, held)

    def _lost(self, worker: str) -> None:
        if worker == self.id:
            self._worker.lose()

    def _compare(self, leased: list[tuple[str, int]]) -> None:
        """Gives back what is leased to this worker but not held: a claim whose answer was lost (rule 11.4). One
        seen twice in a row, since the answer of a claim may be on its way."""
        mine = {(turn.run.id, turn.run.epoch) for turn in self.runner.held.values()}
        strays = set(leased) - mine
        for run_id, epoch in strays & self._strays:
            self._writer.submit(Advance(run_id, self.id, epoch, end=Release()), lambda result: None)
        self._strays = strays
        self._worker.look()


class Heart(threading.Thread):
    def __init__(
        self,
        options: WorkerOptions,
        beat: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        thread_id: int,
    ) -> None:
        super().__init__(name="tarry-heart", daemon=True)
        self._options = options
        self._beat = beat
        self._loop = loop
        self._thread_id = thread_id
        self._stopped = threading.Event()
        self._answered = elapsed_s()
        self._reported = False

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        while not self._stopped.wait(self._options.lease_s / 3):
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(self._answer)
            if self._vouched():
                self._beat()

    def _answer(self) -> None:
        self._answered = elapsed_s()
        self._reported = False

    def _vouched(self) -> bool:
        """Whether the loop is alive, or may still be (rule 11.2)."""
        silent_s = elapsed_s() - self._answered
        if silent_s > self._options.stuck_after_s and not self._reported:
            self._reported = True
            frame = sys._current_frames().get(self._thread_id)  # pyright: ignore[reportPrivateUsage]
            stack = "".join(traceback.format_stack(frame)) if frame is not None else "?"
            LOG.error("the worker's loop has not answered for %.0f s; it is here:\n%s", silent_s, stack)
        return silent_s <= 3 * self._options.stuck_after_s

"""The writer: one per process and store; it commits for all callers, sync and async.

Group commit: while one transaction is being written, the next batch gathers. A caller on an event loop hands
in what its turn of the loop has collected; where commits are short and nobody else is writing, that batch is
committed right there, without a hop to the thread (a third more on a channel). How long commits take is
measured, so that a slow disk never blocks a loop.

A caller gets its result, or the exception that is its result, always after the commit and never from inside
`submit`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tarry.clock import elapsed_s, new_id
from tarry.core.commands import Command
from tarry.errors import Closed, CommitUnknown, StoreBusy, StoreError, StoreReadOnly, TarryError
from tarry.store.batch import Batch
from tarry.store.fold import Notes
from tarry.store.protocol import Store
from tarry.store.sweeps import Sweep

BATCH = 500
INLINE_S = 0.0015
IDLE_S = 1.0

Done = Callable[[Any], None]
Item = Command | Sweep
NO_DOCUMENTS: Mapping[str, bytes] = {}


@dataclass(frozen=True)
class Job:
    """One thing to commit, whom to tell, and on which loop (None: on whatever thread commits)."""

    item: Item
    done: Done
    loop: asyncio.AbstractEventLoop | None
    documents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class Writer:
    def __init__(self, store: Store, on_commit: Callable[[Notes], None]) -> None:
        self._store = store
        self._on_commit = on_commit
        self._queue: deque[Job] = deque()
        self._gathering: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        self._wake = threading.Condition()
        self._turn = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._commit_s = 0.0
        self._id = new_id("batch")
        self._batches = 0

    # --- callers ---

    def submit(self, item: Item, done: Done, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> None:
        """From a callback or task of an event loop: `done` is called on that loop, after the commit."""
        loop = asyncio.get_running_loop()
        jobs = self._gathering.get(loop)
        if jobs is None:
            jobs = self._gathering[loop] = []
            loop.call_soon(self._flush, loop)
        jobs.append(Job(item, done, loop, documents))

    async def commit(self, item: Item, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> Any:
        """The item's result, once it is durable. A caller that is cancelled meanwhile has still committed."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.submit(item, lambda result: _resolve(future, result), documents)
        return await future

    def commit_sync(self, item: Item, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> Any:
        """The same for a thread without a loop."""
        future: Future[Any] = Future()
        self._enqueue([Job(item, lambda result: _resolve(future, result), None, documents)])
        return future.result()

    def close(self) -> None:
        """Commits what is queued, and stops."""
        with self._wake:
            self._closed = True
            self._wake.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    # --- on a loop ---

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = self._gathering.pop(loop)
        if self._commit_s > INLINE_S or self._queue or not self._try_inline(jobs):
            self._enqueue(jobs)

    def _try_inline(self, jobs: list[Job]) -> bool:
        if self._closed or not self._turn.acquire(blocking=False):
            return False
        try:
            told = self._write(jobs[:BATCH], wait=False)
        finally:
            self._turn.release()
        if told is None:
            return False
        if jobs[BATCH:]:
            self._enqueue(jobs[BATCH:])
        _tell(told)
        return True

    # --- in the thread ---

    def _enqueue(self, jobs: list[Job]) -> None:
        with self._wake:
            if self._closed:
                raise Closed(what="app")
            self._queue.extend(jobs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tarry-writer", daemon=True)
                self._thread.start()
            self._wake.notify()

    def _run(self) -> None:
        while jobs := self._gather():
            with self._turn:
                told = self._write(jobs, wait=True)
            assert told is not None
            _tell_each_loop(told)

    def _gather(self) -> list[Job]:
        """The next batch; empty once closed and drained."""
        with self._wake:
            while not self._queue and not self._closed:
                if not self._wake.wait(IDLE_S):
                    self._tidy()
            return [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]

    def _tidy(self) -> None:
        if self._turn.acquire(blocking=False):
            try:
                self._store.tidy()
            except TarryError:
                pass  # housekeeping: the next idle second tries again
            finally:
                self._turn.release()

    # --- one transaction ---

    def _write(self, jobs: list[Job], *, wait: bool) -> list[tuple[Job, Any]] | None:
        """Each job with its result. None: another process is writing, and `wait` is off."""
        try:
            results = self._transact(jobs, wait=wait)
        except (StoreBusy, StoreReadOnly, CommitUnknown) as error:
            results = [error] * len(jobs)
        except Exception as error:
            results = self._singly(jobs, error)
        return None if results is None else list(zip(jobs, results, strict=True))

    def _singly(self, jobs: list[Job], error: Exception) -> list[Any]:
        """Something in the batch broke it: each on its own, so that only the guilty one fails."""
        if len(jobs) == 1:
            return [error]
        told: list[Any] = []
        for job in jobs:
            pair = self._write([job], wait=True)
            assert pair is not None
            told.append(pair[0][1])
        return told

    def _transact(self, jobs: list[Job], *, wait: bool) -> list[Any] | None:
        documents = {digest: text for job in jobs for digest, text in job.documents.items()}
        while True:
            tx = self._store.begin(wait=wait)
            if tx is None:
                return None
            batch = Batch([job.item for job in jobs], documents)
            self._batches += 1
            name = f"{self._id}.{self._batches}"
            with tx:
                batch.run(tx)
                began = elapsed_s()
                try:
                    tx.commit(name)
                except CommitUnknown as unknown:
                    if not self._landed(name, unknown):
                        continue
                self._commit_s += (elapsed_s() - began - self._commit_s) * 0.2
            if batch.notes:
                self._on_commit(batch.notes)
            return batch.results

    def _landed(self, batch: str, unknown: CommitUnknown) -> bool:
        """Where it cannot even be looked up, its callers are told so: run again, what landed would be answered as
        a repetition of itself."""
        try:
            return self._store.landed(batch)
        except StoreError as error:
            raise unknown from error


def _resolve(future: asyncio.Future[Any] | Future[Any], result: Any) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _tell(told: list[tuple[Job, Any]]) -> None:
    for job, result in told:
        job.done(result)


def _tell_each_loop(told: list[tuple[Job, Any]]) -> None:
    """One hop per loop for all its results: a hop each would cost more than the commit."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Job, Any]]] = {}
    for job, result in told:
        by_loop.setdefault(job.loop, []).append((job, result))
    for loop, mine in by_loop.items():
        if loop is None:
            _tell(mine)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_tell, mine)

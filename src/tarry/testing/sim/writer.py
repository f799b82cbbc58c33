"""The writer without its thread: the same batches and the same answers, with time between them.

Gathering, the transaction, the look-up after an unknown commit and the single runs after a failed batch are
the real ones; only who calls them when is simulated. A process may be killed in each of the gaps: before the
commit, or after it and before the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tarry.store.fold import Notes
from tarry.store.protocol import Store
from tarry.store.writer import BATCH, NO_DOCUMENTS, Item, Job, Writer
from tarry.testing.sim.faults import Faults
from tarry.testing.sim.store import SimStore

Told = Callable[[Sequence[Any], Sequence[Any]], None]


class SimWriter(Writer):
    """`told` hears of each committed batch whose results became known."""

    def __init__(self, store: SimStore, on_commit: Callable[[Notes], None], faults: Faults, told: Told) -> None:
        super().__init__(cast("Store", store), on_commit)
        self._facade = store
        self._faults = faults
        self._on_told = told
        self._busy = False

    def commit_sync(self, item: Item, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> Any:
        raise RuntimeError("a simulated process has one thread")

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        self._queue.extend(self._gathering.pop(loop))
        if not self._busy:
            self._next(loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._busy = bool(self._queue)
        if self._busy:
            loop.call_later(self._faults.latency_s(), self._commit_next, loop)

    def _commit_next(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
        told = self._write(jobs, wait=True)
        assert told is not None
        loop.call_later(self._faults.latency_s(), self._answer, loop, told)

    def _answer(self, loop: asyncio.AbstractEventLoop, told: list[tuple[Job, Any]]) -> None:
        self._next(loop)
        for job, result in told:
            job.done(result)

    def _transact(self, jobs: list[Job], *, wait: bool) -> list[Any] | None:
        items = self._facade.items = [job.item for job in jobs]
        results = super()._transact(jobs, wait=wait)
        if results is not None:
            self._on_told(items, results)
        return results

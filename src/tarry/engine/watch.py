"""Waiting for runs to end: one look at the store for all who wait in this process (rule 2.2)."""

from __future__ import annotations

import asyncio
import logging
import threading

from tarry.core.states import ENDS
from tarry.errors import StoreError
from tarry.store.fold import Notes
from tarry.store.protocol import Store

LOG = logging.getLogger("tarry.engine")

LOOK_S = 0.02


class Watch:
    """Ends committed by this process are heard at once; those of others when the store has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._lock = threading.Lock()
        self._pollers: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    def noted(self, notes: Notes) -> None:
        for run_id in notes.ended:
            self._tell(run_id)

    def _tell(self, run_id: str) -> None:
        with self._lock:
            waiters = self._waiters.pop(run_id, set())
        for future in waiters:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_set, future)

    async def ended(self, run_id: str) -> None:
        """Returns when the run may have ended. Who waits here can be cancelled; the run does not notice."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._waiters.setdefault(run_id, set()).add(future)
        poller = self._pollers.get(loop)
        if poller is None or poller.done():
            self._pollers = {known: task for known, task in self._pollers.items() if not task.done()}
            self._pollers[loop] = loop.create_task(self._poll())
        try:
            await future
        finally:
            with self._lock:
                self._waiters.get(run_id, set()).discard(future)
                if not self._waiters.get(run_id, True):
                    del self._waiters[run_id]

    async def _poll(self) -> None:
        """A store that fails for a moment (a reader beside a recovery) is looked at again: who waits here has
        nobody else to wake it."""
        change: int | None = None
        while self._waiters:
            try:
                seen = self._store.change()
                if seen != change:
                    self._look()
                    change = seen
            except StoreError as error:
                LOG.warning("looking for runs that have ended: %s", error)
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        with self._lock:
            wanted = list(self._waiters)
        for start in range(0, len(wanted), 500):
            found = self._store.statuses(wanted[start : start + 500])
            for run_id, status in found.items():
                if status in ENDS:
                    self._tell(run_id)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

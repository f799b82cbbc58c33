"""The machinery of one App in one process: its store, its writer, and who hears of commits."""

from __future__ import annotations

import os
from datetime import datetime

from tarry.clock import new_id
from tarry.core import durations
from tarry.core.retry import Duration
from tarry.engine.wake import Wakeups
from tarry.engine.watch import Watch
from tarry.errors import BadStoreUrl
from tarry.store.opening import open_store
from tarry.store.protocol import Sealer, Store
from tarry.store.writer import Writer


class Core:
    """Belongs to the process that made it: `pid` tells a fork."""

    def __init__(self, source: str | Store | None, sealer: Sealer | None) -> None:
        self.pid = os.getpid()
        self.store = _open(source, sealer)
        self.wakeups = Wakeups(self.store)
        self.watch = Watch(self.store)
        self.wakeups.listen(self.watch.noted)
        self.writer = Writer(self.store, self.wakeups.committed)

    def new_run_id(self) -> str:
        return new_id("run")

    def instant_ms(self, when: datetime | Duration) -> int:
        """An instant, or a duration from now by the store's clock."""
        if isinstance(when, datetime):
            return durations.instant_ms(when)
        return self.store.clock.now_ms() + durations.at_least_zero_ms(when)

    def close(self) -> None:
        self.writer.close()
        self.wakeups.close()
        self.store.close()


def _open(source: str | Store | None, sealer: Sealer | None) -> Store:
    if source is None:
        source = os.environ.get("TARRY_STORE")
    if not source:
        raise BadStoreUrl(url="nothing", reason="App() got no URL, and TARRY_STORE is not set")
    return open_store(source, sealer=sealer) if isinstance(source, str) else source

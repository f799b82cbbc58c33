"""One store shared by all processes, seen by each through a facade that fails.

The store is a real one; the facade only decides whether a transaction begins, commits and is answered. A
commit that landed is told to the oracle at that very instant, whatever the process hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from tarry.errors import StoreError
from tarry.store.protocol import Store, Transaction
from tarry.testing.sim.faults import Faults
from tarry.testing.sim.loop import SimLoop

START_MS = 1_800_000_000_000


class SimClock:
    """The store's clock; `skew_ms` is how far a process's own idea of the time is off."""

    boot = "boot-1"

    def __init__(self, loop: SimLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self._skew_ms = skew_ms

    def now_ms(self) -> int:
        return START_MS + self._skew_ms + round(self._loop.time() * 1000)

    def lease_ms(self) -> int:
        return 1_000_000 + round(self._loop.time() * 1000)


Landed = Callable[[Sequence[Any]], None]


class SimStore:
    """`items` is what the process is committing just now. Reads go straight to the real store."""

    def __init__(
        self, real: Store, clock: SimClock, faults: Faults, landed: Landed, untold: Callable[[], None]
    ) -> None:
        self._real = real
        self._faults = faults
        self._on_landed = landed
        self._on_untold = untold
        self._batches: set[str] = set()
        self.clock = clock
        self.items: Sequence[Any] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def begin(self, *, wait: bool = True) -> Any:
        self._faults.on_begin()
        tx = self._real.begin(wait=wait)
        return None if tx is None else SimTransaction(self, tx, self._faults)

    def commit(self, tx: Transaction, batch: str) -> None:
        self._faults.before_commit()
        tx.commit(batch)
        self._batches.add(batch)
        self._on_landed(self.items)
        self._faults.after_commit()

    def landed(self, batch: str) -> bool:
        try:
            self._faults.on_look_up()
        except StoreError:
            if batch in self._batches:
                self._on_untold()
            raise
        return batch in self._batches

    def tidy(self) -> None: ...

    def close(self) -> None: ...


class SimTransaction:
    def __init__(self, store: SimStore, real: Transaction, faults: Faults) -> None:
        self._store = store
        self._real = real
        self.now_ms = real.now_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> SimTransaction:
        self._real.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._real.__exit__(kind, error, trace)

    def commit(self, batch: str = "") -> None:
        self._store.commit(self._real, batch)

"""The suite that every store has to pass. Whoever writes one runs it so:

    import pytest
    from tarry.testing.conformance import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda clock, name="a": MyStore(tmp_path / name, clock)

`open_store(clock, name)` opens the store `name`, empty when it is first opened; opened again under the same name
while it is open, it is another process's connection to the same data. A store that lives in one process gives the
same store back. The suite steps the clock that it passes, sleeps never, and drives the store only through the seam
(`tarry.store.protocol`). `pytest.register_assert_rewrite("tarry.testing")` in conftest.py makes its failures
readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from tarry.store.protocol import Store
from tarry.testing.clock import ManualClock
from tarry.testing.conformance_batches import BatchConformance
from tarry.testing.conformance_driver import Driver
from tarry.testing.conformance_lists import ListConformance
from tarry.testing.conformance_values import ValueConformance
from tarry.testing.conformance_workers import WorkerConformance


class OpenStore(Protocol):
    def __call__(self, clock: ManualClock, name: str = "a") -> Store: ...


class StoreConformance(BatchConformance, ListConformance, ValueConformance, WorkerConformance):
    """All of it. `driver` is one process at a store, `other` another one at the same, `twin` one at a second store."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        raise NotImplementedError("a fixture `open_store` has to say how the store is opened")

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def driver(self, open_store: OpenStore, clock: ManualClock) -> Iterator[Driver]:
        store = open_store(clock)
        yield Driver(store, clock)
        store.close()

    @pytest.fixture
    def twin(self, open_store: OpenStore) -> Iterator[Driver]:
        clock = ManualClock()
        store = open_store(clock, "b")
        yield Driver(store, clock)
        store.close()

    @pytest.fixture
    def other(self, open_store: OpenStore, clock: ManualClock, driver: Driver) -> Iterator[Driver]:
        store = open_store(clock)
        yield driver if store is driver.store else Driver(store, clock)
        store.close()

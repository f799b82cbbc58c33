"""The stores that come with Tarry pass the suite that anybody's store has to pass."""

from pathlib import Path

import pytest

from tarry.store.memory import MemoryStore
from tarry.store.opening import open_store
from tarry.store.protocol import Store
from tarry.testing.clock import ManualClock
from tarry.testing.conformance import OpenStore, StoreConformance


class TestMemory(StoreConformance):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        stores: dict[str, Store] = {}
        return lambda clock, name="a": stores.setdefault(name, MemoryStore(clock))


class TestSqliteInMemory(StoreConformance):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        stores: dict[str, Store] = {}

        def open_(clock: ManualClock, name: str = "a") -> Store:
            if name not in stores:
                stores[name] = open_store("sqlite://:memory:", clock=clock)
            return stores[name]

        return open_


class TestSqliteFile(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda clock, name="a": open_store(f"sqlite:///{tmp_path / name}.db", clock=clock)

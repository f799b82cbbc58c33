"""`lab`: an App whose runs are driven step by step, under a clock that only the test moves, on each store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tarry.store.memory import MemoryStore
from tarry.store.opening import open_store
from tarry.testing.clock import ManualClock
from tests.engine.lab import Lab


@pytest.fixture(params=["memory", "sqlite"])
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Lab]:
    clock = ManualClock()
    if request.param == "memory":
        made = Lab(clock, lambda: store)
        store = MemoryStore(clock)
    else:
        made = Lab(clock, lambda: open_store(f"sqlite:///{tmp_path}/lab.db", clock=clock))
    yield made
    await made.app.close()

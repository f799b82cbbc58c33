"""The demo: that it ends well, and that its count would say so if it had not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarry.edge.cli.demo.count import Delivery, count
from tarry.edge.cli.demo.world import AFTER, BEFORE, Entry, World


@pytest.mark.timeout(400)
def test_nothing_is_lost_and_nothing_applied_twice(tmp_path: Path) -> None:
    """SPEC 3.5, 4.2, 4.3, 4.4, 4.6, 4.8, 5.1, 5.3, 11.4: three kills, and the count is right; nothing is left behind.
    It is readable in 80 columns without colour."""
    env = os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tarry", "demo"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("3 kills, 3 attempts repeated: 0 lost, 0 applied twice, 0 receipts wrong\n")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert [*tmp_path.glob("tarry-demo-*")] == []


def receipts(*statuses: str) -> Delivery:
    told = tuple({"status": status, "reason": None, "errors": []} for status in statuses)
    return Delivery("order", "payment", told, ("delivered", "duplicate"))


GOOD = [Entry("order/ship", 2, 1)]
RESULT = {"order": ("shipped", "shipped")}


def test_a_repeated_attempt_is_no_fault() -> None:
    found = count(["order/ship"], GOOD, RESULT, [receipts("duplicate", "buffered")])
    assert found.good
    assert found.repeated == 1


@pytest.mark.parametrize("entries", [[], [Entry("order/ship", 1, 0)]])
def test_a_lost_effect_is_found(entries: list[Entry]) -> None:
    assert count(["order/ship"], entries, RESULT, []).lost == ("order/ship",)


@pytest.mark.parametrize("entries", [[Entry("order/ship", 2, 2)], [*GOOD, Entry("order/ship2", 1, 1)]])
def test_an_effect_too_many_is_found(entries: list[Entry]) -> None:
    assert len(count(["order/ship"], entries, RESULT, []).twice) == 1


@pytest.mark.parametrize("got", [None, "abandoned"])
def test_a_wrong_result_is_found(got: str | None) -> None:
    assert count(["order/ship"], GOOD, {"order": ("shipped", got)}, []).lost == ("order",)


@pytest.mark.parametrize("statuses", [("delivered", "delivered"), ("delivered", "conflict"), ("delivered",)])
def test_a_wrong_receipt_is_found(statuses: tuple[str, ...]) -> None:
    found = count(["order/ship"], GOOD, RESULT, [receipts(*statuses)])
    assert not found.good
    assert found.wrong == ("order: payment",)


@pytest.mark.anyio
async def test_the_warehouse_honours_keys_and_the_post_office_cannot(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    for _ in range(2):
        await world.reserve("a")
        await world.post("b")
    assert world.entries() == [Entry("a", 2, 1), Entry("b", 2, 2)]


@pytest.mark.anyio
@pytest.mark.parametrize(("when", "effects"), [(BEFORE, 0), (AFTER, 1)])
async def test_the_world_falls_silent_once(tmp_path: Path, when: str, effects: int) -> None:
    world = World(tmp_path / "world")
    world.silence("a", when)
    unanswered = asyncio.ensure_future(world.reserve("a"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not unanswered.done()
    assert (world.asked("a"), world.done("a")) == (1, effects)
    unanswered.cancel()
    assert await world.reserve("a") == "a"
    assert world.entries() == [Entry("a", 2, 1)]

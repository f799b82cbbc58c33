"""The order of a pass: forty passes over one body take one order, where addresses would take many."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarry.engine import order
from tarry.engine.loop import RunLoop
from tests.engine.one_pass import OnePass

ROOT = Path(__file__).parents[2]
PASSES = 40


class AddressOrdered(RunLoop):
    """The control: asyncio's own tasks and futures, which sets hold in the order of their addresses."""

    def create_task(self, coro: Any, **options: Any) -> Any:
        return asyncio.Task(coro, loop=self, name=options.get("name"), context=options.get("context"))

    def create_future(self) -> Any:
        return asyncio.Future(loop=self)


async def waits(one):
    """asyncio.wait keeps tasks in sets, and so does whoever reads its result."""
    tasks = [asyncio.create_task(one.wait(f"{n}"), name=f"{n}") for n in range(12)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    one.log += [task.get_name() for task in done] + [task.get_name() for task in pending]


async def groups(one):
    """TaskGroup cancels its tasks in the order of a set."""

    async def branch(name):
        try:
            await one.wait(name)
        finally:
            one.log.append(name)

    async def failing():
        await one.wait("0")
        raise ValueError

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            for n in range(1, 12):
                group.create_task(branch(f"{n}"))
    except* ValueError:
        pass


async def futures(one):
    """asyncio.wait on bare futures: their callbacks run in the order of a set."""
    many = {asyncio.get_running_loop().create_future(): n for n in range(12)}
    await one.wait("0")
    for future in set(many):
        one.log.append(many[future])
    for future in many:
        future.cancel()


async def completed(one):
    """as_completed makes its tasks out of a set of coroutines."""

    async def branch(name):
        one.log.append(name)
        await asyncio.sleep(0)
        return name

    for each in asyncio.as_completed([branch(f"{n}") for n in range(12)]):
        one.log.append(await each)


async def completed_awaitables(one):
    """The same with awaitables that are no coroutines, which asyncio wraps, among those that are."""

    class Lazy:
        def __init__(self, name):
            self.name = name

        def __await__(self):
            one.log.append(self.name)
            yield from asyncio.sleep(0).__await__()

    async def branch(name):
        await Lazy(name)

    for each in asyncio.as_completed([Lazy(f"{n}") if n % 2 else branch(f"{n}") for n in range(12)]):
        await each


BODIES = [waits, groups, futures, completed, completed_awaitables]


def orders(body, loop=RunLoop, seed=7) -> list[str]:
    """What each of forty passes logged, with other things at other addresses between them."""
    clutter, logs, dice = [], [], random.Random(seed)
    for _ in range(PASSES):
        one = OnePass(loop=loop, seed=seed)
        one.run(body)
        if "0" in one.open:
            one.give("0")
        logs.append(" ".join(map(str, one.log)))
        assert one.loop.unwind(one.raise_parked) == []
        clutter += [[object() for _ in range(dice.randrange(100))] for _ in range(dice.randrange(100))]
        dice.shuffle(clutter)
        del clutter[: len(clutter) // 3]
    return logs


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_forty_passes_take_one_order(body):
    """SPEC 3.2: parallel branches interleave as they did the first time."""
    logs = orders(body)
    assert len(set(logs)) == 1
    assert len(logs[0].split()) >= 11


@pytest.mark.parametrize("body", [waits, groups, futures], ids=lambda body: body.__name__)
def test_the_control_shows_that_addresses_take_many(body):
    """The test above can fail: with asyncio's own tasks and futures the same bodies change their order."""
    assert len(set(orders(body, AddressOrdered))) > 1


@pytest.mark.parametrize("body", [completed, completed_awaitables], ids=lambda body: body.__name__)
def test_the_control_shows_that_coroutines_take_many(body, monkeypatch):
    """The same for what as_completed is given, with tasks made in the order in which it asks for them."""
    monkeypatch.setattr(order, "given_together", lambda caller: ())
    assert len(set(orders(body))) > 1


def test_the_order_is_the_same_in_every_process():
    """SPEC 3.2: a run is replayed on other workers, with other hash seeds."""
    program = "from tests.engine.test_loop_order import *; print([orders(body)[0] for body in BODIES])"
    logs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["src", "."])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert logs == {f"{[orders(body)[0] for body in BODIES]}\n"}


def test_small_sets_are_in_the_order_of_creation_whatever_the_seed():
    """The seed spreads the tasks of different runs apart, and leaves those of one run in their order."""
    hashes = set()
    for seed in range(0, 2**40, 2**36 + 12345):
        one = OnePass(seed=seed)
        task = one.run(waits)
        one.give("0")
        assert " ".join(one.log) == "0 1 2 3 4 5 6 7 8 9 10 11"
        hashes.add(hash(task))
        one.loop.unwind(one.raise_parked)
    assert len(hashes) == 16


def test_names_of_tasks_count_in_the_pass():
    """A body may log the name of its task: asyncio's own names count through the process."""

    async def body(one):
        return [asyncio.create_task(asyncio.sleep(0)).get_name() for _ in range(2)]

    assert OnePass().run(body).result() == OnePass().run(body).result() == ["Task-2", "Task-3"]


@pytest.mark.parametrize("unordered", [iter, frozenset], ids=["an iterator", "a set"])
def test_as_completed_wants_an_order(unordered):
    """SPEC 3.13: refused where nothing tells the order in which the coroutines were given."""

    async def body(one):
        for each in asyncio.as_completed(unordered([one.wait("a")])):
            await each

    one = OnePass()
    error = one.run(body).exception()
    assert one.refused == [error]
    assert "a list" in str(error)


def test_as_completed_takes_sets_of_tasks_and_the_same_coroutine_twice():
    """Tasks have an order of their own; a coroutine given twice is one branch, as in asyncio."""

    async def body(one):
        async def branch(n):
            return n

        tasks = {asyncio.create_task(branch(n)) for n in range(3)}
        results = [await each for each in asyncio.as_completed(tasks)]
        twice = branch("once")
        results += [await each for each in asyncio.as_completed([*tasks, twice, twice])]
        return results, len(one.loop._tasks)

    assert OnePass().run(body).result() == ([0, 1, 2, 0, 1, 2, "once"], 1 + 3 + 1)


def test_equality_of_tasks_and_futures_stays_identity():
    """Two runs' tasks may share a hash; they are never equal."""
    first, second = OnePass(), OnePass()
    tasks = [one.run(lambda one: one.wait("a")) for one in (first, second)]
    assert hash(tasks[0]) == hash(tasks[1])
    assert tasks[0] != tasks[1]
    assert first.open["a"] != second.open["a"]
    for one in (first, second):
        one.give("a")

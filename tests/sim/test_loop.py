"""The loop of the simulator: virtual time, one queue a process, kills that run nothing."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tarry.testing.sim.loop import ByPriority, InTurn, OneSlow, Policy, SimLoop, Stalled, Uniform


def loops() -> list[Policy]:
    return [InTurn(), Uniform(Random(1)), ByPriority(Random(1), 3), OneSlow(Random(1))]


@pytest.mark.parametrize("policy", loops(), ids=lambda policy: type(policy).__name__)
def test_a_year_costs_nothing_and_callbacks_of_a_process_keep_their_order(policy: Policy):
    loop = SimLoop(policy)
    told: list[str] = []

    async def work(name: str) -> None:
        for i in range(3):
            asyncio.get_running_loop().call_soon(told.append, f"{name}{i}")
        await asyncio.sleep(31_536_000)
        told.append(f"{name}!")

    async def all_of_them() -> None:
        tasks = [loop.process(name).run(loop.create_task, work(name)) for name in "ab"]
        await asyncio.gather(*tasks)

    loop.run_until_complete(all_of_them())
    loop.close()
    for name in "ab":
        mine = [text for text in told if text[0] == name]
        assert mine == [f"{name}0", f"{name}1", f"{name}2", f"{name}!"]
    assert loop.time() == 31_536_000


def test_a_kill_runs_nothing_of_the_process_any_more():
    loop = SimLoop(InTurn())
    process = loop.process("p")
    told: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            told.append("finally")

    async def world() -> None:
        task: asyncio.Task[None] = process.run(loop.create_task, work())
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5)
        assert told == []
        loop.revive()
        await task

    loop.run_until_complete(world())
    loop.close()
    assert told == ["finally"]


def test_a_paused_process_goes_on_later():
    loop = SimLoop(InTurn())
    process = loop.process("p")

    async def work() -> float:
        await asyncio.sleep(1)
        return loop.time()

    async def world() -> float:
        task: asyncio.Task[float] = process.run(loop.create_task, work())
        await asyncio.sleep(0.5)
        process.held_until = 20
        return await task

    assert loop.run_until_complete(world()) == 20
    loop.close()


def test_waiting_for_nothing_is_told():
    loop = SimLoop(InTurn())
    future = loop.create_future()
    with pytest.raises(Stalled, match="nobody has anything to do"):
        loop.run_until_complete(future)
    loop.close()

"""How a run ends whose branches stand in a task group, which wraps what they raise."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Run, Safety, Signal, Status
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio


async def test_an_unknown_outcome_in_a_task_group_blocks_the_run(lab: Lab) -> None:
    """SPEC 3.5: it was not caught, so an operator says what happened."""

    async def pay() -> None:
        await asyncio.Event().wait()

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.step("pay", pay, safety=Safety.AT_MOST_ONCE, timeout="1ms"))

    await lab.start(body)
    run = await lab.app.run("r")
    assert (run.status, run.blocked) == (Status.BLOCKED, "unknown outcome")


async def test_a_cancel_that_reaches_a_task_group_ends_the_run_as_cancelled(lab: Lab) -> None:
    """SPEC 3.12."""

    async def body(run: Run[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.wait(Signal("a")))
            group.create_task(run.wait(Signal("b")))

    await lab.start(body)
    await lab.app.cancel("r")
    await lab.go_on()
    assert await lab.status() is Status.CANCELLED

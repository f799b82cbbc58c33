"""Pausing, cancelling and what may not stand in a body (rules 2.5, 3.8, 3.11 to 3.13)."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

import tarry
from tarry import App, Run, RunCancelled, RunExpired, RunFailed, Signal, Status
from tarry.errors import NotInRun
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio

go = Signal("go", int)
other = Signal("other", int)


async def test_clean_up_steps_do_not_run_at_a_pause(lab: Lab) -> None:
    """SPEC 3.8, S01: durable calls re-raise the pause and record nothing; the run's end does the clean-up once."""

    @asynccontextmanager
    async def machine(run: Run[Any]) -> AsyncIterator[None]:
        await run.step("boot", lab.note, "boot", returns=str)
        try:
            yield
        finally:
            await run.step("destroy", lab.note, "destroy", returns=str)

    async def body(run: Run[Any]) -> None:
        async with machine(run):
            await run.wait(go)

    await lab.start(body)
    await lab.restart()
    await lab.go_on()
    assert lab.log == ["boot"]
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert lab.log == ["boot", "destroy"]


async def test_parking_is_told_and_on_end_runs_once(lab: Lab) -> None:
    """SPEC 3.8: `run.parking` is true while the body is unwound; `run.on_end` is the place for clean-up."""

    @contextmanager
    def traced(run: Run[Any]) -> Iterator[None]:
        try:
            yield
        finally:
            lab.note("parking" if run.parking else "leaving")

    async def end() -> None:
        lab.note("end")

    async def body(run: Run[Any]) -> None:
        run.on_end(end)
        with traced(run):
            await run.wait(go)

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert lab.log == ["parking", "leaving", "end"]


async def test_a_pause_passes_through_except_exception(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """SPEC 3.8, S02: nothing is logged as a failure."""

    async def body(run: Run[Any]) -> int:
        try:
            return await run.wait(go)
        except Exception:
            return -1

    with caplog.at_level(logging.WARNING):
        assert (await lab.start(body)).status is Status.WAITING
    assert not caplog.records
    await lab.app.signal("r", go, 5)
    await lab.go_on()
    assert await lab.result() == 5


async def test_swallowing_the_pause_changes_nothing(lab: Lab) -> None:
    """SPEC 3.8, S42: once the pass is over, what the body does and returns is ignored and recorded nowhere."""

    async def body(run: Run[Any]) -> int:
        try:
            return await run.wait(go)
        except BaseException:
            try:
                await run.step("evil", lab.note, "evil")
            finally:
                return -1  # noqa: B012

    assert (await lab.start(body)).status is Status.WAITING
    assert (lab.log, await lab.journal()) == ([], [])
    await lab.app.signal("r", go, 5)
    await lab.go_on()
    assert await lab.result() == 5


async def test_a_wait_suspends_only_its_own_branch(lab: Lab) -> None:
    """SPEC 3.8, S05: the other branches go on to their own pause; a failing branch fails the run once."""

    async def worker(run: Run[Any], name: str, ready: asyncio.Event) -> str:
        value = await run.step(name, lab.note, name, returns=str)
        ready.set()
        return value

    async def body(run: Run[Any]) -> list[Any]:
        ready = asyncio.Event()

        async def waits() -> int:
            await ready.wait()
            return await run.wait(go)

        async with asyncio.TaskGroup() as group:
            one = group.create_task(waits())
            two = group.create_task(worker(run, "a", ready))
        return [one.result(), two.result()]

    await lab.start(body)
    assert lab.log == ["a"]
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == [1, "a"]


async def test_a_failure_beside_a_wait_fails_the_run(lab: Lab) -> None:
    """SPEC 3.9, S05: the branch that still waits is given up; its late sender is told."""

    async def body(run: Run[Any]) -> None:
        async def fails() -> None:
            await run.step("s", lab.note, "s")
            raise ValueError("boom")

        await asyncio.gather(run.wait(go), fails())

    await lab.start(body)
    with pytest.raises(RunFailed, match="ValueError: boom"):
        await lab.result()
    assert (await lab.app.signal("r", go, 1)).status == "stale"


@pytest.mark.filterwarnings("error")
async def test_nothing_of_a_pass_runs_later(lab: Lab) -> None:
    """SPEC 3.8, S05: no task is left pending, no exception unretrieved, when the collector comes."""

    async def generator(run: Run[Any]) -> AsyncIterator[int]:
        try:
            yield await run.wait(go)
        finally:
            lab.note("closed")

    async def body(run: Run[Any]) -> None:
        background = asyncio.ensure_future(run.wait(other))
        async for value in generator(run):
            lab.note(value)
            break
        background.cancel()

    await lab.start(body)
    gc.collect()
    assert lab.log == ["closed"]


async def test_a_durable_call_that_is_forgotten_warns(lab: Lab) -> None:
    """SPEC 2.5: waits are lazy awaitables; forgetting `await` warns."""

    async def body(run: Run[Any]) -> None:
        run.wait(go)

    with pytest.warns(RuntimeWarning, match=r"run.wait\('go'\) was never awaited"):
        await lab.start(body)


@pytest.mark.parametrize(
    "call",
    [
        lambda: asyncio.sleep(1),
        lambda: asyncio.wait_for(asyncio.get_running_loop().create_future(), 1),
        lambda: asyncio.to_thread(print),
        lambda: asyncio.open_connection("127.0.0.1", 1),
    ],
)
async def test_ordinary_waiting_in_a_body_blocks_the_run(lab: Lab, call: Any) -> None:
    """SPEC 3.13, S29: NotDurable names the durable call; catching it does not help."""

    async def body(run: Run[Any]) -> str:
        try:
            await call()
        except Exception:
            await run.step("swallowed", lab.note, "swallowed")
        return "done"

    await lab.start(body)
    blocked = await lab.app.run("r")
    assert (blocked.status, blocked.blocked) == (Status.BLOCKED, "not durable")
    assert "run." in (blocked.reason or "")
    assert lab.log == []


async def test_a_blocked_run_goes_on_after_its_code_is_fixed(lab: Lab) -> None:
    """SPEC 3.13, 12.2: blocked with the remedy, then app.retry."""

    async def body(run: Run[Any]) -> int:
        await asyncio.sleep(1)
        return 1

    async def fixed(run: Run[Any]) -> int:
        await run.sleep("nap", "1s")
        await asyncio.sleep(0)
        async with asyncio.timeout(None):
            await asyncio.sleep(0)
        return 2

    fixed.__name__ = "body"
    await lab.start(body)
    await lab.restart(fixed)
    assert await lab.app.retry("r") is Status.READY
    await lab.go_on()
    await lab.after("1s")
    assert await lab.result() == 2


async def test_a_body_that_waits_for_nothing_is_a_deadlock(lab: Lab) -> None:
    """SPEC 1: never a silent wait."""

    async def body(run: Run[Any]) -> None:
        await asyncio.Event().wait()

    await lab.start(body)
    assert (await lab.app.run("r")).blocked == "deadlock"


async def test_a_cancel_closes_waits_cleans_up_and_ends(lab: Lab) -> None:
    """SPEC 3.12, S66: later deliveries are stale; RunCancelled is raised again at each later durable call."""

    async def body(run: Run[Any]) -> None:
        run.on_end(lambda: lab.note("end"))
        try:
            await run.wait(go)
        except RunCancelled:
            lab.note("cancelled")
            try:
                await run.step("more", lab.note, "never")
            except RunCancelled:
                lab.note("again")
            raise

    await lab.start(body)
    assert (await lab.app.cancel("r", actor="ann")).status == "cancelling"
    assert (await lab.app.cancel("r")).status == "cancelling"
    told = await lab.app.signal("r", go, 1)
    assert (told.status, told.reason) == ("stale", "cancel")
    await lab.go_on()
    assert (await lab.status(), lab.log) == (Status.CANCELLED, ["cancelled", "again", "end"])
    assert (await lab.app.cancel("r")).status == "cancelled"
    with pytest.raises(RunFailed, match="by ann"):
        await lab.result()


async def test_swallowing_a_cancel_does_not_undo_it(lab: Lab) -> None:
    """SPEC 3.12, S31: the cancel is on file; a body that goes on for ever is ended."""

    async def returns(run: Run[Any]) -> str:
        try:
            await run.wait(go)
        except RunCancelled:
            pass
        return "done"

    async def loops(run: Run[Any]) -> None:
        while True:
            try:
                await run.wait(go)
            except RunCancelled:
                pass

    for name, body in (("a", returns), ("b", loops)):
        await lab.start(body, id=name)
        await lab.app.cancel(name)
        await lab.go_on(name)
        assert await lab.status(name) is Status.CANCELLED


async def test_a_run_never_claimed_or_by_force_ends_at_once(lab: Lab) -> None:
    """SPEC 3.12: without its code being run."""

    async def body(run: Run[Any]) -> None:
        lab.note("body")
        await run.wait(go)

    lab.register(body)
    await lab.app.start(body, id="new")
    assert (await lab.app.cancel("new")).status == "cancelled"
    await lab.start(body, id="old")
    assert (await lab.app.cancel("old", force=True)).status == "cancelled"
    assert lab.log == ["body"]


async def test_a_step_in_progress_is_finished_and_recorded_unless_interruptible(lab: Lab) -> None:
    """SPEC 3.12: then the next durable call raises."""

    async def body(run: Run[Any], interruptible: bool) -> None:
        async def slow() -> str:
            lab.note("slow")
            if not interruptible:
                await gate.wait()
            else:
                await asyncio.Event().wait()
            return lab.note("finished")

        await run.step("slow", slow, interruptible=interruptible)
        await run.step("next", lab.note, "never")

    lab.register(body)
    for interruptible in (False, True):
        name, gate = str(interruptible), asyncio.Event()
        await lab.app.start(body, interruptible, id=name)
        driving = asyncio.ensure_future(lab.go_on(name))
        while lab.log[-1:] != ["slow"]:
            await asyncio.sleep(0)
        await lab.app.cancel(name)
        gate.set()
        await driving
        assert await lab.status(name) is Status.CANCELLED
    assert lab.log == ["slow", "finished", "slow"]


async def test_a_stored_timeout_does_not_go_on_after_a_cancel(lab: Lab) -> None:
    """SPEC 3.12, S89: the cancel is seen before any outcome on file continues into new work."""

    async def body(run: Run[Any]) -> None:
        try:
            await run.wait(go, timeout="1s")
        except TimeoutError:
            await run.step("give up", lab.note, "gave up")

    await lab.start(body)
    lab.clock.advance("2s")
    await lab.app.signal("r", other, 1)
    await lab.app.cancel("r")
    await lab.go_on()
    assert (await lab.status(), lab.log) == (Status.CANCELLED, [])


async def test_the_runs_deadline_expires_it(lab: Lab) -> None:
    """SPEC 3.12: RunExpired at its durable calls; the end is `expired`; deliveries are told `deadline`."""

    async def body(run: Run[Any]) -> None:
        try:
            await run.wait(go)
        except RunExpired:
            lab.note("expired")
            raise

    await lab.start(body, deadline="1h")
    lab.clock.advance("1h")
    told = await lab.app.signal("r", go, 1)
    assert (told.status, told.reason) == ("stale", "deadline")
    await lab.go_on()
    assert (await lab.status(), lab.log) == (Status.EXPIRED, ["expired"])


async def test_a_waiter_that_is_cancelled_touches_nothing(lab: Lab) -> None:
    """SPEC 2.2, S30: the run does not notice who stops waiting for its result."""

    async def body(run: Run[Any]) -> int:
        return await run.wait(go)

    await lab.start(body)
    waiting = asyncio.ensure_future(lab.app.handle("r").result())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(TimeoutError):
        await lab.app.handle("r").result(timeout="10ms")
    await lab.app.signal("r", go, 3)
    await lab.go_on()
    assert await lab.result() == 3


async def test_an_error_of_any_shape_is_stored_and_read_without_its_class(lab: Lab) -> None:
    """SPEC 3.7, S13, S14: status and lists work, with type and message, whatever was raised."""
    import threading

    class Odd(Exception):
        def __init__(self, code: int, *, detail: str) -> None:
            super().__init__(f"{code} \x00 \ud800")
            self.lock = threading.Lock()

    async def body(run: Run[Any]) -> None:
        raise Odd(500, detail="x")

    async def group(run: Run[Any]) -> None:
        raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])

    async def unstorable(run: Run[Any]) -> Any:
        return threading.Lock()

    async def exits(run: Run[Any]) -> None:
        raise SystemExit(3)

    for one in (body, group, unstorable, exits):
        await lab.start(one, id=one.__name__)
    errors = {row.id: row.error or "" for row in (await lab.app.runs(status="failed")).rows}
    assert {name: name in errors for name in ("body", "group", "unstorable", "exits")} == dict.fromkeys(errors, True)
    assert "Odd: 500" in errors["body"]
    assert "several" in errors["group"]
    assert "Unencodable" in errors["unstorable"]
    assert "SystemExit" in errors["exits"]


async def test_outside_of_a_run(lab: Lab) -> None:
    """SPEC 3.11: NotInRun, or, where the process chose it, inert plain code."""
    with pytest.raises(NotInRun):
        tarry.current_run()

    async def body(run: Run[Any]) -> list[Any]:
        told: list[Any] = [await run.wait(go), await run.step("s", lab.note, "plain", returns=str)]
        async for _ in run.messages(tarry.Channel("c", int)):
            told.append("never")
        return told

    try:
        App("sqlite://:memory:", outside="inert")
        assert await body(tarry.current_run()) == [None, "plain"]
    finally:
        App("sqlite://:memory:", outside="raise")


async def test_the_current_run_is_there_inside(lab: Lab) -> None:
    """SPEC 2.6, 3.11: id, workflow, tags and a logger."""

    async def body(run: Run[Any]) -> list[Any]:
        here = tarry.current_run()
        run.log.info("hello")
        return [here.id, here.workflow, here.tags]

    await lab.start(body, tags={"order": "o-1"})
    assert await lab.result() == ["r", "body", {"order": "o-1"}]

"""The end of a pass: everything of the run ends now, and the garbage collector finds nothing to run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import sys

import pytest

from tarry.engine import unwind
from tests.engine.one_pass import OnePass, Parked, on_a_worker

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.fixture(autouse=True)
def nothing_is_left_to_the_collector(caplog, monkeypatch):
    """No warning (they are errors here), no log line, and no code of a body after its pass."""
    monkeypatch.setattr(unwind, "_UNCLOSABLE", [])
    yield
    gc.collect()
    assert caplog.records == []


async def every_kind_of_wait(one):
    """Branches in a durable wait, and branches that wait for each other."""
    lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue()

    async def holder():
        async with lock:
            await one.wait("a")

    async def fan_out():
        await asyncio.gather(one.wait("b"), one.wait("c"))

    async with asyncio.TaskGroup() as group:
        for coro in (
            holder(),
            fan_out(),
            lock.acquire(),
            event.wait(),
            queue.get(),
            asyncio.shield(one.wait("d")),
        ):
            group.create_task(coro if asyncio.iscoroutine(coro) else until(coro))


async def until(awaitable):
    return await awaitable


async def swallows_everything_once(one):
    for name in ("a", "b"):
        try:
            await one.wait(name)
        except BaseException:
            await asyncio.sleep(0)


async def leaves_tasks_behind(one):
    tasks = [asyncio.create_task(one.wait(name)) for name in "ab"]
    return [task.get_name() for task in tasks]


@pytest.mark.parametrize("body", [every_kind_of_wait, swallows_everything_once, leaves_tasks_behind])
@pytest.mark.parametrize("with_parked", [True, False])
def test_whatever_is_left_ends_without_force(body, with_parked):
    """SPEC 3.8: durable waits get Parked, what waits for something else is cancelled; S01."""
    one = OnePass()
    one.run(body)
    live = one.loop.live_tasks()
    assert live
    assert one.loop.unwind(one.raise_parked if with_parked else None) == []
    assert all(task.done() for task in live)
    assert one.loop.is_closed()
    assert one.loop.idle
    assert one.loop.unhandled == []


def test_a_parked_body_sees_parked_and_its_finally_runs_in_its_own_loop():
    """SPEC 3.8: unwound at once, in its own loop and context, not by a later collection."""

    async def body(one):
        WHO.set("the run")
        try:
            await one.wait("a")
        finally:
            one.log += [asyncio.get_running_loop() is one.loop, WHO.get(), type(sys.exception()).__name__]

    one = OnePass()
    task = one.run(body)
    assert one.park() == []
    assert one.log == [True, "the run", "Parked"]
    assert isinstance(task.exception(), Parked)


def test_an_ended_pass_closes_at_once():
    """Nothing is left: nothing to ask, nothing to force."""

    async def body(one):
        return "done"

    one = OnePass()
    task = one.run(body)
    assert one.loop.unwind() == []
    assert task.result() == "done"
    assert one.loop.is_closed()


def test_a_body_that_never_had_a_turn_ends_too():
    """The engine may lose its lease before the first turn."""

    async def body(one):
        await one.wait("a")

    one = OnePass()
    one.loop.spawn(body(one))
    assert one.park() == []


def test_a_spinning_body_ends_by_cancellation():
    """SPEC 3.13: after the pump gave up on it, its tasks still end."""

    async def body(one):
        try:
            while not one.log:
                await asyncio.sleep(0)
        finally:
            one.log.append("ended")

    one = OnePass()
    one.loop.spawn(body(one))
    assert one.loop.unwind() == []
    assert one.log == ["ended"]


def test_a_task_that_will_not_end_is_closed_by_force_and_named():
    """Cancellation in vain, bounded; then GeneratorExit, with the loop still running."""

    async def stubborn(one):
        while True:
            try:
                await one.loop.create_future()
            except asyncio.CancelledError:
                one.log.append("no")
            finally:
                one.log.append(asyncio.get_running_loop() is one.loop)

    async def body(one):
        task = asyncio.create_task(stubborn(one), name="stubborn")
        await one.wait("a")
        await task

    one = OnePass()
    one.run(body)
    assert one.loop.unwind(one.raise_parked, rounds=4) == ["stubborn"]
    assert one.log.count("no") == 4
    assert one.log[-1] is True
    assert unwind._UNCLOSABLE == []
    before = len(one.log)
    gc.collect()
    assert len(one.log) == before


def test_a_body_that_swallows_the_first_close_is_closed_again():
    """An `except BaseException` around one wait costs one attempt, not memory for good."""

    async def body(one):
        for _ in range(12):
            with contextlib.suppress(BaseException):
                await one.loop.create_future()

    one = OnePass()
    task = one.run(body)
    assert one.loop.unwind(rounds=3) == ["body"]
    assert task.get_coro().cr_frame is None
    assert unwind._UNCLOSABLE == []


def test_a_body_that_cannot_be_closed_is_kept_from_the_collector():
    """Even GeneratorExit in vain: kept for good, it costs memory, but runs in no other run's turn."""

    async def body(one):
        while not one.log.count("let go"):
            try:
                await one.loop.create_future()
            except BaseException as error:
                one.log.append(type(error).__name__)

    one = OnePass()
    one.run(body)
    assert one.park() == ["body"]
    assert "GeneratorExit" in one.log
    before = len(one.log)
    gc.collect()
    assert len(one.log) == before
    (kept,) = unwind._UNCLOSABLE
    one.log.append("let go")
    kept.close()


def test_what_is_begun_while_unwinding_ends_too():
    """A `finally` may start tasks, and so may what is closed by force."""

    async def late(one):
        await one.wait("late")

    async def body(one):
        try:
            await one.wait("a")
        finally:
            one.log.append(asyncio.create_task(late(one)))

    async def stubborn(one):
        try:
            while True:
                try:
                    await one.loop.create_future()
                except asyncio.CancelledError:
                    continue
        finally:
            one.log.append(asyncio.create_task(late(one)))

    for each, forced in ((body, []), (stubborn, ["body"])):
        one = OnePass()
        one.run(each)
        assert one.park() == forced
        assert one.log[0].done()


async def numbers(one, ending=None):
    try:
        for n in range(10):
            yield n
    finally:
        one.log.append(asyncio.get_running_loop() is one.loop)
        if ending is not None:
            await ending()


def test_a_generator_that_was_not_exhausted_is_closed_while_unwinding():
    """DESIGN: with its own loop running, whether the body parked beside it or inside of it."""

    async def beside(one):
        generator = numbers(one)
        await anext(generator)
        one.log.append("waiting")
        await one.wait("a")
        await generator.aclose()

    async def inside(one):
        async for _ in numbers(one):
            one.log.append("waiting")
            await one.wait("a")

    async def kept_elsewhere(one):
        one.keep = numbers(one)
        await anext(one.keep)
        one.log.append("waiting")

    for body in (beside, inside, kept_elsewhere):
        one = OnePass()
        on_a_worker(lambda one=one, body=body: one.run(body))
        assert one.log == ["waiting"]
        assert on_a_worker(one.park) == []
        assert one.log == ["waiting", True]


def test_a_dropped_generator_is_closed_in_the_next_turn():
    """As on asyncio's own loops, which a lock held in a generator counts on."""

    async def body(one):
        lock = asyncio.Lock()

        async def guarded():
            async with lock:
                yield 1
                yield 2

        async for _ in guarded():
            break
        async with lock:
            return "free"

    one = OnePass()
    assert one.run(body).result() == "free"
    assert one.loop.unwind() == []


def test_a_generator_collected_outside_a_turn_waits_for_its_own_loop():
    """The collector runs anywhere: in the worker, in another run's turn, on another thread."""

    async def body(one):
        one.keep = numbers(one)
        await anext(one.keep)
        await one.wait("a")

    one, other = OnePass(), OnePass()
    one.run(body)

    async def collects(other):
        del one.keep
        gc.collect()

    other.run(collects)
    assert one.log == []
    assert not one.loop.idle
    one.loop.pump()
    assert one.log == [True]
    assert one.park() == []


def test_a_generator_whose_end_will_not_come_is_named():
    """One that waits for ever while it closes, and one that yields instead of closing."""

    async def body(one):
        async def forever():
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await one.loop.create_future()

        one.keep = numbers(one, forever)
        await anext(one.keep)
        one.log.clear()

    async def yields(one):
        async def insisting():
            while True:
                try:
                    yield
                except GeneratorExit:
                    if one.log:
                        raise

        one.keep = insisting()
        await anext(one.keep)

    for each in (body, yields):
        one = OnePass()
        one.run(each)
        assert set(one.loop.unwind(rounds=3)) == {one.keep.__qualname__}
    assert one.keep in unwind._UNCLOSABLE
    one.log.append("let go")
    unwind._UNCLOSABLE.clear()


def test_asyncio_may_shut_its_generators_down():
    """What asyncio.Runner does at its end."""

    async def body(one):
        generator = numbers(one)
        await anext(generator)
        await asyncio.get_running_loop().shutdown_asyncgens()
        return one.log

    one = OnePass()
    assert one.run(body).result() == [True]
    assert one.loop.unwind() == []


def test_failures_while_unwinding_are_nobodys():
    """SPEC 3.8: what the function returns or raises then is ignored, also in its lost branches."""

    async def failing(one):
        try:
            await one.wait("b")
        finally:
            raise ValueError("while unwinding")

    async def body(one):
        one.log.append(asyncio.create_task(failing(one)))
        await one.wait("a")

    one = OnePass()
    one.run(body)
    assert one.park() == []
    one.log.clear()
    gc.collect()
    assert one.loop.unhandled == []

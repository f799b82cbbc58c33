"""Turns of a run's loop: what happens between two outcomes, and what the owner keeps."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading

import pytest

from tarry.engine.loop import RunLoop
from tarry.errors import NotDurable
from tests.engine.one_pass import OnePass, on_a_worker

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.fixture(autouse=True)
def nothing_is_left_to_the_collector():
    yield
    gc.collect()


def test_a_body_runs_to_quiescence_and_goes_on_with_each_outcome():
    """SPEC 3.8: only the branch that met a wait is suspended."""
    one = OnePass()

    async def body(one):
        first, second = await asyncio.gather(one.wait("a"), one.wait("b"))
        return first + second

    task = one.run(body)
    assert one.loop.idle
    assert list(one.open) == ["a", "b"]
    one.give("b", 2)
    assert not task.done()
    one.open["a"].set_result(1)
    assert not one.loop.idle
    one.loop.pump()
    assert task.result() == 3
    assert one.loop.unwind() == []


def test_inside_a_pump_asyncio_knows_the_run_and_afterwards_the_worker():
    """SPEC 3.13: the worker's loop, task, policy and generator hooks are as they were."""

    async def body(one):
        assert asyncio.get_running_loop() is asyncio.get_event_loop() is one.loop
        assert one.loop.is_running()
        assert asyncio.all_tasks() == {asyncio.current_task()} == set(one.loop.live_tasks())
        asyncio.set_event_loop(one.loop)  # as frameworks do
        await asyncio.sleep(0)

    async def worker():
        outer, me = asyncio.get_running_loop(), asyncio.current_task()
        hooks = sys.get_asyncgen_hooks()
        one, seen = OnePass(), outer.create_future()

        def turn():
            error = one.run(body).exception()
            seen.set_result((error, asyncio.get_running_loop(), asyncio.current_task(), one.loop.is_running()))

        outer.call_soon(turn)
        assert await seen == (None, outer, None, False)
        assert asyncio.current_task() is me
        assert sys.get_asyncgen_hooks() == hooks

    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(worker())
        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_pump_inside_a_task_of_the_worker_leaves_that_task_as_it_was():
    """A lease may be lost, and a run unwound, in whatever the worker is doing."""

    async def body(one):
        one.log.append(asyncio.current_task().get_name())
        await asyncio.wait_for(one.wait("a"), None)

    async def task_of_the_worker():
        me, one = asyncio.current_task(), OnePass()
        one.run(body)
        assert asyncio.current_task() is me
        one.give("a")
        assert one.loop.unwind() == []
        assert asyncio.current_task() is me
        await asyncio.sleep(0)
        return one.log

    assert asyncio.run(task_of_the_worker()) == ["body"]


def test_a_loop_cannot_be_pumped_in_its_own_turn():
    """As no loop of asyncio can be run while it runs."""

    async def body(one):
        one.loop.pump()

    one = OnePass()
    assert "already running" in str(one.run(body).exception())
    one.loop.call_soon(one.loop.pump)
    one.loop.pump()
    assert "already running" in str(one.loop.unhandled.pop())


def test_two_loops_pumped_in_turn_keep_their_contexts():
    """SPEC 3.13, S29: two runs on one worker never mix contextvars."""

    async def body(one):
        mine = f"run {id(one)}"
        WHO.set(mine)
        for turn in range(3):
            child = asyncio.create_task(one.wait(f"{turn}"))
            child.add_done_callback(lambda _: one.log.append(WHO.get()))
            await child
            one.log.append(WHO.get())
        return set(one.log) == {mine}

    def pump_both():
        passes = [OnePass(), OnePass()]
        tasks = [one.run(body) for one in passes]
        for turn in range(3):
            for one in reversed(passes):
                one.give(f"{turn}")
        assert WHO.get() == "nobody"
        return [task.result() for task in tasks]

    assert on_a_worker(pump_both) == [True, True]


def test_the_body_runs_in_the_context_the_loop_was_made_with():
    """What the owner schedules from outside runs there too, not in the owner's context."""
    context = contextvars.copy_context()
    context.run(WHO.set, "the run")
    loop = RunLoop(context, on_refused=lambda error: None)
    seen: list[str] = []

    async def body():
        seen.append(WHO.get())
        WHO.set("the body")

    loop.spawn(body())
    loop.pump()
    loop.call_soon(lambda: seen.append(WHO.get()))
    loop.pump()
    assert seen == ["the run", "the body"]
    assert WHO.get() == "nobody"


def test_a_body_that_never_waits_is_stopped():
    """SPEC 3.13, S31: a spinning body costs a bounded turn, and the engine hears of it."""

    async def body(one):
        while True:
            await asyncio.sleep(0)

    one = OnePass()
    with pytest.raises(NotDurable, match="a loop that never waits") as stopped:
        one.run(body, limit=1000)
    assert one.refused == [stopped.value]
    assert one.loop.unwind() == []


def test_a_long_turn_within_the_limit_is_no_spin():
    """The limit counts callbacks of one turn: quiescence at the last of them is in time."""

    async def body(one):
        for _ in range(9):
            await asyncio.sleep(0)

    assert OnePass().run(body, limit=10).done()


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_a_body_cannot_stop_its_worker(stop):
    """SPEC 2.2: the body's BaseExceptions never leave the run; other branches of the turn run on."""

    async def body(one):
        asyncio.get_running_loop().call_soon(one.log.append, "ran on")
        raise stop("the body")

    one = OnePass()
    task = one.run(body)
    assert isinstance(task.exception(), stop)
    assert one.log == ["ran on"]
    assert one.loop.unhandled == []


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt, ValueError])
def test_a_failing_callback_is_kept_not_raised(stop):
    """A plain callback has no task to keep its exception."""

    async def body(one):
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)
        return "done"

    def fail():
        raise stop("callback")

    one = OnePass()
    assert one.run(body).result() == "done"
    assert [type(error) for error in one.loop.unhandled] == [stop]


def test_a_failure_nobody_retrieved_is_collected_and_not_logged(caplog):
    """S05: a lost branch's error is there to be seen, not printed behind the run's back."""

    async def failing():
        raise ValueError("lost")

    async def body(one):
        one.loop.create_task(failing())
        one.loop.create_future().set_exception(KeyError("lost too"))
        await one.wait("a")

    one = OnePass()
    one.run(body)
    one.give("a")
    assert one.loop.unwind() == []
    gc.collect()
    assert sorted(type(error).__name__ for error in one.loop.unhandled) == ["KeyError", "ValueError"]
    assert caplog.records == []


def test_a_body_may_set_an_exception_handler():
    """It hears of its own turns only; what the collector brings later is collected."""

    async def body(one):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: one.log.append(context["exception"]))
        assert loop.get_exception_handler() is not None
        loop.call_soon(one.log.remove, "absent")
        await one.wait("a")

    one = OnePass()
    one.run(body)
    assert [type(error) for error in one.log] == [ValueError]
    one.loop.call_exception_handler({"message": "from the collector"})
    assert [str(error) for error in one.loop.unhandled] == ["from the collector"]
    one.park()


def test_a_task_is_kept_until_it_is_done():
    """A branch that nobody refers to must not vanish with a collection."""

    async def forgotten(one):
        await asyncio.get_running_loop().create_future()

    async def body(one):
        for _ in range(100):
            one.loop.create_task(forgotten(one))
        await one.wait("a")

    one = OnePass()
    one.run(body)
    gc.collect()
    assert len(one.loop.live_tasks()) == 101
    assert one.loop.live_tasks()[0].get_name() == "body"
    assert one.park() == []
    assert one.loop.unhandled == []


def test_done_tasks_are_let_go():
    """A long body holds no more than a few of the tasks it has done with."""

    async def body(one):
        for _ in range(1000):
            await asyncio.create_task(asyncio.sleep(0))
        return len(one.loop._tasks)

    assert OnePass().run(body).result() < 50


def test_the_clock_stands_still():
    """SPEC 3.10: time in a body is recorded, never read."""

    async def body(one):
        before = asyncio.get_running_loop().time()
        await one.wait("a")
        return before == asyncio.get_running_loop().time()

    one = OnePass()
    task = one.run(body)
    one.give("a")
    assert task.result() is True


def test_nothing_can_be_scheduled_on_a_closed_loop():
    """As with asyncio's own loops; and one that runs cannot be closed."""

    async def body(one):
        with pytest.raises(RuntimeError, match="running"):
            one.loop.close()

    one = OnePass()
    assert one.run(body).exception() is None
    one.loop.call_soon(one.log.append, "too late")
    one.loop.close()
    one.loop.pump()
    assert one.log == []
    assert one.loop.is_closed()
    with pytest.raises(RuntimeError, match="closed"):
        one.loop.call_soon(print)


def test_another_thread_cannot_schedule_anything():
    """SPEC 3.13, S29: refused without effect, and the engine hears of it."""
    one = OnePass()
    caught: list[Exception] = []

    async def body(one):
        def elsewhere():
            for call in (one.loop.call_soon, one.loop.call_soon_threadsafe):
                try:
                    call(one.log.append, "effect")
                except NotDurable as refused:
                    caught.append(refused)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    one.run(body)
    one.loop.pump()
    assert one.log == []
    assert len(caught) == 2
    assert one.refused == caught
    with pytest.raises(NotDurable, match="from outside the run"):
        one.loop.call_soon_threadsafe(one.log.append, "not its turn")
    assert one.loop.idle


def test_eager_tasks_start_at_once():
    """What asyncio.create_task passes on, from Python 3.12, works here; a factory is not needed for it."""
    eager = {"eager_start": True} if hasattr(asyncio, "eager_task_factory") else {}

    async def child(one):
        one.log.append("child")
        await one.wait("a")

    async def body(one):
        task = asyncio.get_running_loop().create_task(child(one), **eager)
        one.log.append("body")
        await task

    one = OnePass()
    task = one.run(body)
    assert one.log == (["child", "body"] if eager else ["body", "child"])
    one.give("a")
    assert task.result() is None

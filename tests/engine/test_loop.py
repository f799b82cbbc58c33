"""What a run's loop offers a body, and what it refuses: by name, with the durable call to use instead."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle

import anyio
import pytest

from tarry.engine.loop import RunLoop
from tarry.errors import NotDurable
from tests.engine.one_pass import OnePass

OFFERED = {
    "call_at", "call_exception_handler", "call_later", "call_soon", "call_soon_threadsafe", "close",
    "create_future", "create_task", "default_exception_handler", "get_debug", "get_exception_handler",
    "get_task_factory", "is_closed", "is_running", "run_in_executor", "set_debug", "set_exception_handler",
    "set_task_factory", "shutdown_asyncgens", "time",
}  # fmt: skip
PUBLIC = sorted(name for name in dir(asyncio.AbstractEventLoop) if not name.startswith("_"))


async def events_and_locks(one):
    event, lock, queue, gate = asyncio.Event(), asyncio.Lock(), asyncio.Queue(maxsize=1), asyncio.Semaphore(1)
    condition = asyncio.Condition()

    async def producer():
        async with lock, gate:
            await queue.put(await one.wait("item"))
        event.set()
        async with condition:
            condition.notify_all()

    async def consumer():
        await event.wait()
        async with lock:
            return await queue.get()

    async def notified():
        async with condition:
            await condition.wait()
        return "notified"

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(consumer()), group.create_task(notified()), group.create_task(producer())]
    return [task.result() for task in tasks]


async def timeouts_of_none(one):
    async with asyncio.timeout(None):
        await asyncio.sleep(0)
    waited = await asyncio.wait_for(one.wait("item"), timeout=None)
    done, _ = await asyncio.wait([asyncio.create_task(asyncio.sleep(0, "slept"))])
    return [waited, done.pop().result()]


async def shielded_and_completed(one):
    inner = asyncio.ensure_future(one.wait("item"))
    outer = asyncio.shield(inner)
    first = [await each for each in asyncio.as_completed([outer])]
    return [*first, await asyncio.wait_for(inner, timeout=0)]


async def a_timer_that_is_due(one):
    loop = asyncio.get_running_loop()
    due: list[str] = []
    loop.call_later(0, due.append, "later")
    loop.call_at(loop.time(), due.append, "at")
    loop.call_later(0, due.append, "cancelled").cancel()
    loop.call_soon_threadsafe(due.append, "own turn")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await one.wait("never")
    return [await one.wait("item"), *due]


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (events_and_locks, ["it", "notified", None]),
        (timeouts_of_none, ["it", "slept"]),
        (shielded_and_completed, ["it", "it"]),
        (a_timer_that_is_due, ["it", "later", "at", "own turn"]),
    ],
)
def test_what_asyncio_offers_between_branches_works(body, result):
    """SPEC 3.8, 3.13: gather, TaskGroup, Event, Lock, Queue, and timeouts of None or now."""
    one = OnePass()
    task = one.run(body)
    one.give("item", "it")
    assert task.result() == result
    assert one.refused == []
    assert one.loop.unwind() == []
    assert one.loop.unhandled == []


def calling(call):
    """A body that makes the call, and keeps what it raised, as a framework that swallows it would."""

    async def body(one):
        try:
            one.log.append(call(one))
            one.log.append(await one.log[-1])
        except NotDurable as refused:
            one.log.append(refused)
        return "went on"

    return body


async def within(scope):
    async with scope:
        pass


async def first_of(futures):
    for each in asyncio.as_completed(futures, timeout=5):
        await each


async def fail_after(one):
    with anyio.fail_after(5):
        await one.wait("never")


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in OFFERED])
def test_what_the_loop_does_not_offer_is_refused_at_the_call(name):
    """SPEC 3.13: asyncio's own list, so that what a later Python adds is refused too."""
    one = OnePass()
    task = one.run(calling(lambda one: getattr(one.loop, name)()))
    assert task.result() == "went on"
    (refused,) = one.refused
    assert one.log == [refused]
    assert refused.call == f"loop.{name}"
    assert "Use " in str(refused)
    assert pickle.loads(pickle.dumps(refused)) == refused


def test_the_list_of_offers_is_whole():
    """The loop defines what it offers, and nothing of asyncio's is left undefined."""
    assert set(PUBLIC) >= OFFERED
    for name in PUBLIC:
        assert getattr(RunLoop, name) is not getattr(asyncio.AbstractEventLoop, name)


@pytest.mark.parametrize(
    ("call", "named", "instead"),
    [
        (lambda one: asyncio.sleep(0.1), "asyncio.sleep", "run.sleep"),
        (lambda one: within(asyncio.timeout(5)), "asyncio.timeout", "run.wait(signal, timeout=...)"),
        (lambda one: asyncio.wait_for(one.loop.create_future(), 5), "asyncio.wait_for", "run.wait("),
        (lambda one: asyncio.wait([one.loop.create_future()], timeout=5), "asyncio.wait", "run.wait("),
        (lambda one: first_of([one.loop.create_future()]), "asyncio.as_completed", "run.wait("),
        (lambda one: asyncio.to_thread(print), "asyncio.to_thread", "run.step("),
        (lambda one: asyncio.open_connection("127.0.0.1", 9), "asyncio.open_connection", "run.step("),
        (lambda one: asyncio.create_subprocess_exec("true"), "asyncio.create_subprocess_exec", "run.step("),
        (lambda one: one.loop.call_later(1, print), "loop.call_later", "run.sleep"),
        (lambda one: one.loop.call_at(float("nan"), print), "loop.call_at", "run.sleep"),
        (lambda one: one.loop.run_in_executor(None, print), "loop.run_in_executor", "run.step("),
        (lambda one: one.loop.set_task_factory(print), "loop.set_task_factory", "own tasks"),
        (fail_after, "loop.call_at", "run.wait("),
        (lambda one: anyio.sleep(5), "asyncio.sleep", "run.sleep"),
        (lambda one: asyncio.create_task(asyncio.sleep(1)), "asyncio.sleep", "run.sleep"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_call_and_the_durable_one(call, named, instead):
    """SPEC 3.13: sleeps, timeouts, sockets and executors; S31: nothing hangs, nothing spins."""
    one = OnePass()
    task = one.run(calling(call), limit=100)
    assert task.result() == "went on"
    (refused,) = one.refused
    assert one.log[-1] is refused
    assert refused.call == named
    assert instead in refused.instead
    assert one.loop.unwind() == []


def test_the_engine_is_told_before_the_body():
    """SPEC 3.13: catching it does not help, for the pass is latched by then."""
    order: list[str] = []

    async def body():
        try:
            await asyncio.sleep(1)
        except NotDurable:
            order.append("body")

    one = OnePass()
    one.loop._on_refused = lambda error: order.append("engine")
    one.loop.spawn(body())
    one.loop.pump()
    assert order == ["engine", "body"]


def test_an_adapter_may_run_executor_calls_inline():
    """SPEC 3.13: at once, inside the turn, the failure as the future's."""

    async def body(one):
        one.loop.inline_executor = True
        with concurrent.futures.ThreadPoolExecutor() as pool:
            future = one.loop.run_in_executor(pool, one.log.append, "ran")
            assert future.done()
        assert one.log == ["ran"]
        with pytest.raises(KeyError):
            await asyncio.to_thread({}.__getitem__, "absent")
        return await asyncio.to_thread(lambda: "result")

    one = OnePass()
    assert one.run(body).result() == "result"
    assert one.refused == []


def test_no_refusal_counts_while_the_pass_is_unwound():
    """SPEC 3.8: a sleep in a `finally` of a parked body raises there, but does not block the run."""

    async def body(one):
        try:
            await one.wait("a")
        finally:
            await asyncio.sleep(1)

    one = OnePass()
    task = one.run(body)
    assert one.park() == []
    assert isinstance(task.exception(), NotDurable)
    assert one.refused == []

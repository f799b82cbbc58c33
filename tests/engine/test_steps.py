"""Steps: recorded at most once by name, with their safety levels (rules 3.3 to 3.7)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tarry import (
    NotRetrySafe,
    OutcomeUnknown,
    Retry,
    Run,
    RunFailed,
    Safety,
    Signal,
    Status,
    StepFailed,
    current_step,
)
from tarry.errors import NameReused, NotResolvable, WrongThread
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio

go = Signal("go", int)


async def test_a_step_is_done_once_and_answers_from_the_journal(lab: Lab) -> None:
    """SPEC 3.2, 3.4: a resume runs the body from the top; what is recorded is not executed again."""

    async def body(run: Run[Any]) -> str:
        first = await run.step("first", lab.note, "a", returns=str)
        await run.wait(go)
        return first + await run.step("second", lab.note, "b", returns=str)

    await lab.start(body)
    await lab.restart()
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == "ab"
    assert lab.log == ["a", "b"]


async def test_the_first_pass_sees_what_a_replay_sees(lab: Lab) -> None:
    """SPEC 13, S03: a value comes back decoded on the first pass too."""

    @dataclass
    class Point:
        x: int

    def give() -> dict[int, tuple[int, Point]]:
        return {1: (2, Point(3))}

    async def body(run: Run[Any]) -> list[str]:
        value = await run.step("give", give)
        lab.note(repr(value))
        await run.wait(go)
        return [repr(await run.step("again", give))]

    body.__annotations__["return"] = list[str]
    give.__annotations__["return"] = dict[int, tuple[int, Point]]
    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert len(set(lab.log)) == 1
    assert await lab.result() == [lab.log[0]]


async def test_branches_that_finish_in_another_order_are_not_swapped(lab: Lab) -> None:
    """SPEC 3.2, S04: names, not positions; replay does not depend on the order of finishing."""
    gates = {name: asyncio.Event() for name in "abc"}

    async def slow(name: str) -> str:
        await gates[name].wait()
        return lab.note(name)

    async def body(run: Run[Any]) -> list[str]:
        values = await asyncio.gather(*[run.step(name, slow, name) for name in "abc"])
        await run.wait(go)
        return values

    lab.register(body)
    await lab.app.start(body, id="r")
    driving = asyncio.ensure_future(lab.go_on())
    for name in "cba":
        gates[name].set()
        while name not in lab.log:
            await asyncio.sleep(0)
    await driving
    await lab.restart()
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == ["a", "b", "c"]
    assert lab.log == ["c", "b", "a"]


async def test_a_name_used_twice_in_a_pass_is_an_error_unless_keyed(lab: Lab) -> None:
    """SPEC 3.4: the second step or timer of a name raises NameReused; key= tells calls apart."""

    async def body(run: Run[Any]) -> list[str]:
        told = [await run.step("s", lab.note, key, key=key, returns=str) for key in ("x", "y")]
        await run.step("s", lab.note, "plain", returns=str)
        for again in (run.step("s", lab.note, "plain"), run.step("s", lab.note, "x", key="x")):
            try:
                await again
            except NameReused as error:
                told.append(type(error).__name__)
        return told

    await lab.start(body)
    assert await lab.result() == ["x", "y", "NameReused", "NameReused"]


async def test_changed_arguments_block_the_run_until_the_code_is_restored(lab: Lab) -> None:
    """SPEC 3.4, S34: a recorded step with other arguments is a mismatch; check=False turns that off."""

    def code(argument: int, **options: Any) -> Callable[..., Any]:
        async def body(run: Run[Any]) -> int:
            value = await run.step("s", lab.note, argument, returns=int, **options)
            await run.wait(go)
            return value

        return body

    await lab.start(code(1))
    await lab.restart(code(2))
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    blocked = await lab.app.run("r")
    assert (blocked.status, blocked.blocked) == (Status.BLOCKED, "changed code")
    assert "Step s" in (blocked.reason or "")
    await lab.restart(code(1))
    await lab.app.retry("r")
    await lab.go_on()
    assert (await lab.result(), lab.log) == (1, [1])


@pytest.mark.parametrize("change", ["insert", "rename", "swap"])
async def test_code_may_change_around_names_while_a_run_waits(lab: Lab, change: str) -> None:
    """SPEC 3.3, S34: new, renamed and reordered steps never get another step's value."""

    async def before(run: Run[Any]) -> list[str]:
        a = await run.step("a", lab.note, "a", returns=str)
        b = await run.step("b", lab.note, "b", returns=str)
        await run.wait(go)
        return [a, b]

    async def after(run: Run[Any]) -> list[str]:
        if change == "insert":
            await run.step("new", lab.note, "new", returns=str)
        names = ["b", "a"] if change == "swap" else ["a2" if change == "rename" else "a", "b"]
        values = [await run.step(name, lab.note, name, returns=str) for name in names]
        await run.wait(go)
        return sorted(values)

    after.__name__ = "before"
    await lab.start(before)
    await lab.restart(after)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    result = {"insert": ["a", "b"], "rename": ["a2", "b"], "swap": ["a", "b"]}[change]
    assert await lab.result() == result
    assert lab.log == ["a", "b"] + {"insert": ["new"], "rename": ["a2"], "swap": []}[change]


async def test_a_failing_step_raises_the_same_error_in_every_pass(lab: Lab) -> None:
    """SPEC 3.7, S81: StepFailed with type, message and is_a, first and replayed."""

    class Rejected(LookupError):
        def __init__(self, code: int, *, by: str) -> None:
            super().__init__(f"rejected by {by}")

    async def fails() -> None:
        raise Rejected(7, by="ann")

    async def body(run: Run[Any]) -> list[str]:
        try:
            await run.step("s", fails)
        except StepFailed as error:
            lab.note([error.fields["type"], error.fields["message"], error.is_a(LookupError), error.is_a(OSError)])
        await run.wait(go)
        return []

    await lab.start(body)
    await lab.restart()
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert lab.log[0] == lab.log[1]
    assert lab.log[0][1:] == ["rejected by ann", True, False]


class Declined(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def test_declared_errors_come_back_as_themselves(lab: Lab) -> None:
    """SPEC 3.7, S81: the class is chosen by the code at hand, never by a row."""

    async def fails() -> None:
        raise Declined(7)

    async def body(run: Run[Any]) -> None:
        try:
            await run.step("s", fails, errors=[Declined])
        except Declined as error:
            lab.note((type(error), error.code, error.args))
        await run.wait(go)

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert lab.log == [(Declined, 7, (7,))] * 2


async def test_retries_are_journaled_and_long_delays_park_the_run(lab: Lab) -> None:
    """SPEC 3.4b: attempts and the next instant survive a restart; beyond 5 s the run is parked during it."""

    async def flaky() -> int:
        lab.note(current_step().attempt)
        if len(lab.log) < 3:
            raise ValueError("no")
        return len(lab.log)

    async def body(run: Run[Any]) -> int:
        return await run.step("s", flaky, retries=Retry(5, first="10s", factor=2, jitter=0))

    paused = await lab.start(body)
    assert (paused.status, [w.kind for w in paused.waits]) == (Status.WAITING, ["retry"])
    await lab.restart()
    assert (await lab.after("9s")).status is Status.WAITING
    assert (await lab.after("1s")).status is Status.WAITING
    await lab.after("20s")
    assert (await lab.result(), lab.log) == (3, [1, 2, 3])


async def test_a_step_gives_up_after_its_attempts(lab: Lab) -> None:
    """SPEC 3.4b, 3.9: the last failure is the step's."""

    async def fails() -> None:
        lab.note(current_step().key)
        raise ValueError(len(lab.log))

    async def body(run: Run[Any]) -> None:
        await run.step("s", fails, retries=Retry(2, first="1ms", jitter=0))

    await lab.start(body)
    with pytest.raises(RunFailed, match="ValueError: 2"):
        await lab.result()
    assert lab.log == ["r/s", "r/s"]


async def crash_in(lab: Lab, body: Callable[..., Any], running: asyncio.Event) -> None:
    """Drives the run until its step runs, then loses the worker: its lease lapses and its run is reaped."""
    lab.register(body)
    await lab.app.start(body, id="r")
    driving = asyncio.ensure_future(lab.go_on())
    await running.wait()
    lab.clock.advance("20s")
    store, app = lab.app.store, lab.app
    row = store.run("r")
    assert row is not None
    assert row.worker is not None
    from tarry.core.commands import Reap

    await app.open().writer.commit(Reap("r", row.worker))
    driving.cancel()
    await asyncio.wait([driving])


async def test_an_idempotent_step_is_repeated_after_a_crash(lab: Lab) -> None:
    """SPEC 3.5: a crash between doing and recording repeats the step, under the same key."""
    running = asyncio.Event()

    async def work() -> str:
        lab.note(current_step().key)
        running.set()
        if len(lab.log) == 1:
            await asyncio.Event().wait()
        return "done"

    async def body(run: Run[Any]) -> str:
        return await run.step("s", work)

    await crash_in(lab, body, running)
    await lab.go_on()
    assert (await lab.result(), lab.log) == ("done", ["r/s", "r/s"])


async def test_an_at_most_once_step_is_not_repeated_after_a_crash(lab: Lab) -> None:
    """SPEC 3.5: OutcomeUnknown blocks the run until an operator says what happened."""
    running = asyncio.Event()

    async def pay() -> str:
        lab.note("paid")
        running.set()
        await asyncio.Event().wait()
        return "never"

    async def body(run: Run[Any]) -> str:
        return await run.step("pay", pay, safety=Safety.AT_MOST_ONCE)

    await crash_in(lab, body, running)
    await lab.go_on()
    blocked = await lab.app.run("r")
    assert (blocked.status, blocked.blocked, lab.log) == (Status.BLOCKED, "unknown outcome", ["paid"])
    await lab.app.resolve("r", "pay", result="txn_1", actor="ann")
    await lab.go_on()
    assert await lab.result() == "txn_1"
    with pytest.raises(NotResolvable):
        await lab.app.resolve("r", "nothing")


@pytest.mark.parametrize("failed", [True, False])
async def test_resolving_as_failed_or_by_doing_it_again(lab: Lab, failed: bool) -> None:
    """SPEC 3.5, 12.2: `failed` raises StepFailed at the step; `redo` runs it once more."""

    async def pay() -> str:
        lab.note("paid")
        if len(lab.log) == 1:
            await asyncio.Event().wait()
        return "again"

    async def body(run: Run[Any]) -> str:
        try:
            return await run.step("pay", pay, safety=Safety.AT_MOST_ONCE, timeout="5ms")
        except StepFailed as error:
            return str(error.fields["message"])

    await lab.start(body)
    await lab.app.resolve("r", "pay", **({"failed": "declined"} if failed else {"redo": True}))
    await lab.go_on()
    assert await lab.result() == ("declined" if failed else "again")
    assert len(lab.log) == (1 if failed else 2)


async def test_an_unknown_outcome_can_be_caught(lab: Lab) -> None:
    """SPEC 3.5: the code may deal with it itself."""

    async def pay() -> None:
        await asyncio.Event().wait()

    async def body(run: Run[Any]) -> str:
        try:
            await run.step("pay", pay, safety=Safety.AT_MOST_ONCE, timeout="1ms")
        except OutcomeUnknown:
            await run.wait(go)
            return "looked it up"
        return "?"

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == "looked it up"


async def test_at_most_once_is_tried_again_only_after_what_its_author_lists(lab: Lab) -> None:
    """SPEC 3.5: retry_on= means: nothing was done."""

    async def pay(wrong: str) -> str:
        lab.note(wrong)
        if len(lab.log) % 2:
            raise ConnectionRefusedError if wrong == "refused" else ValueError
        return "paid"

    async def body(run: Run[Any], wrong: str) -> str:
        return await run.step(
            "pay", pay, wrong, safety=Safety.AT_MOST_ONCE, retries=Retry(3, first="1ms"), retry_on=[ConnectionError]
        )

    await lab.start(body, "refused", id="a")
    assert await lab.result("a") == "paid"
    await lab.start(body, "wrong", id="b")
    assert await lab.status("b") is Status.FAILED


async def test_waits_inside_a_step_need_a_retry_safe_one(lab: Lab) -> None:
    """SPEC 3.6: NotRetrySafe before anything is recorded; a retry-safe step runs again until its wait resolves."""

    async def body(run: Run[Any], safety: Safety) -> int:
        async def tool() -> int:
            lab.note("tool")
            value = await run.wait(go)
            return await run.step("inner", lab.note, value, returns=int)

        try:
            return await run.step("tool", tool, safety=safety, errors=[NotRetrySafe])
        except NotRetrySafe:
            return -1

    assert (await lab.start(body, Safety.AT_MOST_ONCE, id="a")).status is Status.SUCCEEDED
    assert await lab.result("a") == -1
    assert (await lab.start(body, Safety.READ_ONLY, id="b")).status is Status.WAITING
    await lab.restart()
    await lab.app.signal("b", go, 4)
    await lab.go_on("b")
    assert await lab.result("b") == 4
    assert lab.log == ["tool", "tool", "tool", 4]
    assert ("wait", "tool/go", "ok") in await lab.journal("b")


async def test_a_step_runs_again_with_fresh_names_inside(lab: Lab) -> None:
    """SPEC 3.6: an attempt that is repeated answers its nested calls from what is journaled."""

    async def body(run: Run[Any]) -> int:
        async def tool() -> int:
            value = await run.step("inner", lab.note, 1, returns=int)
            got = await run.wait(go)
            if len(lab.log) < 2:
                lab.note("failed")
                raise ValueError
            return value + got

        return await run.step("tool", tool, retries=Retry(2, first="1ms"))

    await lab.start(body)
    await lab.app.signal("r", go, 4)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (5, [1, "failed"])


async def test_sync_steps_run_in_the_pool_and_know_their_step(lab: Lab) -> None:
    """SPEC 3.5c, 11.2: never on the loop; the key is there as in an async step."""

    def plain() -> str:
        lab.note(threading.current_thread().name)
        return current_step().key

    async def body(run: Run[Any]) -> str:
        return await run.step("s", plain)

    await lab.start(body)
    assert await lab.result() == "r/s"
    assert lab.log[0].startswith("tarry-step")


async def test_a_durable_call_from_another_thread_is_refused(lab: Lab) -> None:
    """SPEC 3.13, S29: WrongThread before any effect."""

    async def body(run: Run[Any]) -> list[str]:
        def plain() -> str:
            async def inner() -> None:
                await run.step("inner", lab.note, "never")

            try:
                asyncio.run(inner())
            except WrongThread:
                return "refused"
            return "?"

        return [await run.step("s", plain)]

    await lab.start(body)
    assert (await lab.result(), lab.log) == (["refused"], [])


async def test_a_value_that_cannot_be_stored_is_the_steps_failure_once(lab: Lab) -> None:
    """SPEC 13, S14, S74: recorded, with the reason; the step is not run again."""

    async def big() -> str:
        lab.note("big")
        return "x" * (2 << 20)

    async def odd() -> Any:
        return object()

    async def body(run: Run[Any]) -> list[str]:
        told: list[str] = []
        for name, fn in (("big", big), ("odd", odd)):
            try:
                await run.step(name, fn)
            except StepFailed as error:
                told.append(error.fields["type"].rpartition(".")[2])
        await run.wait(go)
        return told

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (["PayloadTooLarge", "Unencodable"], ["big"])


async def test_retrying_a_failed_run_does_the_failed_step_again(lab: Lab) -> None:
    """SPEC 12.2: what succeeded is answered from the journal."""

    async def flaky() -> str:
        lab.note("flaky")
        if lab.log.count("flaky") == 1:
            raise OSError("down")
        return "up"

    async def body(run: Run[Any]) -> str:
        await run.step("ok", lab.note, "ok", returns=str)
        return await run.step("flaky", flaky)

    await lab.start(body)
    assert await lab.status() is Status.FAILED
    await lab.app.retry("r", actor="ann")
    await lab.go_on()
    assert (await lab.result(), lab.log) == ("up", ["ok", "flaky", "flaky"])


async def test_a_workflow_retries_itself(lab: Lab) -> None:
    """SPEC 3.9: @app.workflow(retries=n) runs the body again, answering from the journal."""

    async def body(run: Run[Any]) -> str:
        lab.note("body")
        await run.step("once", lab.note, "step", returns=str)
        if lab.log.count("body") < 3:
            raise ValueError("again")
        return "done"

    lab.register(body, retries=Retry(3, first="1s", jitter=0))
    await lab.app.start(body, id="r")
    await lab.go_on()
    assert (await lab.after("1s")).status is Status.READY
    await lab.after("2s")
    assert (await lab.result(), lab.log.count("step")) == ("done", 1)


async def test_now_uuid_and_random_are_the_same_in_every_pass(lab: Lab) -> None:
    """SPEC 3.10: by name, from the run's seed and the store's clock; nothing positional."""

    async def body(run: Run[Any]) -> None:
        now = await run.now("began")
        lab.note((now, run.uuid("x"), run.uuid("y"), run.random("x"), run.random("y")))
        await run.wait(go)

    await lab.start(body)
    lab.clock.advance("1h")
    await lab.restart()
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    first, second = lab.log
    assert first == second
    assert len(set(first)) == 5

"""Waiting for signals: rules 4.1 to 4.13, as a workflow and its senders see them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from tarry import Channel, Run, RunFailed, Signal, Status, WaitTimeout
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio


@dataclass
class Payment:
    amount: int


paid = Signal("paid", Payment)
go = Signal("go", int)
other = Signal("other", int)


async def one_wait(run: Run[Any]) -> int:
    return await run.wait(go)


async def test_a_run_pauses_and_resumes_with_the_typed_payload(lab: Lab) -> None:
    """SPEC 4.1: the wait is on file while the run waits; the payload comes back as its type."""

    async def body(run: Run[Any]) -> str:
        payment = await run.wait(paid)
        return f"{type(payment).__name__} {payment.amount}"

    paused = await lab.start(body)
    assert (paused.status, [wait.name for wait in paused.waits]) == (Status.WAITING, ["paid"])
    receipt = await lab.app.signal("r", paid, Payment(5), key="evt_1")
    assert receipt.status == "delivered"
    await lab.go_on()
    assert await lab.result() == "Payment 5"


async def test_an_early_signal_is_buffered_and_consumed_at_the_wait(lab: Lab) -> None:
    """SPEC 4.3, 4.5, S69: a delivery before the wait, even before the first claim, is kept; its receipt tells."""
    lab.register(one_wait)
    await lab.app.start(one_wait, id="r")
    assert (await lab.app.signal("r", go, 7, key="k")).status == "buffered"
    await lab.go_on()
    assert await lab.result() == 7
    assert (await lab.app.receipt("r", go, "k")).status == "delivered"


async def test_duplicates_and_conflicts_are_told_and_change_nothing(lab: Lab) -> None:
    """SPEC 4.4, S28: the same key is a duplicate, a changed payload a conflict; the first payload stays."""
    await lab.start(one_wait)
    first = await lab.app.signal("r", go, 1, key="k")
    again = await lab.app.signal("r", go, 1, key="k")
    changed = await lab.app.signal("r", go, 2, key="k")
    late = await lab.app.signal("r", go, 3, key="other")
    assert [first.status, again.status, changed.status, late.status] == [
        "delivered",
        "duplicate",
        "conflict",
        "already_settled",
    ]
    assert {again.payload, changed.payload, late.payload} == {b"1"}
    await lab.go_on()
    assert await lab.result() == 1
    assert (await lab.app.signal("r", go, 1, key="k")).status == "duplicate"


async def test_a_wrong_type_is_told_at_the_door_and_the_wait_stays_open(lab: Lab) -> None:
    """SPEC 4.6, S11: a process without the code answers with field errors; a corrected payload wins."""
    await lab.start(one_wait)
    refused = await lab.app.signal("r", "go", "forty", key="k")
    assert refused.status == "invalid"
    assert refused.errors
    assert await lab.waits() == ["go"]
    assert (await lab.app.signal("r", "go", 40, key="k")).status == "delivered"
    await lab.go_on()
    assert await lab.result() == 40
    assert await lab.letters() == [("go", "invalid")]


async def test_what_only_the_type_refuses_is_withdrawn(lab: Lab) -> None:
    """SPEC 4.6: the receipt becomes invalid, the wait reopens with its old deadline, the key is freed."""

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    strict = Signal[Any]("strict", Annotated[int, AfterValidator(even)])  # type: ignore[arg-type]

    async def body(run: Run[Any]) -> int:
        return await run.wait(strict, timeout="1h")

    before = await lab.start(body)
    assert (await lab.app.signal("r", "strict", 3, key="k")).status == "delivered"
    lab.clock.advance("10m")
    after = await lab.go_on()
    assert (after.status, after.next_due) == (Status.WAITING, before.next_due)
    assert (await lab.app.receipt("r", "strict", "k")).status == "invalid"
    assert (await lab.app.signal("r", "strict", 3, key="k")).status == "invalid"
    assert (await lab.app.signal("r", "strict", 4, key="k")).status == "delivered"
    await lab.go_on()
    assert await lab.result() == 4


async def test_a_timeout_is_an_outcome_and_never_none(lab: Lab) -> None:
    """SPEC 4.7, S43: None is a payload; a timeout is raised, at the instant fixed when the wait was met."""
    maybe = Signal[int | None]("maybe")

    async def body(run: Run[Any]) -> str:
        try:
            return repr(await run.wait(maybe, timeout="10s"))
        except WaitTimeout as error:
            assert isinstance(error, TimeoutError)
            return "timeout"

    await lab.start(body, id="a")
    await lab.start(body, id="b")
    await lab.app.signal("a", maybe, None)
    await lab.after("10s", id="a")
    await lab.after("1ms", id="b")
    assert (await lab.result("a"), await lab.result("b")) == ("None", "timeout")


@pytest.mark.parametrize("payload", [False, 0, "", [], {}, None])
async def test_every_json_value_is_a_payload(lab: Lab, payload: Any) -> None:
    """SPEC 4.7, S43: what is falsy is delivered as it is."""

    async def body(run: Run[Any]) -> Any:
        return await run.wait(Signal("any"), timeout="1h")

    await lab.start(body)
    await lab.app.signal("r", "any", payload)
    await lab.go_on()
    assert await lab.result() == payload


async def test_a_deadline_is_fixed_at_first_encounter(lab: Lab) -> None:
    """SPEC 4.7, S62: restarts and changed code do not move it."""

    async def body(run: Run[Any]) -> str:
        try:
            await run.wait(go, timeout="60s")
        except WaitTimeout:
            return "timeout"
        return "signal"

    async def longer(run: Run[Any]) -> str:
        try:
            await run.wait(go, timeout="600s")
        except WaitTimeout:
            return "timeout"
        return "signal"

    longer.__name__ = "body"
    due = (await lab.start(body)).next_due
    lab.clock.advance("20s")
    await lab.restart(longer)
    assert (await lab.go_on()).next_due == due
    assert (await lab.after("40s")).status is Status.SUCCEEDED
    assert await lab.result() == "timeout"


async def test_at_the_deadline_the_timeout_wins_and_before_it_the_signal(lab: Lab) -> None:
    """SPEC 4.8: a delivery at or past the deadline writes the timeout, and is told so."""

    async def body(run: Run[Any]) -> str:
        try:
            return str(await run.wait(go, timeout="10s"))
        except WaitTimeout:
            return "timeout"

    await lab.start(body, id="late")
    await lab.start(body, id="early")
    lab.clock.advance(9.999)
    assert (await lab.app.signal("early", go, 1)).status == "delivered"
    lab.clock.advance(0.001)
    told = await lab.app.signal("late", go, 1)
    assert (told.status, told.reason) == ("stale", "timeout")
    await lab.go_on("early")
    await lab.go_on("late")
    assert (await lab.result("early"), await lab.result("late")) == ("1", "timeout")


async def test_each_timeout_is_journaled_for_its_own_round(lab: Lab) -> None:
    """SPEC 4.13, S06, S07, S08: a new wait on the name after a timeout is fresh: it pauses, with its own deadline."""

    async def body(run: Run[Any]) -> list[str]:
        told: list[str] = []
        for _ in range(3):
            try:
                told.append(str(await run.wait(go, timeout="5s")))
            except WaitTimeout:
                told.append("timeout")
        return told

    await lab.start(body)
    assert (await lab.after("6s")).status is Status.WAITING
    await lab.restart()
    assert (await lab.after("4s")).status is Status.WAITING
    assert (await lab.after("1s")).status is Status.WAITING
    assert (await lab.app.signal("r", go, 9)).status == "delivered"
    await lab.go_on()
    assert await lab.result() == ["timeout", "timeout", "9"]


@pytest.mark.parametrize(("late", "status"), [("refuse", "stale"), ("keep", "buffered")])
async def test_between_rounds_the_signal_says_what_becomes_of_a_delivery(lab: Lab, late: Any, status: str) -> None:
    """SPEC 4.13: between rounds a delivery is stale, or kept for the next round."""
    poke = Signal("poke", int, late=late)

    async def body(run: Run[Any]) -> str:
        try:
            await run.wait(poke, timeout="5s")
        except WaitTimeout:
            pass
        await run.sleep("gap", "1h")
        try:
            return str(await run.wait(poke, timeout="5s"))
        except WaitTimeout:
            return "timeout"

    await lab.start(body)
    await lab.after("5s")
    assert (await lab.app.signal("r", poke, 1)).status == status
    await lab.after("1h")
    await lab.after("5s")
    assert await lab.result() == ("1" if late == "keep" else "timeout")
    assert ("poke", "timeout") in await lab.letters() or late == "keep"


async def test_first_takes_one_closes_the_others_and_tells_late_senders(lab: Lab) -> None:
    """SPEC 4.9, S64, S70: one journaled winner; the losers are closed in the same transaction."""

    async def body(run: Run[Any]) -> list[Any]:
        match await run.first("decision", run.wait(go), run.wait(other), run.sleep("grace", "1h")):
            case (index, value):
                await run.wait(paid)
                return [index, value]

    await lab.start(body)
    assert sorted(await lab.waits()) == ["go", "grace", "other"]
    assert (await lab.app.signal("r", other, 5)).status == "delivered"
    late = await lab.app.signal("r", go, 6)
    assert (late.status, late.reason) == ("stale", "lost_race")
    await lab.go_on()
    assert await lab.waits() == ["paid"]
    await lab.restart()
    await lab.app.signal("r", paid, Payment(1))
    await lab.after("2h")
    assert await lab.result() == [1, 5]


async def test_first_over_a_channel_loses_the_wait_and_keeps_the_messages(lab: Lab) -> None:
    """SPEC 4.9: a channel only loses the wait."""
    numbers = Channel("numbers", int)

    async def body(run: Run[Any]) -> list[int]:
        await run.first("one", run.wait(go), run.receive(numbers))
        message = await run.receive(numbers)
        await message.ack()
        return [message.payload]

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.app.send("r", numbers, 8, key="a")
    await lab.go_on()
    assert await lab.result() == [8]


async def test_what_is_on_file_wins_a_race_in_commit_order(lab: Lab) -> None:
    """SPEC 4.9: of several answers on file the first committed one wins."""

    async def body(run: Run[Any]) -> list[int]:
        index, value = await run.first("x", run.wait(go), run.wait(other))
        return [index, value]

    lab.register(body)
    await lab.app.start(body, id="r")
    await lab.app.signal("r", other, 2)
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == [1, 2]


async def test_parallel_waits_on_one_latch_both_get_the_payload(lab: Lab) -> None:
    """SPEC 4.12, S44: waits in branches pause and resolve each for itself."""

    async def body(run: Run[Any]) -> list[int]:
        return await asyncio.gather(run.wait(go), run.wait(other), run.wait(go))

    await lab.start(body)
    await lab.app.signal("r", go, 1)
    await lab.restart()
    assert (await lab.go_on()).status is Status.WAITING
    await lab.app.signal("r", other, 2)
    await lab.go_on()
    assert await lab.result() == [1, 2, 1]


async def test_refused_early_by_the_caller_or_the_declaration(lab: Lab) -> None:
    """SPEC 4.3: require_wait, or early="refuse" as the workflow declares it, refuses what no wait is open for."""
    strict = Signal("strict", int, early="refuse")

    async def body(run: Run[Any]) -> int:
        return await run.wait(strict)

    lab.register(body, accepts=[strict, go])
    await lab.app.start(body, id="r")
    assert (await lab.app.signal("r", strict, 1)).status == "not_waiting"
    assert (await lab.app.signal("r", go, 1, require_wait=True)).status == "not_waiting"
    await lab.go_on()
    assert (await lab.app.signal("r", strict, 2, require_wait=True)).status == "delivered"
    await lab.go_on()
    assert await lab.result() == 2


async def test_a_branch_that_is_cancelled_gives_up_its_wait(lab: Lab) -> None:
    """SPEC 4.1, S08, S70: a race built by hand leaves no claim behind, live and replayed."""

    async def body(run: Run[Any]) -> list[Any]:
        tasks = [asyncio.ensure_future(run.wait(go)), asyncio.ensure_future(run.sleep("grace", "5s"))]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await run.wait(other)
        return [tasks.index(task) for task in done]

    await lab.start(body)
    await lab.after("5s")
    assert await lab.waits() == ["other"]
    assert (await lab.app.signal("r", go, 1)).reason == "abandoned"
    await lab.restart()
    await lab.app.signal("r", other, 1)
    await lab.go_on()
    assert await lab.result() == [1]


async def test_a_wait_beside_a_long_step_is_on_file_and_receives(lab: Lab) -> None:
    """SPEC 4.1, 4.2: the wait is opened and its branch goes on while a step is still running."""
    running, done = asyncio.Event(), asyncio.Event()

    async def long() -> str:
        running.set()
        await done.wait()
        return "done"

    async def branch(run: Run[Any]) -> str:
        value = await run.wait(go)
        return await run.step("marker", lab.note, f"got {value}", returns=str)

    async def body(run: Run[Any]) -> list[str]:
        return await asyncio.gather(branch(run), run.step("long", long))

    lab.register(body)
    await lab.app.start(body, id="r")
    driving = asyncio.ensure_future(lab.go_on())
    await running.wait()
    while await lab.waits() != ["go"]:
        await asyncio.sleep(0)
    assert (await lab.app.signal("r", go, 4)).status == "delivered"
    while ("step", "marker", "ok") not in await lab.journal():
        await asyncio.sleep(0)
    done.set()
    await driving
    assert await lab.result() == ["got 4", "done"]


async def test_what_ends_unread_is_a_dead_letter(lab: Lab) -> None:
    """SPEC 4.16, S67: a buffered signal that the run never read is told `stale` and kept."""

    async def body(run: Run[Any]) -> None:
        await run.wait(go)

    await lab.start(body)
    await lab.app.signal("r", other, 1, key="k")
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.letters() == [("other", "ended")]
    assert (await lab.app.receipt("r", other, "k")).status == "stale"
    late = await lab.app.signal("r", other, 2)
    assert (late.status, late.reason) == ("stale", "ended")


async def test_an_uncaught_timeout_fails_the_run_once(lab: Lab) -> None:
    """SPEC 3.9, S33: no retry for ever."""

    async def body(run: Run[Any]) -> None:
        await run.wait(go, timeout="1s")

    await lab.start(body)
    assert (await lab.after("1s")).status is Status.FAILED
    with pytest.raises(RunFailed, match="WaitTimeout"):
        await lab.result()


async def test_a_deadline_beside_a_long_step_fires_while_the_step_runs(lab: Lab) -> None:
    """SPEC 4.7, 3.4: the worker that holds the run sees to its deadlines."""
    done = asyncio.Event()

    async def long() -> str:
        await done.wait()
        return "done"

    async def branch(run: Run[Any]) -> str:
        try:
            await run.wait(go, timeout="20ms")
        except WaitTimeout:
            return await run.step("gave up", lab.note, "gave up", returns=str)
        return "?"

    async def body(run: Run[Any]) -> list[Any]:
        return list(await asyncio.gather(branch(run), run.step("long", long), run.wait(other)))

    lab.register(body)
    await lab.app.start(body, id="r")
    driving = asyncio.ensure_future(lab.go_on())
    while sorted(await lab.waits()) != ["go", "other"]:
        await asyncio.sleep(0)
    await lab.app.signal("r", other, 1)
    lab.clock.advance("20ms")
    while not lab.log:
        await asyncio.sleep(0)
    done.set()
    await driving
    assert await lab.result() == ["gave up", "done", 1]

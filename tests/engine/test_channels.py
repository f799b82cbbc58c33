"""Channels: order, acks, folds, handling and acking in one commit (rules 5.1 to 5.6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tarry import Channel, Run, RunFailed, Signal, Status
from tarry.errors import ChannelClosed, NotAcked, NotOldest
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio

numbers = Channel("numbers", int)
go = Signal("go", int)


async def send(lab: Lab, *values: int, id: str = "r") -> list[str]:
    return [(await lab.app.send(id, numbers, value, key=f"k{value}")).status for value in values]


async def plain(run: Run[Any]) -> list[int]:
    seen: list[int] = []
    async for message in run.messages(numbers):
        seen.append(message.payload)
        await message.ack()
    return seen


async def folded(run: Run[Any]) -> int:
    total = run.fold(numbers, 0)
    async for message in total:
        await message.ack(total.state + message.payload)
    return total.state


async def test_messages_come_in_order_each_once_and_a_redelivery_is_a_no_op(lab: Lab) -> None:
    """SPEC 5.1, 5.5, S28: deduplicated by key; the first payload wins; order is commit order."""
    await lab.start(plain)
    assert await send(lab, 3, 1, 2) == ["delivered"] * 3
    assert (await lab.app.send("r", numbers, 3, key="k3")).status == "duplicate"
    assert (await lab.app.send("r", numbers, 4, key="k3")).status == "conflict"
    await lab.go_on()
    await lab.restart()
    assert await send(lab, 9) == ["delivered"]
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert await lab.result() == [3, 1, 2, 9]


async def test_order_is_by_number_never_by_time(lab: Lab) -> None:
    """SPEC 5.5, 6.5, S68: a clock that stands still or goes back does not reorder."""
    from datetime import timedelta

    await lab.start(plain)
    for value in range(20):
        await send(lab, value)
        lab.clock.jump(timedelta(hours=-1 if value % 2 else 0))
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert await lab.result() == list(range(20))


@pytest.mark.parametrize("body", [plain, folded])
async def test_a_run_parked_at_every_message_ends_the_same(lab: Lab, body: Any) -> None:
    """SPEC 5.2, 5.3: whatever restarts lie between, each message counts once."""
    await lab.start(body)
    for value in range(1, 9):
        await send(lab, value)
        await lab.restart()
        assert (await lab.go_on()).status is Status.WAITING
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    result = await lab.result()
    assert (result if body is folded else sum(result)) == 36


async def test_many_messages_are_read_in_pages(lab: Lab) -> None:
    """SPEC 5.3: more than a page is read on, without a pause."""
    lab.register(folded)
    await lab.app.start(folded, id="r")
    assert set(await send(lab, *range(350))) == {"buffered"}
    assert (await lab.go_on()).status is Status.WAITING
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert await lab.result() == sum(range(350))


async def test_a_fold_is_right_at_every_moment(lab: Lab) -> None:
    """SPEC 5.3: initial before a message, the last acked state from the first line of a new pass, and after."""

    async def body(run: Run[Any]) -> int:
        total = run.fold(numbers, 100)
        lab.note(total.state)
        async for message in total:
            await message.ack(total.state + message.payload)
        lab.note(total.state)
        return total.state

    await lab.start(body)
    await send(lab, 5)
    await lab.go_on()
    await lab.restart()
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert lab.log == [100, 100, 105, 105]


async def test_a_folds_journal_does_not_grow(lab: Lab) -> None:
    """SPEC 5.3: what was journaled inside earlier rounds is dropped; names inside a round count per message."""

    async def body(run: Run[Any]) -> int:
        total = run.fold(numbers, 0)
        async for message in total:
            doubled = await run.step("double", lab.note, message.payload * 2, returns=int)
            await message.ack(total.state + doubled)
        return total.state

    await lab.start(body)
    for value in range(1, 6):
        await send(lab, value)
        await lab.go_on()
        assert len(await lab.journal()) <= 1
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (30, [2, 4, 6, 8, 10])


async def test_a_step_of_a_round_is_kept_until_its_ack(lab: Lab) -> None:
    """SPEC 5.3, 5.4: between handling and ack a pause hands the same message out, and the step answers."""

    async def body(run: Run[Any]) -> int:
        total = run.fold(numbers, 0)
        async for message in total:
            await run.step("ship", lab.note, message.payload, returns=int)
            await run.wait(Signal(f"go{message.payload}"))
            await message.ack(total.state + message.payload)
        return total.state

    await lab.start(body)
    await send(lab, 1, 2)
    for value in (1, 2):
        await lab.go_on()
        await lab.restart()
        await lab.app.signal("r", f"go{value}")
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (3, [1, 2])


@pytest.mark.parametrize("fold", [True, False])
async def test_handle_is_a_step_and_the_ack_in_one_commit(lab: Lab, fold: bool) -> None:
    """SPEC 5.4: keyed by the message; in a fold the function returns the new state."""

    async def add(state: int, value: int) -> int:
        return lab.note(state + value)

    async def body(run: Run[Any]) -> int:
        if not fold:
            total = 0
            async for message in run.messages(numbers):
                total = await message.handle("add", add, total, message.payload)
            return total
        folded = run.fold(numbers, 0)
        async for message in folded:
            assert await message.handle("add", add, folded.state, message.payload) == folded.state
        return folded.state

    await lab.start(body)
    for value in (1, 2, 3):
        await send(lab, value)
        await lab.go_on()
    await lab.restart()
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (6, [1, 3, 6])
    assert len(await lab.journal()) == (0 if fold else 7)


async def test_a_handler_that_fails_leaves_the_message_unacked(lab: Lab) -> None:
    """SPEC 5.4: the failure is the step's; the message is still the oldest."""

    async def fails(value: int) -> None:
        raise ValueError(value)

    async def body(run: Run[Any]) -> None:
        async for message in run.messages(numbers):
            await message.handle("fails", fails, message.payload)

    await lab.start(body)
    await send(lab, 1)
    await lab.go_on()
    with pytest.raises(RunFailed, match="ValueError: 1"):
        await lab.result()
    assert await lab.letters() == [("numbers", "ended")]


async def test_going_on_without_an_ack_and_acking_out_of_turn_are_errors(lab: Lab) -> None:
    """SPEC 5.2: NotAcked, NotOldest; ack by key where only the key is at hand."""

    async def body(run: Run[Any]) -> list[str]:
        told: list[str] = []
        first = await run.receive(numbers)
        try:
            await run.receive(numbers)
        except NotAcked:
            told.append("not acked")
        await run.ack(numbers, first.key)
        await first.ack()
        try:
            await run.ack(numbers, "k2")
        except NotOldest:
            told.append("not oldest")
        second = await run.receive(numbers)
        await second.ack()
        return told + [second.key]

    lab.register(body)
    await lab.app.start(body, id="r")
    await send(lab, 1, 2)
    await lab.go_on()
    assert await lab.result() == ["not acked", "not oldest", "k2"]


async def test_a_receive_inside_a_step_returns_the_oldest_unacked_message(lab: Lab) -> None:
    """SPEC 5.2: also when the step runs again."""

    async def body(run: Run[Any]) -> int:
        async def tool() -> int:
            message = await run.receive(numbers)
            lab.note(message.payload)
            if len(lab.log) == 1:
                raise ValueError
            await message.ack()
            return message.payload

        return await run.step("tool", tool, retries=1)

    await lab.start(body)
    await send(lab, 1, 2)
    await lab.go_on()
    assert (await lab.result(), lab.log) == (1, [1, 1])


async def test_a_message_that_does_not_fit_is_refused_and_passed_over(lab: Lab) -> None:
    """SPEC 4.6, 4.16: at the door where the schema is known; else when the type refuses it."""
    from typing import Annotated

    from pydantic import AfterValidator

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    evens = Channel[Any]("evens", Annotated[int, AfterValidator(even)])  # type: ignore[arg-type]

    async def body(run: Run[Any]) -> list[int]:
        seen: list[int] = []
        async for message in run.messages(evens):
            seen.append(message.payload)
            await message.ack()
        return seen

    await lab.start(body)
    assert (await lab.app.send("r", "evens", "x", key="x")).status == "invalid"
    assert [(await lab.app.send("r", "evens", v, key=str(v))).status for v in (1, 2, 3)] == ["delivered"] * 3
    await lab.go_on()
    await lab.restart()
    await lab.app.close_channel("r", evens)
    await lab.go_on()
    assert await lab.result() == [2]
    assert sorted(await lab.letters()) == [("evens", "invalid")] * 3
    assert (await lab.app.receipt("r", evens, "1")).status == "invalid"


async def test_a_closed_channel_ends_loops_and_receives(lab: Lab) -> None:
    """SPEC 5.6: after what is buffered; later messages are stale."""

    async def body(run: Run[Any]) -> list[Any]:
        told: list[Any] = [await plain(run)]
        try:
            await run.receive(numbers)
        except ChannelClosed:
            told.append("closed")
        return told

    lab.register(body)
    await lab.app.start(body, id="r")
    await send(lab, 1)
    assert await lab.app.close_channel("r", numbers) is True
    assert await lab.app.close_channel("r", numbers) is False
    late = await lab.app.send("r", numbers, 2, key="late")
    assert (late.status, late.reason) == ("stale", "closed")
    await lab.go_on()
    assert await lab.result() == [[1], "closed"]


async def test_names_match_exactly(lab: Lab) -> None:
    """SPEC 5.5: "a" never sees "ab", nor "A", nor a name with wildcards in it."""
    names = ["a", "ab", "A", "a%", "a_", "é", "e\u0301"]

    async def body(run: Run[Any]) -> dict[str, int]:
        seen: dict[str, int] = {}
        for name in names:
            message = await run.receive(Channel(name, int))
            seen[name] = message.payload
            await message.ack()
        return seen

    lab.register(body)
    await lab.app.start(body, id="r")
    for number, name in enumerate(names):
        await lab.app.send("r", name, number, key="k")
    await lab.go_on()
    assert await lab.result() == {name: number for number, name in enumerate(names)}


@dataclass
class Cart:
    items: dict[str, int]
    total: float


async def test_a_fold_keeps_its_type(lab: Lab) -> None:
    """SPEC 5.3, 13: the state comes back as what it was, on the first pass too."""

    async def body(run: Run[Any]) -> float:
        cart = run.fold(numbers, Cart({}, 0.0))
        async for message in cart:
            items = cart.state.items | {message.key: message.payload}
            await message.ack(Cart(items, cart.state.total + message.payload))
        assert isinstance(cart.state, Cart)
        return cart.state.total

    await lab.start(body)
    await send(lab, 1, 2)
    await lab.go_on()
    await lab.restart()
    await send(lab, 3)
    await lab.app.close_channel("r", numbers)
    await lab.go_on()
    assert await lab.result() == 6.0


async def test_a_loop_left_by_break_does_not_keep_its_scope(lab: Lab) -> None:
    """SPEC 5.3: names inside a round end with its ack."""

    async def body(run: Run[Any]) -> list[str]:
        total = run.fold(numbers, 0)
        while total.state < 3:
            message = await anext(aiter(total))
            await message.ack(total.state + message.payload)
        await run.step("after", lab.note, "after", returns=str)
        await run.wait(go)
        return []

    await lab.start(body)
    await send(lab, 1, 2)
    await lab.go_on()
    await lab.restart()
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert ("step", "after", "ok") in await lab.journal()
    assert lab.log == ["after"]


async def test_two_branches_share_a_channel_in_order(lab: Lab) -> None:
    """SPEC 3.2, 5.2: each message goes to one branch; a replay gives the same one to each."""

    async def reader(run: Run[Any], name: str) -> list[int]:
        message = await run.receive(numbers)
        await message.ack()
        await run.wait(Signal(f"go {name}"))
        return [message.payload]

    async def body(run: Run[Any]) -> list[list[int]]:
        return await asyncio.gather(reader(run, "a"), reader(run, "b"))

    await lab.start(body)
    await send(lab, 1, 2)
    await lab.go_on()
    await lab.restart()
    await lab.app.signal("r", "go b")
    await lab.app.signal("r", "go a")
    await lab.go_on()
    assert await lab.result() == [[1], [2]]

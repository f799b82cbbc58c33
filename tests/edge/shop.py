"""The App that the command's tests serve."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tarry import App, Channel, Run, Safety, Signal

HOSTILE = "\x1b[31m\x9b2J[bold]:smile: \u202eevil"


@dataclass
class Payment:
    amount: int


paid = Signal("paid", Payment)
picky = Signal("picky", int, early="refuse")
items = Channel("items", int)


def opened(url: str | None = None) -> App:
    app = App(url)
    app.workflow(accepts=[paid, picky, items])(order)
    for body in (basket, fails, hangs, unsure):
        app.workflow(body)
    return app


async def invoice(order_id: str) -> str:
    return f"invoice-{order_id}"


async def order(run: Run, order_id: str) -> str:
    made = await run.step("invoice", invoice, order_id)
    payment = await run.wait(paid, timeout="24h")
    return f"{made}: {payment.amount}"


async def basket(run: Run) -> int:
    total = 0
    async for message in run.messages(items):
        total += message.payload
        await message.ack()
    return total


async def broken() -> str:
    raise ValueError(HOSTILE)


async def fails(run: Run) -> str:
    return await run.step("broken", broken)


async def hangs(run: Run) -> None:
    await asyncio.sleep(1)


async def charge() -> int:
    await asyncio.Event().wait()
    return 0


async def unsure(run: Run) -> int:
    return await run.step("charge", charge, safety=Safety.AT_MOST_ONCE, timeout="1ms")

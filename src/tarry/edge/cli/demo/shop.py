"""The shop: the workflow that the demo breaks. A worker process runs it: `python -m …shop STORE LEDGER`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarry.app import App
from tarry.edge.cli.demo.ledger import Ledger
from tarry.engine.context import Run
from tarry.engine.frame import current_step
from tarry.engine.names import Channel, Signal
from tarry.errors import WaitTimeout

LEASE_S = 1.0
SLOW_S = 1.5


@dataclass
class Account:
    login: str


@dataclass
class Plan:
    name: str
    monthly_price_in_cents: int


@dataclass
class Purchase:
    account: Account
    plan: Plan


@dataclass
class Bought:
    """A part of a recorded marketplace webhook: what it has beside is ignored."""

    action: str
    marketplace_purchase: Purchase


paid = Signal("paid", Bought)
sponsors: Channel[Any] = Channel("sponsors")
GIFTS = 4


def shop(store: str, ledger: Ledger) -> App:
    app = App(store)

    async def effect(slow: bool) -> str:
        step = current_step()
        ledger.tried(step.key)
        await asyncio.sleep(SLOW_S if slow else 0)
        ledger.apply(step.key)
        return step.key

    @app.workflow(accepts=[paid, sponsors])
    async def order(run: Run[Any], kind: str) -> str:
        await run.step("reserve", effect, kind == "slow")
        try:
            bought = await run.wait(paid, timeout="2s" if kind == "hurried" else "24h")
        except WaitTimeout:
            await run.step("release", effect, False)
            return "abandoned"
        gifts = run.fold(sponsors, [0, 0])
        while kind == "sponsored" and gifts.state[0] < GIFTS:
            message = await anext(aiter(gifts))
            dollars = message.payload["sponsorship"]["tier"]["monthly_price_in_dollars"]
            await run.step("thank", effect, False, key=message.key)
            await message.ack([gifts.state[0] + 1, gifts.state[1] + dollars])
        await run.step("ship", effect, False)
        cents = bought.marketplace_purchase.plan.monthly_price_in_cents
        return f"shipped to {bought.marketplace_purchase.account.login}: {cents} cents, {gifts.state[1]} dollars given"

    return app


async def work(store: str, ledger: Path) -> None:
    async with shop(store, Ledger(ledger)) as app:
        await app.run_worker(lease_s=LEASE_S)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))

"""The shop that the demo breaks: `tarry worker tarry.edge.cli.demo.shop:app`, in the folder of store and world.

Nothing in it knows of kills. Its signal and its channel take recorded webhook bodies; what a body has beside the
fields that are declared here is ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tarry.app import App
from tarry.edge.cli.demo.world import World
from tarry.engine.context import Run
from tarry.engine.frame import current_step
from tarry.engine.names import Channel, Signal
from tarry.errors import WaitTimeout
from tarry.model import Safety

STORE = "sqlite:///shop.db"
WORLD = Path("world.txt")


class Plan(BaseModel):
    monthly_price_in_cents: int


class Purchase(BaseModel):
    unit_count: int
    plan: Plan


class Bought(BaseModel):
    """GitHub's `marketplace_purchase` event."""

    marketplace_purchase: Purchase


class Tier(BaseModel):
    monthly_price_in_dollars: int


class Sponsorship(BaseModel):
    tier: Tier


class Sponsored(BaseModel):
    """GitHub's `sponsorship` event."""

    sponsorship: Sponsorship


app = App(STORE)
paid = Signal("paid", Bought)
gifts = Channel("gifts", Sponsored)


async def ask_warehouse() -> str:
    return await World(WORLD).reserve(current_step().key)


async def post_letter() -> str:
    return await World(WORLD).post(current_step().key)


async def thank(dollars: int, gift: Sponsored) -> int:
    await World(WORLD).reserve(current_step().key)
    return dollars + gift.sponsorship.tier.monthly_price_in_dollars


@app.workflow(accepts=[paid])
async def order(run: Run[Any], patience: str) -> str:
    await run.step("reserve", ask_warehouse)
    try:
        bought = await run.wait(paid, timeout=patience)
    except WaitTimeout:
        await run.step("release", ask_warehouse)
        return "abandoned"
    await run.step("ship", ask_warehouse)
    await run.step("letter", post_letter, safety=Safety.AT_MOST_ONCE)
    purchase = bought.marketplace_purchase
    return f"shipped {purchase.unit_count} for {purchase.plan.monthly_price_in_cents} cents"


@app.workflow(accepts=[gifts])
async def fund(run: Run[Any]) -> str:
    total = run.fold(gifts, 0)
    async for gift in total:
        await gift.handle("thank", thank, total.state, gift.payload)
    return f"{total.state} dollars"

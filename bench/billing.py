"""What one more unit of a load costs in statements, rows and bytes, early and late.

Each load is played at a quarter of its size, at half of it and whole. The difference between two sizes holds
no cost of opening; divided by the units between them it is the cost of one more. If what is done for the
thousandth message grew with the nine hundred and ninety-nine before it, the later figure would be the larger
one.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.crew import Crew
from bench.loads import Load
from bench.systems import System

BILLABLE = ("raw", "tarry")
COUNTED = ("statements", "commits", "rows read", "bytes read", "bytes bound")


@dataclass(frozen=True)
class Cost:
    """Of one more unit of a load: from a quarter of its size to a half, and from there to the whole."""

    load: Load
    system: System
    early: dict[str, float]
    late: dict[str, float]


async def bills(loads: Sequence[Load], systems: Sequence[System], work: Path) -> list[Cost]:
    """The costs of each load that each system plays."""
    return [await cost(load, system, work) for load in loads for system in systems if load.name not in system.skips]


async def cost(load: Load, system: System, work: Path) -> Cost:
    sizes = [load.size // 4, load.size // 2, load.size]
    paid = [await bill(resized(load, size), system, work) for size in sizes]
    return Cost(load, system, each_more(paid[:2], sizes[:2]), each_more(paid[1:], sizes[1:]))


def resized(load: Any, size: int) -> Load:
    return replace(load, size=size)


async def bill(load: Load, system: System, work: Path) -> dict[str, int]:
    folder = work / "bill"
    folder.mkdir()
    try:
        async with Crew(system, folder, billed=True) as crew:
            await load.run(crew)
            return await crew.bill()
    finally:
        shutil.rmtree(folder)


def each_more(paid: Sequence[dict[str, int]], sizes: Sequence[int]) -> dict[str, float]:
    units = sizes[1] - sizes[0]
    return {name: (paid[1].get(name, 0) - paid[0].get(name, 0)) / units for name in COUNTED}


def show_bills(costs: Sequence[Cost], console: Console) -> None:
    table = Table("load", "system", title="per unit: from a quarter of the size to half, from half to the whole")
    for heading in COUNTED:
        table.add_column(heading, justify="right")
    for cost in costs:
        pairs = (f"{cost.early[name]:.2f}  {cost.late[name]:.2f}" for name in COUNTED)
        table.add_row(f"{cost.load.name} of {cost.load.size:,}", cost.system.name, *pairs)
    console.print(table)

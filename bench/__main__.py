"""`python -m bench`: play the loads, show the table, keep bench/results/latest.json.

Options: `--quick` plays a tenth of the sizes, `--loads W2,W5` and `--systems raw,dbos` some of them,
`--times` how often, `--bill` counts statements, rows and bytes instead of time. The exit code is 1 where a
trial failed.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from bench.billing import BILLABLE, bills, show_bills
from bench.contest import contest
from bench.loads import FULL, QUICK, Load
from bench.machine import load_average, machine
from bench.systems import DEFAULT, SYSTEMS
from bench.table import Results

HERE = Path(__file__).parent
WORK = HERE / "work" / str(os.getpid())
LATEST = HERE / "results" / "latest.json"
WIDTH = 132
Chosen = TypeVar("Chosen")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The loads, for Tarry and its rivals.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--loads", type=listed, help="such as W1,W2,W6")
    parser.add_argument("--systems", type=listed, default=list(DEFAULT), help=f"of {','.join(SYSTEMS)}")
    parser.add_argument("--times", type=int, default=3, help="how often each load is played")
    parser.add_argument("--bill", action="store_true", help="count statements, rows and bytes instead")
    return parser.parse_args()


def listed(text: str) -> list[str]:
    return text.split(",")


def chosen(of: Mapping[str, Chosen], names: Iterable[str] | None) -> list[Chosen]:
    """Those named, or all; an unknown name ends the program."""
    if unknown := set(names or ()) - set(of):
        sys.exit(f"no such load or system: {', '.join(sorted(unknown))}; there are {', '.join(of)}")
    return [of[name] for name in (of if names is None else names)]


def loads_of(options: argparse.Namespace) -> list[Load]:
    sizes = QUICK if options.quick or options.bill else FULL
    named = {measure.name.split()[0]: load for load in sizes for measure in load.measures}
    return list(dict.fromkeys(chosen(named, options.loads)))


def keep(found: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    LATEST.parent.mkdir(exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    LATEST.write_text(json.dumps({"when": when, "machine": about, **found}, indent=1) + "\n", "utf-8")


async def timed(options: argparse.Namespace, console: Console) -> int:
    systems = chosen(SYSTEMS, options.systems)
    for system in systems:
        system.python()
    about = machine(WORK)
    console.print(", ".join(f"{name} {value}" for name, value in about.items()), style="dim", highlight=False)
    tell = partial(print, file=sys.stderr, flush=True)
    entries = await contest(loads_of(options), systems, options.times, WORK, tell)
    results = Results(entries)
    results.show(console)
    about["load_average_after"] = load_average()
    keep({"sizes": "quick" if options.quick else "full", "results": results.kept()}, about)
    return int(any(entry.failure for entry in entries))


async def billed(options: argparse.Namespace, console: Console) -> int:
    systems = chosen(SYSTEMS, [name for name in options.systems if name in BILLABLE])
    show_bills(await bills(loads_of(options), systems, WORK), console)
    return 0


def console() -> Console:
    """As wide as the table needs, where the terminal does not say or is narrower."""
    return Console(width=max(WIDTH, Console().width))


def main() -> int:
    given = options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that its children and files go too
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        return asyncio.run((billed if given.bill else timed)(given, console()))
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

"""worker: claims runs until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from typing import Annotated

from cyclopts import Parameter

from tarry.edge.cli import failing, given
from tarry.edge.cli.failing import Usage
from tarry.edge.cli.text import clean


def worker(
    target: Annotated[str, Parameter(help="MODULE:APP, like shop:app")],
    *,
    concurrency: Annotated[int, Parameter(help="Runs held at once.")] = 1000,
    threads: Annotated[int, Parameter(help="For plain functions as steps.")] = 32,
    lease: Annotated[float, Parameter(help="Seconds until a dead worker's runs are others'.")] = 10.0,
    store: Annotated[str | None, Parameter(help="The store's URL; else TARRY_STORE, else that of the App.")] = None,
    debug: Annotated[bool, given.Flag, Parameter(help="Log everything, with tracebacks.")] = False,
) -> int:
    """Run the workflows of MODULE:APP until SIGTERM or Ctrl-C."""
    if debug:
        os.environ["TARRY_LOG_LEVEL"] = "debug"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=log_level())
    app = given.load(target)
    names = ", ".join(sorted(app.registry.accepts))
    if not names:
        raise Usage(f"{target} registers no workflow")

    async def work() -> None:
        app.open(given.named_store(store))
        async with app:
            print(f"worker {os.getpid()} of {target} runs {names}", file=sys.stderr)
            await app.run_worker(concurrency=concurrency, threads=threads, lease_s=lease)
            print("worker stopped; what it held is ready for others", file=sys.stderr)

    gc.set_threshold(50_000, 20, 50)  # many small objects, all of them freed by count: looking for cycles costs a fifth
    asyncio.run(work())
    return failing.OK


class _Lines(logging.Formatter):
    """No text of a payload or an exception can forge a line's beginning, or control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        first, *more = super().format(record).split("\n")
        return "\n".join([clean(first), *(f"    {clean(line)}" for line in more)])


def log_level() -> str:
    level = os.environ.get("TARRY_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise Usage(f"TARRY_LOG_LEVEL is debug, info, warning or error, not {level.lower()}")
    return level

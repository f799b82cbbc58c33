"""worker: claims runs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Annotated

from cyclopts import Parameter

from tarry.edge.cli import failing, given
from tarry.edge.cli.failing import Usage


def worker(
    target: Annotated[str, Parameter(help="MODULE:APP, like shop:app")],
    *,
    concurrency: Annotated[int, Parameter(help="Runs held at once.")] = 1000,
    threads: Annotated[int, Parameter(help="For plain functions as steps.")] = 32,
    lease: Annotated[float, Parameter(help="Seconds until a dead worker's runs are others'.")] = 10.0,
) -> int:
    """Run the workflows of MODULE:APP until SIGTERM or Ctrl-C."""
    logging.basicConfig(
        stream=sys.stderr, level=log_level(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
    app = given.load(target)
    names = ", ".join(sorted(app.registry.accepts))
    if not names:
        raise Usage(f"{target} registers no workflow")

    async def work() -> None:
        async with app:
            print(f"worker {os.getpid()} of {target} runs {names}", file=sys.stderr)
            await app.run_worker(concurrency=concurrency, threads=threads, lease_s=lease)
            print("worker stopped; what it held is ready for others", file=sys.stderr)

    asyncio.run(work())
    return failing.OK


def log_level() -> str:
    level = os.environ.get("TARRY_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise Usage(f"TARRY_LOG_LEVEL is debug, info, warning or error, not {level.lower()}")
    return level

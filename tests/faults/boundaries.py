"""Kills a worker with -9 at each commit boundary of a run, once before and once after the commit.

    python -m tests.faults.boundaries FOLDER

One run per boundary, with all its events delivered ahead and twice; a second worker finishes what the first
one left. Exits 1 if the checker finds anything, or if a kill did not happen.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from tarry.store.opening import open_store
from tests.faults import processes
from tests.faults.deadly import DeadlyStore
from tests.faults.town import PARCELS, Town
from tests.faults.verdict import judge

LEASE_S = 0.4
MOST = 60


def one(folder: Path, at: int, side: str) -> tuple[bool, str]:
    """Whether the worker died at that commit, and what the checker says."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    url = f"sqlite:///{folder}/town.db"

    async def prepare() -> None:
        town = Town(url, folder, "sender", 0)
        await town.app.start("order", 1, id="order-1")
        for _ in range(2):
            await town.deliver("order-1", "paid", 5, "paid-1")
            await town.deliver("order-1", "extra", 7, "extra-1")
            for parcel in range(PARCELS):
                await town.deliver("order-1", "parcels", parcel, f"parcel-{parcel}")
        await town.app.close()

    async def doomed() -> None:
        await work(Town(DeadlyStore(open_store(url), at, side), folder, "doomed", 0))

    async def heir() -> None:
        await work(Town(url, folder, "heir", 0))

    async def work(town: Any) -> None:
        async with town.app.worker(lease_s=LEASE_S):
            await town.ended("order-1")
        await town.app.close()

    assert processes.join(processes.fork(prepare)) == 0
    died = processes.join(processes.fork(doomed)) == -9
    assert processes.join(processes.fork(heir)) == 0
    report = judge(url, folder, LEASE_S)
    text = report.summary() + "".join(f"\n{violation}" for violation in report.violations)
    return died, text if not report.ok else ""


def main(folder: Path) -> int:
    killed = wrong = 0
    for at in range(1, MOST):
        told = [one(folder / f"{at}-{side}", at, side) for side in ("before", "after")]
        killed += sum(died for died, _ in told)
        for side, (_, text) in zip(("before", "after"), told, strict=True):
            if text:
                wrong += 1
                print(f"commit {at}, {side}: {text}")
        if not any(died for died, _ in told):
            break
    print(f"{killed} kills at commit boundaries, {wrong} with violations")
    return 1 if wrong or killed < 20 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

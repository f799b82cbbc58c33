"""A siege: workers on one SQLite file are killed with -9 at random, and stopped past their lease, while senders
deliver every event three times from other processes.

    python -m tests.faults.siege FOLDER --runs 2000 --kills 300 --stops 20 --seed 1

It paces its runs so that there is work as long as there is something to kill, heals, waits for every run to
end, and lets the history checker judge. Exits 1 on any violation, or if it could not do all that it should.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import time
from pathlib import Path

import apsw

from tarry.engine import hosting
from tarry.testing.history import Healed, Recorder
from tests.faults import processes
from tests.faults.town import PARCELS, Town
from tests.faults.verdict import judge

LEASE_S = 2.5
WORKERS = 3
SENDERS = 8
TIMES = 3
BREATH_S = 0.25
HEARTLESS = 0.2


class Siege:
    def __init__(self, folder: Path, runs: int, kills: int, stops: int, seed: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder = folder
        self.url = f"sqlite:///{folder}/town.db"
        self.runs = runs
        self.kills = kills
        self.stops = stops
        self.patience_s = 60.0
        self.chance = random.Random(seed)
        self.pace_s = (BREATH_S * (kills + stops) + 2.5 * LEASE_S * stops) / max(runs, 1)

    # --- what the processes do ---

    async def work(self) -> None:
        town = Town(self.url, self.folder, "worker", pace_s=0.6)
        await town.app.run_worker(lease_s=LEASE_S, concurrency=60)
        await town.app.close()

    async def work_without_a_heart(self) -> None:
        """A worker that lets its lease lapse and does not notice: all that it writes then has to be refused."""
        hosting.Heart.start = hosting.Heart.stop = lambda self: None  # type: ignore[method-assign]
        await self.work()

    async def start(self) -> None:
        town = Town(self.url, self.folder, "starter", 0)
        for number in range(self.runs):
            await town.app.start("order", number, id=f"order-{number}")
            await asyncio.sleep(self.pace_s)
        await town.app.close()

    async def send(self, who: int) -> None:
        """This sender's share of the events, each of them three times, in an order of its own."""
        town = Town(self.url, self.folder, "sender", 0)
        mine = [number for number in range(self.runs) if number % SENDERS in (who, (who + 1) % SENDERS)]
        for first in range(0, len(mine), 8):
            await asyncio.gather(*(self._events(town, number, who) for number in mine[first : first + 8]))
        await town.app.close()

    async def _events(self, town: Town, number: int, who: int) -> None:
        """The sender that owns the run sends twice; its neighbour sends the same once more."""
        run_id = f"order-{number}"
        events = [("paid", number, "paid-1"), ("extra", number + 1, "extra-1")]
        events += [("parcels", parcel, f"parcel-{parcel}") for parcel in range(PARCELS)]
        for _ in range(TIMES - 1 if number % SENDERS == who else 1):
            random.shuffle(events)
            for name, payload, key in events:
                await town.deliver(run_id, name, payload, key)

    async def await_the_end(self) -> None:
        town = Town(self.url, self.folder, "witness", 0)
        async with asyncio.timeout(self.patience_s):
            await asyncio.gather(*(town.ended(f"order-{number}") for number in range(self.runs)))
        await town.app.close()

    # --- the siege ---

    def lay(self) -> int:
        began = time.monotonic()
        workers = [processes.fork(self.work) for _ in range(WORKERS)]
        others = [("starter", processes.fork(self.start))]
        others += [(f"sender {who}", processes.fork(lambda who=who: self.send(who))) for who in range(SENDERS)]
        killed, stopped = self.break_things(workers)
        self.heal()
        failed = [name for name, pid in others if processes.join(pid) != 0]
        if processes.join(processes.fork(self.await_the_end)) != 0:
            failed.append("witness")
        failed += ["worker" for pid in workers if processes.end(pid) != 0]
        report = judge(self.url, self.folder, LEASE_S)
        for violation in report.violations[:20]:
            print(violation)
        counts = {name: report.counts[name] for name in ("runs", "deliveries", "passes", "effects", "fenced", "torn")}
        print(f"{self.runs} runs, {killed} kills, {stopped} zombies in {time.monotonic() - began:.0f} s: {counts}")
        print(report.summary())
        done = killed >= self.kills and stopped >= self.stops and not failed
        if failed:
            print(f"processes that failed: {failed}")
        return 0 if report.ok and done else 1

    def break_things(self, workers: list[int]) -> tuple[int, int]:
        killed = stopped = misses = 0
        while (killed < self.kills or stopped < self.stops) and misses < 400:
            time.sleep(BREATH_S * self.chance.random())
            place = self.chance.randrange(len(workers))
            if not self.holds_runs(workers[place]):
                misses += 1
            elif stopped < self.stops and self.chance.random() < 0.15:
                self.make_a_zombie(workers[place])
                stopped += 1
            elif killed < self.kills:
                processes.kill(workers[place])
                heartless = self.chance.random() < HEARTLESS
                workers[place] = processes.fork(self.work_without_a_heart if heartless else self.work)
                killed += 1
        return killed, stopped

    def make_a_zombie(self, pid: int) -> None:
        """Stopped for twice its lease, so that others have taken its runs, then let go on."""
        processes.stop(pid)
        time.sleep(2 * LEASE_S)
        processes.go_on(pid)

    def holds_runs(self, pid: int) -> bool:
        try:
            link = apsw.Connection(str(self.folder / "town.db"), flags=apsw.SQLITE_OPEN_READONLY)
        except apsw.Error:
            return False
        try:
            link.set_busy_timeout(1000)
            question = "select count(*) from runs join workers on runs.worker = workers.id where workers.pid = ?"
            return link.execute(question, (pid,)).fetchone() != (0,)
        except apsw.Error:
            return False
        finally:
            link.close()

    def heal(self) -> None:
        with Recorder(self.folder / "siege.jsonl", "siege") as recorder:
            recorder.write(Healed())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, default in (("runs", 2000), ("kills", 300), ("stops", 0), ("seed", 1), ("patience", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    siege = Siege(asked.folder, asked.runs, asked.kills, asked.stops, asked.seed)
    siege.patience_s = asked.patience
    return siege.lay()


if __name__ == "__main__":
    sys.exit(main())

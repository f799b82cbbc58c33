"""Each load once: what is done, how large, what is measured, and what Tarry on SQLite is to reach.

A load asks a crew, which is a worker and, where a delivery comes from outside, a sender in another process;
what the system is, it does not know. Goals are for the full sizes on two cores; ratios hold where figures do
not.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from bench.commits import commits
from bench.crew import Crew, Gone, Member
from bench.pace import percentile

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """One row of the table. `goal` is Tarry's on SQLite, `ratio` how many times better than the rival."""

    name: str
    what: str
    unit: str
    goal: float
    ratio: float | None = None
    more_is_better: bool = True


class Load(Protocol):
    """What a contest plays. `limit_s` ends a trial, its processes too."""

    measures: ClassVar[tuple[Measure, ...]]

    @property
    def name(self) -> str: ...

    @property
    def limit_s(self) -> float: ...

    @property
    def size(self) -> int:
        """How many runs, messages, steps or sends."""
        ...

    async def run(self, crew: Crew) -> Figures: ...


@dataclass(frozen=True)
class Finish:
    """Start, one step, finish: all at full concurrency in one process."""

    size: int = 2_000
    at_once: int = 2_000
    limit_s: float = 180
    name: str = "W1"
    measures: ClassVar = (Measure("W1", "start, one step, finish", "runs/s", 6_000),)

    async def run(self, crew: Crew) -> Figures:
        worker = await crew.worker()
        began, ended = await worker.ask("finish_runs", runs=self.size, at_once=self.at_once)
        return {"W1": self.size / (ended - began)}


@dataclass(frozen=True)
class Wait:
    """Bring runs to their wait, leave them idle, then signal each from another process until all ended."""

    size: int = 10_000
    at_once: int = 64
    settle_s: float = 3
    idle_s: float = 20
    limit_s: float = 600
    name: str = "W2"
    measures: ClassVar = (
        Measure("W2p", "runs brought to their wait", "runs/s", 8_000),
        Measure("W6 memory", "worker with all runs waiting", "MB", 60, more_is_better=False),
        Measure("W6 processor", "the same, idle", "% of a core", 0.5, more_is_better=False),
        Measure("W6 commits", "the same, idle", "commits/s", 0.5, more_is_better=False),
        Measure("W2", "one signal to each, until all have ended", "signals/s", 8_000, ratio=60),
    )

    async def run(self, crew: Crew) -> Figures:
        worker, sender = await crew.worker(), await crew.sender()
        began, waiting = await worker.ask("bring_to_wait", runs=self.size, at_once=self.at_once)
        idle = await self.idle(worker, crew)
        (sent, _), ended = await asyncio.gather(
            sender.ask("signal_each", runs=self.size, at_once=self.at_once),
            worker.ask("all_resumed", runs=self.size),
        )
        return {"W2p": self.size / (waiting - began), **idle, "W2": self.size / (ended - sent)}

    async def idle(self, worker: Member, crew: Crew) -> Figures:
        await asyncio.sleep(self.settle_s)
        before, counted = await worker.ask("usage"), commits(crew.store)
        await asyncio.sleep(self.idle_s)
        after, count = await worker.ask("usage"), commits(crew.store)
        return {
            "W6 memory": after["resident_mb"],
            "W6 processor": 100 * (after["cpu_s"] - before["cpu_s"]) / self.idle_s,
            "W6 commits": (count - counted) / self.idle_s,
        }


@dataclass(frozen=True)
class Resume:
    """From a send in another process to user code going on, one run after the other, at odd moments."""

    size: int = 200
    limit_s: float = 420
    name: str = "W3"
    measures: ClassVar = (
        Measure("W3 p50", "from send to user code going on", "ms", 1.5, more_is_better=False),
        Measure("W3 p99", "the same, one in a hundred", "ms", 3, more_is_better=False),
    )

    async def run(self, crew: Crew) -> Figures:
        worker, sender = await crew.worker(), await crew.sender()
        delays = [1_000 * await self.delay(worker, sender, run) for run in range(self.size)]
        return {"W3 p50": percentile(delays, 50), "W3 p99": percentile(delays, 99)}

    async def delay(self, worker: Member, sender: Member, run: int) -> float:
        await worker.ask("bring_one", run=run)
        resumed = asyncio.create_task(worker.ask("one_resumed", run=run))
        await asyncio.sleep(0.02 + random.random() * 0.05)  # in step with no poll
        sent = await sender.ask("signal_one", run=run)
        return await resumed - sent


@dataclass(frozen=True)
class Channel:
    """One channel of one run: messages sent live from another process; receive, handle, ack each."""

    size: int = 10_000
    at_once: int = 64
    limit_s: float = 300
    name: str = "W4"
    measures: ClassVar[tuple[Measure, ...]] = (Measure("W4", "one channel of one run", "messages/s", 4_000),)

    async def run(self, crew: Crew) -> Figures:
        worker, sender = await crew.worker(), await crew.sender()
        await worker.ask("open_channel", messages=self.size, held=False)
        (sent, _), pace = await asyncio.gather(
            sender.ask("send_all", messages=self.size, at_once=self.at_once),
            worker.ask("channel_ended"),
        )
        return {"W4": self.size / (pace["ended"] - sent)}


@dataclass(frozen=True)
class Backlog(Channel):
    """The same channel with all messages sent before the first is taken in: does the cost of one grow?"""

    size: int = 100_000
    limit_s: float = 300
    name: str = "W4f"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("W4f", "time per message, last tenth to first", "times", 1.2, more_is_better=False),
    )

    async def run(self, crew: Crew) -> Figures:
        worker, sender = await crew.worker(), await crew.sender()
        await worker.ask("open_channel", messages=self.size, held=True)
        await sender.ask("send_all", messages=self.size, at_once=self.at_once)
        pace = await worker.ask("channel_ended")
        return {"W4f": pace["last_s"] / pace["first_s"]}


@dataclass(frozen=True)
class Steps:
    """Steps of one run, one after the other."""

    size: int = 5_000
    limit_s: float = 120
    name: str = "W5"
    measures: ClassVar = (Measure("W5", "sequential steps of one run", "steps/s", 6_000),)

    async def run(self, crew: Crew) -> Figures:
        worker = await crew.worker()
        pace = await worker.ask("take_steps", steps=self.size, crash_after=None)
        return {"W5": self.size / (pace["ended"] - pace["began"])}


@dataclass(frozen=True)
class Recover:
    """Kill -9 near the end of a run of many steps; a new process opens the store and gets as far again."""

    size: int = 1_000
    limit_s: float = 120
    name: str = "W5r"
    measures: ClassVar = (
        Measure("W5r", "from opening the store to the step of the crash", "s", 0.05, more_is_better=False),
    )

    async def run(self, crew: Crew) -> Figures:
        crash = self.size - 10
        await self.crash(await crew.worker(), crash)
        await asyncio.sleep(crew.system.lease_s)
        second = await crew.started("worker")
        began = await second.ask("open")
        return {"W5r": await second.ask("recovered", steps=self.size, crash_after=crash) - began}

    async def crash(self, worker: Member, crash: int) -> None:
        try:
            await worker.ask("take_steps", steps=self.size, crash_after=crash)
        except Gone:
            if await worker.killed_itself():
                return
            raise
        raise AssertionError("the worker was to die and answered")


@dataclass(frozen=True)
class Repeat:
    """The same message with the same key, again and again; one may be kept."""

    size: int = 10_000
    at_once: int = 64
    limit_s: float = 120
    name: str = "W7"
    measures: ClassVar = (Measure("W7", "sends of one message under one key", "sends/s", 40_000),)

    async def run(self, crew: Crew) -> Figures:
        worker, sender = await crew.worker(), await crew.sender()
        await worker.ask("open_channel", messages=2, held=False)
        began, ended = await sender.ask("send_same", sends=self.size, at_once=self.at_once)
        kept = await worker.ask("kept")
        assert kept == 1, f"{kept} messages are on file where one key was used"
        return {"W7": self.size / (ended - began)}


FULL: tuple[Load, ...] = (
    Finish(), Wait(), Resume(), Channel(), Backlog(), Steps(), Recover(), Repeat(),
)  # fmt: skip
# A tenth of each; a recovery is short, and its goal is for a thousand steps.
QUICK: tuple[Load, ...] = (
    Finish(size=200, at_once=200),
    Wait(size=1_000, settle_s=1, idle_s=5),
    Resume(size=20),
    Channel(size=1_000),
    Backlog(size=10_000),
    Steps(size=500),
    Recover(),
    Repeat(size=1_000),
)

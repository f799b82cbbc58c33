"""Tarry on SQLite, through its public App: types checked at the door, leases, receipts, replay, all as users get it."""

import asyncio
import gc
import os
import signal
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from bench.host import serve
from bench.pace import Pace, instant, pace
from bench.roles import Role, Sender, Span, Worker
from tarry import App, Channel, Run, Signal

LEASE_S = 1.0


@dataclass
class Mail:
    k: int


poke = Signal("poke", Mail)
mails = Channel("mails", Mail)


class TarryRole(Role):
    async def open(self) -> None:
        self.app = App(f"sqlite:///{self.store.absolute()}")
        self.app.open()


class TarryWorker(TarryRole, Worker):
    async def open(self) -> None:
        gc.set_threshold(50_000, 20, 50)  # what `tarry worker` sets
        await super().open()
        self.resumed: dict[str, float] = {}
        self.taken: list[float] = []
        self.crash_after: int | None = None
        self.executed = 0
        self.release = asyncio.Event()
        for body in (self.w1, self.w2, self.w4, self.w5):
            self.app.workflow(name=body.__name__)(body)
        self.stack = AsyncExitStack()
        await self.stack.enter_async_context(self.app.worker(lease_s=LEASE_S))

    async def about(self) -> dict[str, str]:
        facts: dict[str, Any] = self.app.store.facts()  # type: ignore[attr-defined]
        kept = ("sqlite_version", "journal_mode", "synchronous")
        return {"tarry": version("tarry"), **{name: str(facts[name]) for name in kept}}

    # --- the workflows ---

    async def w1(self, run: Run[Any], number: int) -> int:
        return await run.step("add", add_one, number)

    async def w2(self, run: Run[Any], number: int) -> int:
        mail = await run.wait(poke)
        self.resumed[run.id] = instant()
        assert mail.k == number
        return mail.k

    async def w4(self, run: Run[Any], messages: int) -> int:
        count = run.fold(mails, 0)
        while count.state < messages:
            message = await anext(aiter(count))
            assert message.payload.k == count.state
            self.taken.append(instant())
            await message.handle("count", add_one, count.state)
        return count.state

    async def w5(self, run: Run[Any], steps: int) -> int:
        for number in range(steps):
            await run.step(f"step-{number}", self.step, number)
            self.taken.append(instant())
            if number == self.crash_after:
                os.kill(os.getpid(), signal.SIGKILL)
        return steps

    async def step(self, number: int) -> int:
        self.executed += 1
        return number + 1

    # --- the loads ---

    async def finish_runs(self, runs: int, at_once: int) -> Span:
        began = instant()

        async def one(number: int) -> None:
            handle = await self.app.start(self.w1, number)
            assert await handle.result() == number + 1

        await at_a_time(at_once, (one(number) for number in range(runs)))
        return began, instant()

    async def bring_to_wait(self, runs: int, at_once: int) -> Span:
        began = instant()
        starts = (self.app.start(self.w2, number, id=f"run-{number}") for number in range(runs))
        await at_a_time(at_once, starts)
        await self.waiting([f"run-{number}" for number in range(runs)])
        return began, instant()

    async def waiting(self, run_ids: list[str]) -> None:
        left = run_ids
        while left:
            found = self.app.store.statuses(left)
            left = [run_id for run_id in left if found.get(run_id) != "waiting"]
            await asyncio.sleep(0.005 if left else 0)

    async def all_resumed(self, runs: int) -> float:
        handles = [self.app.handle(f"run-{number}") for number in range(runs)]
        assert await asyncio.gather(*(handle.result() for handle in handles)) == list(range(runs))
        return max(self.resumed.values())

    async def bring_one(self, run: int) -> None:
        await self.app.start(self.w2, run, id=f"run-{run}")
        await self.waiting([f"run-{run}"])

    async def one_resumed(self, run: int) -> float:
        assert await self.app.handle(f"run-{run}").result() == run
        return self.resumed[f"run-{run}"]

    async def open_channel(self, messages: int, held: bool) -> None:
        self.messages, self.held = messages, held
        self.began = instant()
        start = 3600 if held else None
        await self.app.start(self.w4, messages, id="channel", start_at=start)

    async def channel_ended(self) -> Pace:
        if self.held:
            self.began = instant()
            await self.app.start("w4", self.messages, id="channel")
            await self.app.retry("channel")
        assert await self.app.handle("channel").result() == self.messages
        return pace(self.began, self.taken)

    async def kept(self) -> int:
        count, cursor = 0, None
        while True:
            page = self.app.store.arrivals("channel", cursor, 1000)
            count, cursor = count + len(page.rows), page.next_cursor
            if cursor is None:
                return count

    async def take_steps(self, steps: int, crash_after: int | None) -> Pace:
        self.crash_after = crash_after
        began = instant()
        handle = await self.app.start(self.w5, steps, id="steps")
        assert await handle.result() == steps
        return pace(began, self.taken)

    async def recovered(self, steps: int, crash_after: int) -> float:
        while len(self.taken) <= crash_after:  # noqa: ASYNC110 (the pass goes on in this loop)
            await asyncio.sleep(0.001)
        assert self.executed <= steps - crash_after - 1, "a step on file was executed again"
        return self.taken[crash_after]


class TarrySender(TarryRole, Sender):
    async def signal_each(self, runs: int, at_once: int) -> Span:
        began = instant()
        sends = (self.app.signal(f"run-{n}", poke, Mail(n), key=f"k{n}") for n in range(runs))
        for receipt in await at_a_time(at_once, sends):
            assert receipt.status == "delivered"
        return began, instant()

    async def signal_one(self, run: int) -> float:
        began = instant()
        assert (await self.app.signal(f"run-{run}", poke, Mail(run), key=f"k{run}")).status == "delivered"
        return began

    async def send_all(self, messages: int, at_once: int) -> Span:
        began = instant()
        for first in range(0, messages, at_once):
            group = range(first, min(messages, first + at_once))
            await asyncio.gather(*(self.app.send("channel", mails, Mail(n), key=f"k{n}") for n in group))
        return began, instant()

    async def send_same(self, sends: int, at_once: int) -> Span:
        began = instant()
        same = (self.app.send("channel", mails, Mail(0), key="k0") for _ in range(sends))
        assert all(
            receipt.status in ("duplicate", "delivered", "buffered") for receipt in await at_a_time(at_once, same)
        )
        return began, instant()


async def at_a_time(limit: int, calls: Any) -> list[Any]:
    """All calls, at most `limit` of them under way together."""
    left = iter(calls)
    results: deque[Any] = deque()

    async def work() -> None:
        for call in left:
            results.append(await call)

    await asyncio.gather(*(work() for _ in range(limit)))
    return list(results)


async def add_one(number: int) -> int:
    return number + 1


if __name__ == "__main__":
    serve(TarryWorker, TarrySender)

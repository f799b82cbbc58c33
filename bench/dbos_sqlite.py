"""DBOS on SQLite, driven as its documentation says, with its default settings but for the journal.

Two things are not public and taken from inside: how many runs wait (a run that waits has a waiter on record
in its process), and how many messages are on file. A signal is its `send` without a topic, a channel its
topic; workflows are coroutines, calls to start and send go through threads of its own or of the sender.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

if sqlite3.sqlite_version_info < (3, 42):  # it calls unixepoch('subsec')
    import pysqlite3
    import pysqlite3.dbapi2

    sys.modules["sqlite3"], sys.modules["sqlite3.dbapi2"] = pysqlite3, pysqlite3.dbapi2

import sqlalchemy
from dbos import DBOS, DBOSClient, SetWorkflowID
from dbos._dbos import _get_dbos_instance  # the only way to its waiters and tables

from bench.host import serve
from bench.pace import Pace, instant, pace
from bench.roles import Sender, Span, Worker

MOST_STARTS = 64
MOST_SENDERS = 8
LONG_S = 36_000
TOPIC = "channel"
JOURNAL = os.environ.get("BENCH_JOURNAL", "")
LOOK_S = 0.002

resumed: dict[int, float] = {}
taken: list[float] = []
executed: list[int] = []
crashing: list[int] = []
gate = asyncio.Event()


@DBOS.step()
async def add_one(number: int) -> int:
    executed.append(number)
    return number + 1


@DBOS.workflow()
async def one_step(number: int) -> int:
    return await add_one(number)


@DBOS.workflow()
async def one_wait(run: int) -> dict[str, int]:
    message = await DBOS.recv_async(timeout_seconds=LONG_S)
    resumed[run] = instant()
    return message


@DBOS.workflow()
async def channel(messages: int) -> int:
    await gate.wait()
    for number in range(messages):
        message = await DBOS.recv_async(TOPIC, timeout_seconds=LONG_S)
        taken.append(instant())
        assert message == {"k": number}
    return messages


@DBOS.workflow()
async def many_steps(steps: int) -> int:
    for number in range(steps):
        assert await add_one(number) == number + 1
        taken.append(instant())
        if number in crashing:
            os.kill(os.getpid(), signal.SIGKILL)
    return steps


def system_database() -> Any:
    return _get_dbos_instance()._sys_db


class DbosWorker(Worker):
    """One process with the library launched in it."""

    async def open(self) -> None:
        if JOURNAL:
            with sqlite3.connect(self.store) as connection:
                connection.execute(f"PRAGMA journal_mode = {JOURNAL}")
            connection.close()
        DBOS(
            config={
                "name": "bench",
                "system_database_url": f"sqlite:///{self.store}",
                "log_level": "ERROR",
                "application_version": "1",
                "executor_id": "1",
            }
        )
        DBOS.launch()

    async def about(self) -> dict[str, str]:
        with system_database().engine.begin() as connection:
            pragmas = {
                name: str(connection.execute(sqlalchemy.text(f"PRAGMA {name}")).scalar())
                for name in ("journal_mode", "synchronous")
            }
        return {"dbos": version("dbos"), "SQLite": sys.modules["sqlite3"].sqlite_version, **pragmas}

    async def start(self, workflow: Callable[..., Any], name: str, argument: int) -> Any:
        with SetWorkflowID(name):
            return await DBOS.start_workflow_async(workflow, argument)

    async def finish_runs(self, runs: int, at_once: int) -> Span:
        async def one(number: int) -> int:
            async with turns:
                handle = await self.start(one_step, f"w1-{number}", number)
                return await handle.get_result()

        turns, began = asyncio.Semaphore(min(at_once, MOST_STARTS)), instant()
        results = await asyncio.gather(*map(one, range(runs)))
        ended = instant()
        assert results == list(range(1, runs + 1))
        return began, ended

    async def bring_to_wait(self, runs: int, at_once: int) -> Span:
        async def one(number: int) -> Any:
            async with turns:
                return await self.start(one_wait, f"run-{number}", number)

        turns, began = asyncio.Semaphore(min(at_once, MOST_STARTS)), instant()
        self.waiting = await asyncio.gather(*map(one, range(runs)))
        await self.waiters(runs)
        return began, instant()

    async def waiters(self, count: int) -> None:
        while len(system_database().notifications_map.snapshot()) < count:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(LOOK_S)

    async def all_resumed(self, runs: int) -> float:
        results = await asyncio.gather(*(handle.get_result() for handle in self.waiting))
        ended = instant()
        assert results == [{"k": number} for number in range(runs)]
        return ended

    async def bring_one(self, run: int) -> None:
        self.one = await self.start(one_wait, f"run-{run}", run)
        await self.waiters(1)

    async def one_resumed(self, run: int) -> float:
        assert await self.one.get_result() == {"k": run}
        return resumed[run]

    async def open_channel(self, messages: int, held: bool) -> None:
        self.messages = messages
        if not held:
            gate.set()
        self.channel = await self.start(channel, "channel", messages)

    async def channel_ended(self) -> Pace:
        began = instant()
        gate.set()
        assert await self.channel.get_result() == self.messages
        return pace(began, taken)

    async def kept(self) -> int:
        count = sqlalchemy.text("SELECT count(*) FROM notifications WHERE destination_uuid = 'channel'")
        with system_database().engine.begin() as connection:
            return connection.execute(count).scalar()

    async def take_steps(self, steps: int, crash_after: int | None) -> Pace:
        crashing[:] = [] if crash_after is None else [crash_after]
        began = instant()
        handle = await self.start(many_steps, "steps", steps)
        assert await handle.get_result() == steps
        return pace(began, taken)

    async def recovered(self, steps: int, crash_after: int) -> float:
        handle = await DBOS.retrieve_workflow_async("steps")
        assert await handle.get_result() == steps
        assert executed == list(range(crash_after + 1, steps))
        return taken[crash_after]


class DbosSender(Sender):
    """A client, which is how a process without workflows sends."""

    async def open(self) -> None:
        url = f"sqlite:///{self.store}"
        self.client = DBOSClient(system_database_url=url, system_database_pool_size=MOST_SENDERS)

    async def each(self, send: Callable[[int], None], count: int, at_once: int) -> Span:
        with ThreadPoolExecutor(min(at_once, MOST_SENDERS)) as threads:
            began = instant()
            await asyncio.to_thread(lambda: list(threads.map(send, range(count))))
            return began, instant()

    async def signal_each(self, runs: int, at_once: int) -> Span:
        return await self.each(self.signal, runs, at_once)

    def signal(self, run: int) -> None:
        self.client.send(f"run-{run}", {"k": run}, None, f"k{run}")

    async def signal_one(self, run: int) -> float:
        began = instant()
        self.signal(run)
        return began

    async def send_all(self, messages: int, at_once: int) -> Span:
        return await self.each(self.send, messages, 1)

    async def send_same(self, sends: int, at_once: int) -> Span:
        return await self.each(lambda _: self.send(0), sends, at_once)

    def send(self, number: int) -> None:
        self.client.send("channel", {"k": number}, TOPIC, f"k{number}")


if __name__ == "__main__":
    serve(DbosWorker, DbosSender)

"""A run's journal, cut after each of its entries and replayed: it tells the beginning of the same story.

A worker may be lost after any commit, and the next one has the journal as far as it goes. Whatever that is,
the branches of the body take the same outcomes in, in the order in which the live run took them in, and the
whole journal leads to the same result (rule 3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Any, cast

from tarry.core.commands import Advance, Finish
from tarry.core.journal import Journal
from tarry.engine.host import Host
from tarry.engine.resume import Pass
from tarry.model import Arrival, ArrivalKind, Entry, RunRecord, Slot, Status
from tarry.store.memory_tables import Tables
from tarry.testing.sim.body import OBSERVER, REGISTRY
from tarry.testing.sim.loop import InTurn, SimLoop
from tarry.testing.sim.oracle import Oracle


class Still:
    """A worker on which nothing happens: a pass gets what is on record, and no answer to what it writes."""

    id = "still"

    def __init__(self) -> None:
        self.loop = SimLoop(InTurn())
        self.written: list[Advance] = []

    def submit(self, command: Advance, done: Callable[[Any], None], documents: Mapping[str, bytes]) -> None:
        self.written.append(command)

    def spawn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.create_task(coro)

    async def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        raise AssertionError("nothing runs here")

    async def sleep(self, delay_s: float) -> None:
        raise AssertionError("nothing runs here")

    def later(self, delay_s: float, fn: Callable[[], Any]) -> asyncio.TimerHandle:
        return self.loop.call_later(delay_s, fn)

    def now_ms(self) -> int:
        return 0

    def over(self, turn: Pass) -> None: ...

    def close(self) -> None:
        """What was spawned never began, and ends so."""
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.wait(tasks))
        self.loop.close()


def replayed(journal: Journal) -> tuple[list[str], Advance | None]:
    """The order in which a pass takes in what is on record, and what it wants to write then."""
    return copy_context().run(_replayed, journal)


def _replayed(journal: Journal) -> tuple[list[str], Advance | None]:
    still = Still()
    oracle = Oracle(still.loop)
    OBSERVER.set(oracle)
    workflow = REGISTRY.find(journal.run.workflow)
    assert workflow is not None
    turn = Pass(cast("Host", still), workflow, journal)
    turn.start()
    order = oracle.order(journal.run.id)
    oracle.muted = True
    turn.lose()
    still.close()
    return order, still.written[0] if still.written else None


def cut(tables: Tables, run: RunRecord, entries: Sequence[Entry]) -> Journal:
    """The journal as it was when it had these entries, and the messages that they tell of."""
    taken = {entry.arrival for entry in entries if entry.arrival is not None}
    arrivals = tables.of(tables.arrivals, run.id)
    signals = {a.no: a for a in arrivals if a.kind is ArrivalKind.SIGNAL}
    channels: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        last = max((no for no in taken if any(a.no == no and a.name == arrival.name for a in arrivals)), default=0)
        if arrival.kind is ArrivalKind.CHANNEL and arrival.no <= last:
            channels.setdefault(arrival.name, []).append(arrival)
    slots = {slot.name: slot for slot in tables.of(tables.slots, run.id) if slot.kind is ArrivalKind.CHANNEL}
    still_open = {name: replace(slot, closed=None) for name, slot in slots.items()}
    for name in channels:
        still_open.setdefault(name, Slot(run.id, ArrivalKind.CHANNEL, name))
    held = replace(run, status=Status.RUNNING, worker=Still.id, result=None, ended_ms=None)
    return Journal(held, tuple(entries), (), signals, still_open, channels)


def departures(tables: Tables, run: RunRecord, live: list[str]) -> Iterator[str]:
    """Where a replay of a prefix, or of the whole, tells another story than the live run."""
    entries = tables.of(tables.entries, run.id)
    for end in range(len(entries) + 1):
        order, _ = replayed(cut(tables, run, entries[:end]))
        if order != live[: len(order)]:
            yield f"prefix: {run.id}: after {end} entries a replay took in {order}, the live run {live}"
            return
    order, last = replayed(cut(tables, run, entries))
    if run.status is Status.SUCCEEDED and order != live:
        yield f"prefix: {run.id}: the whole journal led to {order}, the live run took in {live}"
    ended = last.end if last is not None else None
    if run.status is Status.SUCCEEDED and not (isinstance(ended, Finish) and ended.result == run.result):
        yield f"prefix: {run.id}: the whole journal led to {ended}, the live run to {run.result}"

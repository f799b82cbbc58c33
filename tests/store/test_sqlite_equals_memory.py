"""The SQLite store against the memory store: told the same, both answer, hold and show the same.

Batches are made up of everything that can be asked about a few runs, mostly in the wrong order: refusals count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tarry.core.commands import (
    Ack,
    Advance,
    Block,
    Cancel,
    Close,
    CloseChannel,
    Finish,
    Open,
    Opening,
    Park,
    Reap,
    Record,
    Release,
    Retry,
    Want,
)
from tarry.errors import LeaseLost
from tarry.model import (
    ArrivalKind,
    Blocked,
    Entry,
    EntryKind,
    NameId,
    Outcome,
    Status,
    Wait,
    WaitId,
    WaitKind,
)
from tarry.store.memory import MemoryStore
from tarry.store.protocol import RunFilter
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tarry.store.sweeps import ClaimDue, Register
from tests.store import town

RUNS = ["a", "ab", "b", "zz"]
WORKERS = ["w1", "w2"]
SIGNALS = ["paid", "pai"]
CHANNELS = ["events", "event"]
NAMES = [NameId(ArrivalKind.SIGNAL, name) for name in SIGNALS] + [
    NameId(ArrivalKind.CHANNEL, name) for name in CHANNELS
]
PAYLOADS = [b"1", b'{"a":2}', b'"' + b"x" * 40 + b'"']

runs = st.sampled_from(RUNS)
workers = st.sampled_from(WORKERS)
keys = st.sampled_from(["k1", "k2", "k3"])
payloads = st.sampled_from(PAYLOADS)
small = st.integers(0, 5)


@dataclass(frozen=True)
class Turn:
    """An `Advance` for one of the runs that a worker has by then, under its fence or an old one."""

    pick: int
    parts: tuple[Any, ...]
    end: Any
    wants: tuple[Want, ...]
    late: bool = False


@dataclass(frozen=True)
class Tick:
    ms: int


signal_ids = st.builds(WaitId, st.just(WaitKind.SIGNAL), st.just(""), st.sampled_from(SIGNALS), st.integers(0, 1))


openings = st.builds(
    lambda kind, number, group, member, cursor, timeout: Opening(
        Wait("?", kind[0], "", kind[1], number, group, member, late=member == 1, cursor=cursor), timeout
    ),
    st.sampled_from([(WaitKind.SIGNAL, n) for n in SIGNALS] + [(WaitKind.CHANNEL, n) for n in CHANNELS]),
    st.integers(0, 1),
    st.sampled_from([None, None, "first"]),
    st.integers(0, 1),
    small,
    st.sampled_from([None, 5, 50]),
)
entries = st.builds(
    lambda scope, name, value: Entry("?", 0, EntryKind.STEP, scope, name, 0, Outcome.OK, value),
    st.sampled_from(["", "events:k1/", "events:k2/"]),
    st.sampled_from(["x", "events"]),
    st.one_of(st.none(), payloads),
)
parts = st.one_of(
    st.builds(Record, entries, st.one_of(st.none(), signal_ids)),
    st.builds(Open, st.lists(openings, min_size=1, max_size=2).map(tuple)),
    st.builds(Open, st.lists(openings, min_size=1, max_size=2).map(tuple)),
    st.builds(Close, st.lists(signal_ids, max_size=2).map(tuple)),
    st.builds(
        Ack,
        st.sampled_from(CHANNELS),
        small,
        small,
        st.one_of(st.none(), payloads),
        st.sampled_from([None, "events:", "events:k1/"]),
    ),
)
ends = st.one_of(
    st.none(),
    st.just(Park()),
    st.just(Park()),
    st.builds(Finish, st.sampled_from([Status.SUCCEEDED, Status.FAILED]), payloads, st.none(), st.just(1)),
    st.builds(Block, st.sampled_from(list(Blocked)), st.just("why")),
    st.builds(Release, st.sampled_from([0, 10]), st.booleans(), st.sampled_from([None, 1, 2])),
)
wants = st.tuples(*(st.builds(Want, st.just(channel), small, st.integers(1, 3)) for channel in CHANNELS))
turns = st.builds(
    Turn,
    st.integers(0, 3),
    st.lists(parts, max_size=3).map(tuple),
    ends,
    wants,
    st.integers(0, 20).map(lambda n: n == 7),
)
claims = st.builds(lambda name: ClaimDue(name, 2, {"order": None}), workers)
seldom = st.one_of(
    st.builds(CloseChannel, runs, st.sampled_from(CHANNELS)),
    st.builds(Cancel, runs, st.just("ann"), st.integers(0, 3).map(lambda n: n == 3)),
    st.builds(Retry, runs),
    st.builds(Reap, runs, workers),
    st.builds(Tick, st.just(20)),
)
items = st.one_of(
    st.builds(town.signal, runs, keys, st.sampled_from(SIGNALS), payloads),
    st.builds(town.message, runs, keys, st.sampled_from(CHANNELS), payloads),
    claims,
    turns,
    turns.map(lambda turn: turn),
    turns.map(lambda turn: replace(turn, end=Park())),
    seldom.map(lambda item: item),
)


@contextmanager
def both() -> Iterator[tuple[MemoryStore, SqliteStore]]:
    clock = town.Clock()
    sqlite = SqliteStore(None, clock, Zlib(over=8))
    try:
        yield MemoryStore(clock), sqlite
    finally:
        sqlite.close()


def fenced(item: Any, memory: MemoryStore, numbers: dict[str, int]) -> Any:
    """A turn under the fence of a run that is held, its entries numbered on."""
    if not isinstance(item, Turn):
        return item
    held = [run for run in memory.runs(RunFilter(status=Status.RUNNING), None, town.ALL).rows if run.worker]
    if not held:
        return town.signal("a", "k1")
    run = held[item.pick % len(held)]
    own = tuple(addressed(part, run.id, numbers) for part in item.parts)
    return Advance(run.id, run.worker or "", run.epoch - item.late, own, item.end, item.wants)


def addressed(part: Any, run_id: str, numbers: dict[str, int]) -> Any:
    if isinstance(part, Record):
        numbers[run_id] = numbers.get(run_id, 0) + 1
        return replace(part, entry=replace(part.entry, run_id=run_id, no=numbers[run_id]))
    if isinstance(part, Open):
        return Open(tuple(replace(opening, wait=replace(opening.wait, run_id=run_id)) for opening in part.waits))
    return part


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(items, min_size=1, max_size=4), min_size=5, max_size=15))
def test_told_the_same_they_hold_the_same(batches: list[list[Any]]):
    """SPEC 4.4, 5.1, 11.3: one core decides for all stores, and what a store loads and saves is all that it adds."""
    numbers: dict[str, int] = {}
    with both() as (memory, sqlite):
        for store in (memory, sqlite):
            town.commit(store, *(Register(town.worker(store, name)) for name in WORKERS))
            town.commit(store, *(town.start(run_id, tags=(("team", run_id),)) for run_id in RUNS))
            town.commit(store, ClaimDue("w1", 3, {"order": None}))
        for batch in batches:
            step(memory, sqlite, batch, numbers)
            assert town.everything(memory) == town.everything(sqlite)
        assert town.views(memory, NAMES, RUNS) == town.views(sqlite, NAMES, RUNS)


def step(memory: MemoryStore, sqlite: SqliteStore, batch: list[Any], numbers: dict[str, int]) -> None:
    for tick in (item for item in batch if isinstance(item, Tick)):
        memory.clock.advance(tick.ms)  # type: ignore[attr-defined]
    told = [fenced(item, memory, numbers) for item in batch if not isinstance(item, Tick)]
    assert answers(memory, told) == answers(sqlite, told)


def answers(store: Any, items: list[Any]) -> Any:
    """The results, in no order where none is promised; an error of the whole batch is one too."""
    try:
        results = town.commit(store, *items)
    except LeaseLost as error:
        return type(error)
    return [sorted(result, key=repr) if isinstance(result, list) else result for result in results]

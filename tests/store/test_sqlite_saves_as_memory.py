"""Rows handed to both stores directly, in any order: what one `save` leaves behind is what was said last.

The core never writes most of these sequences; a store must not depend on that.
"""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarry.core.view import DropArrival, DropEntries, DropWait, Sweep
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Entry,
    EntryKind,
    NameId,
    Outcome,
    Slot,
    Wait,
    WaitId,
    WaitKind,
)
from tarry.store.memory import MemoryStore
from tarry.store.protocol import Store
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tests.store import town

RUNS = ["a", "b"]
NAMES = [NameId(kind, name) for kind in ArrivalKind for name in ("x", "xy")]
SCOPES = ["", "x:", "x:k1/", "x:k2/s/", "xy:k1/"]

runs = st.sampled_from(RUNS)
names = st.sampled_from(NAMES)
scopes = st.sampled_from(SCOPES)
numbers = st.integers(1, 6)


def entry(run_id: str, no: int, scope: str) -> Entry:
    return Entry(run_id, no, EntryKind.STEP, scope, "s", 0, Outcome.OK, b"1")


def arrival(run_id: str, no: int, name: NameId, status: ArrivalStatus = ArrivalStatus.BUFFERED) -> Arrival:
    """One number has one name for ever, as the count of a run's arrivals makes it."""
    kind, text = NAMES[no % len(NAMES)] if name is None else name
    return Arrival(run_id, no, kind, text, f"k{no}", b'"payload"', None, status, detail=b"[]")


def sweep(run_id: str, unread: bool) -> Sweep:
    return Sweep(run_id, "ended", town.NOW_MS, town.NOW_MS + 10, unread)


wait_ids = st.builds(WaitId, st.sampled_from(WaitKind), st.sampled_from(["", "g:0/"]), st.just("x"), st.integers(0, 1))
numbered = numbers.map(lambda no: (no, NAMES[no % len(NAMES)]))
rows = st.one_of(
    st.builds(lambda run, scope: ("entry", run, scope), runs, scopes),
    st.builds(DropEntries, runs, st.sampled_from(SCOPES[1:]), st.none()),
    st.builds(DropEntries, runs, st.none(), numbers),
    st.builds(
        lambda run, wait, outcome: Wait(run, *wait, outcome=outcome), runs, wait_ids, st.sampled_from([None, *Outcome])
    ),
    st.builds(DropWait, runs, wait_ids),
    st.builds(lambda run, at, status: arrival(run, *at, status), runs, numbered, st.sampled_from(ArrivalStatus)),
    st.builds(lambda run, at: arrival(run, *at), runs, numbered),
    st.builds(lambda run, at: DropArrival(run, *at[1], at[0], f"k{at[0]}"), runs, numbered),
    st.builds(lambda run, name, acked: Slot(run, *name, acked, b'"state"'), runs, names, st.integers(0, 6)),
    st.builds(sweep, runs, st.booleans()),
)


@settings(max_examples=200)
@given(st.lists(st.lists(rows, min_size=1, max_size=12), min_size=1, max_size=4))
@example([[arrival("a", 1, NAMES[1]), sweep("a", True), arrival("a", 5, NAMES[1])], [sweep("b", True)]])
@example([[arrival("a", 2, NAMES[2]), arrival("a", 6, NAMES[2]), Slot("a", *NAMES[2], 2), sweep("a", True)]])
def test_saved_the_same_they_hold_the_same(batches: list[list[Any]]):
    """S22: the last version of each row, whatever else the batch did to it before."""
    clock = town.Clock()
    memory, sqlite = MemoryStore(clock), SqliteStore(None, clock, Zlib(over=4))
    last = dict.fromkeys(RUNS, 0)
    try:
        for store in (memory, sqlite):
            town.commit(store, *map(town.start, RUNS))
        for batch in batches:
            writes = [numbered_on(row, last) for row in batch]
            for store in (memory, sqlite):
                save(store, writes)
            assert town.everything(sqlite) == town.everything(memory)
            assert town.views(sqlite, NAMES, RUNS) == town.views(memory, NAMES, RUNS)
    finally:
        sqlite.close()


def numbered_on(row: Any, last: dict[str, int]) -> Any:
    """An entry gets the next number of its run: none is ever used twice."""
    if not isinstance(row, tuple):
        return row
    _, run_id, scope = row
    last[run_id] += 1
    return entry(run_id, last[run_id], scope)


def save(store: Store, writes: list[Any]) -> None:
    tx = store.begin()
    assert tx is not None
    with tx:
        tx.save(writes)
        tx.commit()

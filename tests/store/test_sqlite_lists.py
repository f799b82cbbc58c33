"""Lists and lookups of the SQLite store, filter by filter and page by page, against the memory store's."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tarry.core.commands import Cancel, CloseChannel, Finish, Park, Record
from tarry.errors import BadCursor, BadLimit
from tarry.model import ArrivalKind, Entry, EntryKind, Outcome, Status, WaitKind
from tarry.store.memory import MemoryStore
from tarry.store.protocol import LetterFilter, RunFilter, WaitFilter
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tests.store import town

RUNS = [f"order-{n:02}" for n in range(9)] + ["refund-1", "refund-2", "zz"]


@pytest.fixture(scope="module")
def stores() -> Iterator[tuple[MemoryStore, SqliteStore]]:
    """The same history in both: runs in every state, waits, letters, acts of operators."""
    clock = town.Clock()
    sqlite = SqliteStore(None, clock, Zlib(over=8))
    memory = MemoryStore(clock)
    for number, run_id in enumerate(RUNS):
        clock.advance(1)
        tags = (("team", "x"), ("n", str(number % 2))) if number % 3 else ()
        both(memory, sqlite, town.start(run_id, "order" if number < 9 else "refund", tags=tags))
    taken = town.claim(sqlite, limit=6)
    assert town.claim(memory, limit=6) == taken
    for run in taken:
        clock.advance(1)
        both(memory, sqlite, *history(run))
    both(memory, sqlite, Cancel("refund-1", "ann"), town.signal("refund-1", "late"), CloseChannel("zz", "events", "bo"))
    yield memory, sqlite
    sqlite.close()


def history(run: Any) -> list[Any]:
    number = int(run.id[-2:])
    steps = [
        Record(Entry(run.id, no, EntryKind.STEP, "", f"s{no}", 0, Outcome.OK, b'"a longer value"'))
        for no in (1, 2, 3, 4)
    ]
    sent = [town.message(run.id, f"m{n}", f"c{n % 2}") for n in range(4)] + [town.signal(run.id, "k", "early")]
    if number == 1:
        return [*sent, town.advance(run, *steps, end=Finish(Status.SUCCEEDED, b'"done"'))]
    if number == 2:
        return [*sent, town.advance(run, *steps, end=Finish(Status.FAILED, None, b'{"type":"x"}', 1))]
    wait = town.wait_on(run.id, "paid" if number % 2 else "approved", None if number == 3 else 1000 * number)
    return [*sent, town.advance(run, *steps, wait, end=Park() if number < 5 else None)]


def both(memory: MemoryStore, sqlite: SqliteStore, *items: Any) -> None:
    assert town.commit(memory, *items) == town.commit(sqlite, *items)


def walk(page_of: Any, where: Any, limit: int) -> list[Any]:
    """All rows, page after page; no page but the last one is short."""
    rows: list[Any] = []
    cursor = None
    while True:
        page = page_of(where, cursor, limit)
        rows += page.rows
        assert len(page.rows) == limit or page.next_cursor is None
        cursor = page.next_cursor
        if cursor is None:
            return rows


RUN_FILTERS = [
    RunFilter(workflow, status, tag, prefix)
    for workflow, status, tag, prefix in product(
        [None, "order", "refund", "none"],
        [None, *Status],
        [None, ("team", "x"), ("n", "1"), ("n", "9")],
        [None, "order-0", "refund-", "none"],
    )
]
WAIT_FILTERS = [
    WaitFilter(run_id, workflow, name, kind, tag, overdue, opened)
    for run_id, workflow, name, kind, tag, overdue, opened in product(
        [None, "order-03", "none"],
        [None, "order", "refund"],
        [None, "paid", "pai"],
        [None, WaitKind.SIGNAL, WaitKind.TIMER],
        [None, ("n", "1")],
        [None, town.NOW_MS + 4500],
        [None, town.NOW_MS + 16],
    )
]
LETTER_FILTERS = [
    LetterFilter(*picked) for picked in product([None, "order-01", "none"], [None, "c0", "early"], [None, "ended"])
]


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("name", ["runs", "waits", "letters", "audit", "arrivals", "journal"])
def test_every_filter_and_page_size(stores: tuple[MemoryStore, SqliteStore], name: str, limit: int):
    """SPEC 12.1"""
    wanted: dict[str, list[Any]] = {
        "runs": RUN_FILTERS,
        "waits": WAIT_FILTERS,
        "letters": LETTER_FILTERS,
        "audit": [None, *RUNS],
        "arrivals": RUNS,
        "journal": RUNS,
    }
    memory, sqlite = (getattr(store, name) for store in stores)
    found = 0
    for where in wanted[name]:
        rows, ours = walk(memory, where, limit), walk(sqlite, where, limit)
        if name == "letters":  # those of one instant have no order
            ours.sort(key=lambda letter: (letter.at_ms, letter.id))
        assert ours == rows, where
        found += len(rows)
    assert found > 0


def test_what_is_started_between_two_pages_comes_last(stores: tuple[MemoryStore, SqliteStore]):
    """A cursor is a place in the list, not a number of rows."""
    clock = town.Clock()
    store = SqliteStore(None, clock, Zlib())
    town.commit(store, town.start("b"), town.start("c"), town.start("d"))
    page = store.runs(RunFilter(), None, 2)
    town.commit(store, town.start("a"))
    assert [run.id for run in store.runs(RunFilter(), page.next_cursor, 10).rows] == ["d", "a"]
    store.close()


def test_lookups(stores: tuple[MemoryStore, SqliteStore]):
    memory, sqlite = stores
    for run_id in [*RUNS, "none"]:
        assert sqlite.run(run_id) == memory.run(run_id)
        assert sqlite.gone(run_id) is memory.gone(run_id) is False
        for name in ("early", "paid", "c0"):
            assert sqlite.winner(run_id, name) == memory.winner(run_id, name)
            assert sqlite.acked(run_id, name) == memory.acked(run_id, name)
            for kind, key in product(ArrivalKind, ("k", "m0", "none")):
                assert sqlite.arrival(run_id, kind, name, key) == memory.arrival(run_id, kind, name, key)
    assert sqlite.statuses([*RUNS, "none"]) == memory.statuses([*RUNS, "none"])
    for workflows in (["order"], ["refund"], ["order", "refund"], ["none"], []):
        assert sqlite.due(workflows) == memory.due(workflows)
        assert sqlite.due_runs(workflows, 3) == memory.due_runs(workflows, 3)
        assert sqlite.next_due_ms(workflows) == memory.next_due_ms(workflows)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_out_of_range_is_refused(stores: tuple[MemoryStore, SqliteStore], limit: int):
    """SPEC 12.1: 1 to 1000."""
    _, store = stores
    with pytest.raises(BadLimit):
        store.runs(RunFilter(), None, limit)
    with pytest.raises(BadLimit):
        store.arrivals("zz", None, limit)


@pytest.mark.parametrize("cursor", ["", "x", "WzFd!", "WyJhIl0", "bnVsbA", "W10"])
def test_a_made_up_cursor_is_refused(stores: tuple[MemoryStore, SqliteStore], cursor: str):
    _, store = stores
    with pytest.raises(BadCursor):
        store.runs(RunFilter(), cursor, 10)
    with pytest.raises(BadCursor):
        store.waits(WaitFilter(), cursor, 10)

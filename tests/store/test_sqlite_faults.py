"""What goes wrong under a transaction: all of it is undone, the caller is told what and what to do, and the store
goes on when the cause is gone."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from tarry.core.commands import Cancel, Finish, Park, Record
from tarry.core.view import NOTHING, Needs
from tarry.errors import (
    Closed,
    LeaseLost,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    Undecodable,
)
from tarry.model import ArrivalKind, Entry, EntryKind, NameId, Outcome, Status
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tarry.store.sweeps import ClaimDue
from tests.store import town

LONG = b'"' + b"abc" * 1000 + b'"'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "t.db", town.Clock(), Zlib())
    yield opened
    opened.close()


def entry(run_id: str, no: int, value: bytes = b"1") -> Entry:
    return Entry(run_id, no, EntryKind.STEP, "", f"s{no}", 0, Outcome.OK, value)


class Interrupts:
    """An observer that stops everything after the n-th statement, as a crash would."""

    def __init__(self, after: int) -> None:
        self.left = after

    def statement(self, name: str, runs: int, rows: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt(name)


class Fails:
    """A cursor whose n-th statement fails with an error of SQLite's."""

    def __init__(self, cursor: Any, after: int, error: type[apsw.Error]) -> None:
        self.cursor, self.left, self.error = cursor, after, error

    def _next(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error("planted")

    def execute(self, *args: Any) -> Any:
        self._next()
        return self.cursor.execute(*args)

    def executemany(self, *args: Any) -> Any:
        self._next()
        return self.cursor.executemany(*args)


def a_day(store: SqliteStore) -> None:
    """Two runs on their way, so that what follows touches every table."""
    town.commit(store, town.start("a", tags=(("team", "x"),)), town.start("b"), town.start("c"))
    for run in town.claim(store, limit=2):
        town.commit(store, town.advance(run, town.wait_on(run.id, timeout_ms=50), end=Park()))
    town.commit(store, town.message("a", "m1"), town.signal("b", "k0", "other"))


def transitions(store: SqliteStore) -> dict[str, tuple[Any, ...]]:
    """One batch for each kind of transition, as the store stands."""
    held = store.run("c")
    assert held is not None
    return {
        "start": (town.start("d", tags=(("team", "y"),)),),
        "deliver": (town.signal("a", "k1"), town.message("b", "m1"), town.signal("a", "k2")),
        "claim": (ClaimDue("w1", 5, {"order": None}),),
        "cancel": (Cancel("b", "ann", force=True),),
        "step": (town.advance(held, Record(entry("c", 1, LONG)), town.wait_on("c")),),
        "finish": (town.advance(held, Record(entry("c", 1)), end=Finish(Status.SUCCEEDED, b"1")),),
    }


@pytest.mark.parametrize("name", ["start", "deliver", "claim", "cancel", "step", "finish"])
def test_interrupted_after_any_statement_nothing_has_happened(store: SqliteStore, name: str):
    """S22: one transaction per transition; no half of one is ever on file, and it can be done again."""
    a_day(store)
    town.claim(store)
    batch = transitions(store)[name]
    if name == "claim":
        store.clock.advance(60)  # past the deadlines of both waits
    before = town.everything(store)
    for after in range(1, 50):
        store.observer = Interrupts(after)
        with pytest.raises(KeyboardInterrupt) as crash:
            town.commit(store, *batch)
        store.observer = None
        if crash.value.args == ("commit",):
            break
        assert town.everything(store) == before, crash.value
    assert after > 4
    assert town.everything(store) != before


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (apsw.FullError, StoreFull),
        (apsw.IOError, StoreError),
        (apsw.BusyError, StoreBusy),
        (apsw.ReadOnlyError, StoreReadOnly),
        (apsw.CorruptError, StoreCorrupt),
        (apsw.ConstraintError, StoreError),
    ],
)
def test_an_error_of_sqlite_rolls_back_and_is_told(store: SqliteStore, error: Any, told: Any):
    """Whichever statement it hits, the commit among them."""
    a_day(store)
    before = town.everything(store)
    link = store._links.writer()
    whole = link._cursor
    for after in range(1, 50):
        link._cursor = Fails(whole, after, error)
        try:
            town.commit(store, town.signal("a", "k1"), town.message("b", "m1"))
        except told:
            link._cursor = whole
            assert town.everything(store) == before
        else:
            break
    link._cursor = whole
    assert after > 8
    assert town.everything(store) != before


def test_a_transaction_that_failed_is_dead(store: SqliteStore):
    """Nothing is written after a write that is missing."""
    town.commit(store, town.start("a"))
    tx = store.begin()
    assert tx is not None
    with tx:
        view = tx.load({"a": NOTHING})["a"]
        assert view.run is not None
        with pytest.raises(LeaseLost):
            tx.save([entry("a", 1), replace(view.run, reason="x"), entry("a", 1)])
        for further in (lambda: tx.save([replace(view.run, reason="y")]), lambda: tx.load({"a": NOTHING}), tx.commit):
            with pytest.raises(Closed):
                further()
    assert store.run("a") == view.run
    assert store.journal("a", None, 10).rows == ()


def test_a_transaction_is_over_with_its_commit(store: SqliteStore):
    tx = store.begin()
    assert tx is not None
    with tx:
        tx.commit()
        with pytest.raises(Closed):
            tx.save([entry("a", 1)])
    with pytest.raises(Closed):
        tx.load({"a": NOTHING})


def test_the_number_of_an_entry_is_the_second_fence(store: SqliteStore):
    """SPEC 11.3: what another worker has written since is not overwritten, and the run is named."""
    town.commit(store, town.start("a"), town.start("b"))
    for run in town.claim(store):
        town.commit(store, town.advance(run, Record(entry(run.id, 1))))
    tx = store.begin()
    assert tx is not None
    with tx:
        tx.load({"a": NOTHING, "b": NOTHING})
        with pytest.raises(LeaseLost) as lost:
            tx.save([entry("a", 2), entry("b", 1, b"2"), entry("a", 3)])
    assert lost.value.fields == {"run_id": "b", "epoch": 1}
    assert [row.value for row in store.journal("b", None, 10).rows] == [b"1"]
    assert len(store.journal("a", None, 10).rows) == 1


def test_a_full_disk_loses_nothing_and_is_survived(store: SqliteStore):
    town.commit(store, town.start("a"))
    before = town.everything(store)
    link = store._links.writer()
    link.pragma("max_page_count", link.pragma("page_count"))
    with pytest.raises(StoreFull, match="free space"):
        town.commit(store, *(town.signal("a", f"k{i}", f"n{i}", b'"' + b"%x" % i * 2000 + b'"') for i in range(100)))
    assert town.everything(store) == before
    link.pragma("max_page_count", 1 << 30)
    assert town.commit(store, town.signal("a", "k1"))[0].accepted


QUOTA = """
import resource, sys
from tarry.errors import StoreFull
from tarry.clock import SystemClock
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tests.store import town

store = SqliteStore(sys.argv[1], SystemClock(), Zlib())
town.commit(store, town.start("a"))
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
taken = []
try:
    for n in range(10_000):
        town.commit(store, town.signal("a", f"k{n}", f"n{n}"))
        taken.append(n)
except StoreFull as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
town.commit(store, town.signal("a", "late", "late"))
store.close()
again = SqliteStore(sys.argv[1], SystemClock(), Zlib())
names = {row.name for row in again.arrivals("a", None, 1000).rows}
print(names == {f"n{n}" for n in taken} | {"late"}, len(taken) > 10)
"""


def test_a_quota_is_a_full_disk_too(tmp_path: Path):
    """The log cannot grow: the same error, nothing lost that was acknowledged, and it goes on afterwards."""
    ask = [sys.executable, "-c", QUOTA, str(tmp_path / "t.db")]
    told = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert told.stdout.splitlines()[1:] == ["True True"], told
    assert "The disk is full" in told.stdout


# --- bytes that are not what was written ---


def edit(store: SqliteStore, statement: str, *values: Any) -> None:
    """A stranger's hand in the file."""
    raw = apsw.Connection(store.facts()["path"])
    raw.execute(statement, values)
    raw.close()


def test_a_payload_that_does_not_open_concerns_its_run_alone(store: SqliteStore):
    """SPEC 1: the run becomes undecodable, its neighbours in the batch go on."""
    town.commit(store, town.start("a"), town.start("b"))
    town.commit(store, town.signal("a", "k1", payload=LONG), town.signal("b", "k1", payload=LONG))
    edit(store, "update arrivals set payload = substr(payload, 1, 20) where run_id = 'a'")
    names = Needs(names=frozenset({NameId(ArrivalKind.SIGNAL, "paid")}))
    tx = store.begin()
    assert tx is not None
    with tx:
        with pytest.raises(Undecodable, match="arrival:1:a"):
            tx.load({"a": names, "b": names})
        view = tx.load({"b": names})["b"]
        assert [arrival.payload for arrival in view.live[NameId(ArrivalKind.SIGNAL, "paid")]] == [LONG]
    with pytest.raises(Undecodable, match="arrival:1:a"):
        store.arrivals("a", None, 10)


def test_a_row_that_means_nothing_is_damage(store: SqliteStore):
    """Better no answer than a wrong one."""
    town.commit(store, town.start("a"), town.start("b"))
    edit(store, "update runs set status = 'reAdy' where id = 'a'")
    with pytest.raises(StoreCorrupt, match="reAdy"):
        store.run("a")
    assert store.run("b") is not None


def test_damaged_pages_are_told_as_damage(tmp_path: Path):
    """F13: whatever is read of them, it is an error and never a guess."""
    store = SqliteStore(tmp_path / "t.db", town.Clock(), Zlib())
    for n in range(40):
        town.commit(store, *(town.start(f"run-{n}-{i}") for i in range(25)))
    page = store.facts()["page_size"]
    store.close()
    damaged = bytearray((tmp_path / "t.db").read_bytes())
    for place in range(page, len(damaged), page):
        damaged[place : place + 100] = b"\xff" * 100
    (tmp_path / "t.db").write_bytes(damaged)
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        read_all(tmp_path / "t.db")


def read_all(path: Path) -> None:
    with closing(SqliteStore(path, town.Clock(), Zlib())) as store:
        town.everything(store)

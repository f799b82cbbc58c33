"""Leases and what is found through them; and the two queues that belong to no run."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tarry.core.view import NOTHING
from tarry.model import ArrivalKind, Letter, Outgoing
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tarry.store.sqlite_transaction import SqliteTransaction
from tarry.store.sweeps import Register
from tests.store import town

LONG = b'"' + b"abc" * 1000 + b'"'


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore(None, town.Clock(), Zlib())
    yield opened
    opened.close()


def begun(store: SqliteStore) -> SqliteTransaction:
    tx = store.begin()
    assert tx is not None
    return tx


def test_the_runs_of_a_worker_without_a_live_lease_are_found(store: SqliteStore):
    """SPEC 11.4 and S48: lapsed, of another boot, or without a row at all; never those of a live one."""
    town.commit(store, *(town.start(run_id) for run_id in "abcd"))
    for name in ("w1", "w2", "w3", "w4"):
        town.claim(store, name, limit=1)
    other_boot = replace(town.worker(store, "w2"), boot="boot-0", lease_until_ms=1 << 50)
    town.commit(store, Register(other_boot), Register(replace(town.worker(store, "w1"), lease_until_ms=1)))
    with begun(store) as tx:
        tx.leave("w3")
        assert sorted(tx.orphans(10)) == [("a", "w1"), ("b", "w2"), ("c", "w3")]
        assert len(tx.orphans(2)) == 2
        assert [tx.live(name) for name in ("w1", "w2", "w3", "w4")] == [False, False, False, True]
        assert tx.held("w4") == [("d", 1)]
        assert tx.held("w1") == [("a", 1)]
        assert tx.lapsed() == []
        tx.commit()
    assert {worker.id: live for worker, live in store.workers()} == {"w1": False, "w2": False, "w4": True}


def test_a_worker_that_was_reaped_cannot_go_on_under_its_id(store: SqliteStore):
    """S48: a beat renews a row and never makes one."""
    me = town.worker(store)
    with begun(store) as tx:
        assert not tx.beat(me)
        tx.register(me)
        assert tx.beat(replace(me, lease_until_ms=me.lease_until_ms + 5, address="/run/x"))
        tx.commit()
    assert store.workers() == ((replace(me, lease_until_ms=me.lease_until_ms + 5, address="/run/x"), True),)
    assert store.addresses() == {"w1": "/run/x"}
    store.clock.advance(town.LEASE_MS + 5)
    assert store.addresses() == {}
    with begun(store) as tx:
        assert tx.lapsed() == ["w1"]
        tx.leave("w1")
        assert not tx.beat(me)


def test_outgoing_rows_leave_in_the_order_of_their_making(store: SqliteStore):
    rows = [Outgoing(run, no, "target", "notify", LONG, town.NOW_MS) for run, no in (("b", 1), ("a", 2), ("a", 1))]
    with begun(store) as tx:
        tx.save(rows)
        assert tx.outgoing(10) == rows
        assert tx.outgoing(2) == rows[:2]
        tx.drop_outgoing(rows[:1])
        assert tx.outgoing(10) == rows[1:]


def test_letters_go_when_their_time_is_over(store: SqliteStore):
    """SPEC 4.16"""
    made = [letter(f"l{n}", until_ms=town.NOW_MS + n) for n in range(4)]
    with begun(store) as tx:
        tx.save([*made, replace(made[3], reason="again")])
        tx.commit()
    store.clock.advance(2)
    with begun(store) as tx:
        assert [tx.expire_letters(2), tx.expire_letters(2), tx.expire_letters(2)] == [2, 1, 0]
        tx.commit()
    from_file = town.everything(store)["letters"]
    assert from_file == [replace(made[3], reason="again")]


def letter(ident: str, until_ms: int) -> Letter:
    signal = ArrivalKind.SIGNAL
    return Letter(ident, "a", signal, "paid", None, LONG, "ann", "late", b"[]", town.NOW_MS, until_ms)


def test_documents_stay_by_digest_and_a_rollback_forgets_them(store: SqliteStore):
    with begun(store) as tx:
        tx.intern({"d1": b"1"})
        assert tx.load({"a": NOTHING})["a"].schema("d1") == b"1"
    assert store.document("d1") is None
    with begun(store) as tx:
        tx.intern({"d1": b"2"})
        tx.commit()
    with begun(store) as tx:
        tx.intern({"d1": b"3"})
        assert tx.load({"a": NOTHING})["a"].schema("d1") == b"2"
        tx.commit()
    assert store.document("d1") == b"2"


def test_a_commit_of_anybody_else_changes_the_number(store: SqliteStore):
    before = store.change()
    assert store.change() == before
    town.commit(store, town.start("a"))
    assert store.change() != before

"""Leases, what is due, and what a claim hands out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from tarry.core.commands import Ack, Claim, CloseChannel, Finish, Park, Reap, Refuse
from tarry.core.journal import PAGE
from tarry.errors import LeaseLost
from tarry.model import (
    ArrivalKind,
    ArrivalStatus,
    EntryKind,
    FieldError,
    KeyId,
    Outcome,
    Status,
    WaitKind,
)
from tarry.store.protocol import Transaction
from tarry.store.sweeps import Beat, ClaimDue, Leave, Register
from tarry.testing.conformance_driver import LEASE_MS, Driver, message, opens, record, signal, start, wait

T = TypeVar("T")
OVER = timedelta(milliseconds=LEASE_MS)


def inside(driver: Driver, look: Callable[[Transaction], T]) -> T:
    tx = driver.store.begin()
    assert tx is not None
    with tx:
        return look(tx)


class WorkerConformance:
    # --- leases ---

    def test_a_lease_is_live_until_its_instant(self, driver: Driver) -> None:
        driver.register()
        driver.clock.advance(OVER - timedelta(milliseconds=1))
        assert inside(driver, lambda tx: tx.live("w1"))
        assert driver.store.addresses() == {"w1": "/run/w1"}
        driver.clock.advance(timedelta(milliseconds=1))
        assert not inside(driver, lambda tx: tx.live("w1"))
        assert driver.store.addresses() == {}
        assert [(row.id, live) for row, live in driver.store.workers()] == [("w1", False)]

    def test_whoever_sets_the_wall_clock_moves_no_lease(self, driver: Driver) -> None:
        driver.begin()
        for by in (timedelta(days=400), timedelta(days=-800)):
            driver.clock.jump(by)
            assert inside(driver, lambda tx: tx.live("w1"))
            assert inside(driver, lambda tx: tx.orphans(10)) == []

    def test_a_reboot_ends_all_leases(self, driver: Driver) -> None:
        driver.begin()
        driver.clock.reboot("boot-2")
        assert not inside(driver, lambda tx: tx.live("w1"))
        assert inside(driver, lambda tx: tx.orphans(10)) == [("r", "w1")]

    def test_a_beat_renews_a_row_and_never_makes_one(self, driver: Driver) -> None:
        first = driver.register()
        driver.clock.advance("5s")
        assert driver.do(Beat(driver.worker())) == []
        assert driver.store.workers()[0][0].lease_until_ms == first.lease_until_ms + 5000
        driver.do(Leave("w1"))
        with pytest.raises(LeaseLost):
            driver.do(Beat(driver.worker()))
        assert driver.store.workers() == ()

    def test_a_beat_reaps_what_dead_workers_left_and_forgets_them(self, driver: Driver) -> None:
        for number in range(3):
            driver.do(start(f"r{number}"))
        driver.claim()
        driver.clock.advance(OVER)
        driver.register("w2")
        driver.do(Beat(driver.worker("w2"), reap=2))
        statuses = sorted(driver.store.statuses(["r0", "r1", "r2"]).values())
        assert statuses == ["ready", "ready", "running"]
        assert len(driver.store.workers()) == 2
        driver.do(Beat(driver.worker("w2"), reap=2))
        assert [row.id for row, _ in driver.store.workers()] == ["w2"]
        assert inside(driver, lambda tx: tx.held("w1")) == []

    def test_a_worker_hears_what_is_leased_to_it(self, driver: Driver) -> None:
        driver.batch(start("a"), start("b"))
        driver.claim()
        assert sorted(driver.do(Beat(driver.worker()))) == [("a", 1), ("b", 1)]
        driver.turn("a", opens(wait(run_id="a")), end=Park())
        assert driver.do(Beat(driver.worker())) == [("b", 1)]

    def test_runs_of_a_worker_without_a_row_are_orphans(self, driver: Driver) -> None:
        driver.begin()
        driver.do(Leave("w1"))
        assert inside(driver, lambda tx: tx.orphans(10)) == [("r", "w1")]
        assert inside(driver, lambda tx: tx.lapsed()) == []

    def test_a_lapsed_worker_is_one_that_holds_nothing(self, driver: Driver) -> None:
        driver.begin()
        driver.register("idle")
        driver.clock.advance(OVER)
        assert inside(driver, lambda tx: tx.lapsed()) == ["idle"]
        driver.do(Reap("r", "w1"))
        assert sorted(inside(driver, lambda tx: tx.lapsed())) == ["idle", "w1"]

    # --- what is due ---

    def test_due_runs_by_their_instant_and_of_known_workflows(self, driver: Driver) -> None:
        now = driver.clock.now_ms()
        driver.batch(start("late", due_ms=now - 1), start("later", due_ms=now + 5), start("early", due_ms=now - 9))
        assert inside(driver, lambda tx: tx.due(["job", "other"], 9)) == [("early", "job"), ("late", "job")]
        assert inside(driver, lambda tx: tx.due(["job"], 1)) == [("early", "job")]
        assert inside(driver, lambda tx: tx.due(["other"], 9)) == []
        assert driver.store.due_runs(["job"], 9) == ["early", "late"]
        assert (driver.store.due(["job"]), driver.store.due(["other"]), driver.store.due([])) == (True, False, False)
        assert driver.store.next_due_ms(["other", "job"]) == now - 9
        assert driver.store.next_due_ms(["other"]) is None
        driver.claim()
        assert (driver.store.due(["job"]), driver.store.next_due_ms(["job"])) == (False, now + 5)
        driver.clock.advance(0.005)
        assert driver.store.due_runs(["job"], 9) == ["later"]

    def test_a_pause_is_due_at_its_deadline(self, driver: Driver) -> None:
        driver.begin()
        driver.turn("r", opens(wait("t", WaitKind.TIMER), timeout_ms=700), end=Park())
        assert driver.store.next_due_ms(["job"]) == driver.clock.now_ms() + 700
        driver.clock.advance(0.7)
        (journal,) = driver.claim()
        assert [fired.outcome for fired in journal.waits] == [Outcome.FIRED]

    def test_a_claim_takes_no_more_than_it_asks_for(self, driver: Driver) -> None:
        driver.batch(*(start(f"r{number}") for number in range(5)))
        assert [len(driver.claim(limit=2)) for _ in range(4)] == [2, 2, 1, 0]
        assert all(run.status is Status.RUNNING for run in map(driver.run, ("r0", "r4")))

    def test_only_a_live_worker_claims(self, driver: Driver) -> None:
        driver.do(start())
        with pytest.raises(LeaseLost):
            driver.do(ClaimDue("w1", 1, {"job": None}))
        assert driver.run().status is Status.READY

    def test_a_claim_of_certain_runs_takes_those(self, driver: Driver) -> None:
        driver.batch(start("a"), start("b"))
        driver.register()
        (journal,) = driver.do(ClaimDue("w1", 9, {"job": None}, only=[("b", "job")]))
        assert journal.run.id == "b"
        assert driver.do(ClaimDue("w1", 9, {"job": None}, only=[("b", "job")])) == []

    # --- what a pass answers from ---

    def test_a_journal_is_all_that_is_on_file(self, driver: Driver) -> None:
        driver.batch(start(), start("bystander"))
        driver.claim()
        driver.turn("r", record(1, "a"), record(2, "b", b"null", scope="s/"), opens(wait("x")), opens(wait("y")))
        driver.batch(signal("x"), signal("z"), message(), signal("x", run_id="bystander"))
        driver.do(Reap("r", "w1"))
        (journal,) = driver.claim()
        assert journal.run == driver.run()
        assert list(journal.entries) == driver.entries()
        assert {(each.name, each.arrival) for each in journal.waits} == {("x", 1), ("y", None)}
        assert {number: arrival.name for number, arrival in journal.arrivals.items()} == {1: "x", 2: "z"}
        assert {name: slot.acked for name, slot in journal.slots.items()} == {"ev": 0}
        assert [found.no for found in journal.messages["ev"]] == [3]

    def test_a_closed_channel_is_known_without_a_message(self, driver: Driver) -> None:
        driver.do(start())
        driver.do(CloseChannel("r", "ev"))
        (journal,) = driver.claim()
        assert journal.slots["ev"].closed == "closed"
        assert journal.messages["ev"] == []

    def test_a_plain_loop_gets_what_it_received_and_a_page_more(self, driver: Driver) -> None:
        driver.begin()
        driver.batch(*(message(key=str(number)) for number in range(PAGE + 5)), message("other", key="0"))
        received = [
            record(number, "ev", None, kind=EntryKind.RECEIVE, round=number, arrival=number) for number in (1, 2, 3)
        ]
        driver.turn("r", *received, *(Ack("ev", number, 1) for number in (1, 2, 3)))
        driver.do(Reap("r", "w1"))
        (journal,) = driver.claim()
        assert [found.no for found in journal.messages["ev"]] == list(range(1, PAGE + 4))
        assert len(journal.messages["other"]) == 1
        assert journal.slots["ev"].acked == 3

    def test_a_fold_gets_a_page_after_its_last_ack(self, driver: Driver) -> None:
        driver.begin()
        driver.batch(*(message(key=str(number)) for number in range(PAGE + 5)))
        driver.turn("r", Ack("ev", 1, 1, b'{"n":1}'), Ack("ev", 2, 1, b'{"n":2}'))
        driver.do(Reap("r", "w1"))
        (journal,) = driver.claim()
        assert (journal.slots["ev"].acked, journal.slots["ev"].state) == (2, b'{"n":2}')
        assert [found.no for found in journal.messages["ev"]] == list(range(3, PAGE + 3))

    def test_a_message_that_was_refused_is_in_its_place(self, driver: Driver) -> None:
        driver.begin()
        driver.batch(message(key="1"), message(key="2"))
        refused = Refuse(1, KeyId(ArrivalKind.CHANNEL, "ev", "1"), (FieldError("$", "no"),))
        driver.turn("r", refused)
        driver.do(Reap("r", "w1"))
        (journal,) = driver.claim()
        statuses = [found.status for found in journal.messages["ev"]]
        assert statuses == [ArrivalStatus.INVALID, ArrivalStatus.BUFFERED]

    def test_journals_of_many_runs_at_once_are_not_mixed_up(self, driver: Driver) -> None:
        names = [f"r{number}" for number in range(20)]
        driver.batch(*map(start, names))
        driver.batch(*(message(key=name, run_id=name) for name in names), *(signal(key=n, run_id=n) for n in names))
        for journal in driver.claim():
            assert [found.key for found in journal.arrivals.values()] == [journal.run.id]
            assert [found.key for found in journal.messages["ev"]] == [journal.run.id]

    def test_a_change_is_noticed_by_whoever_looks(self, driver: Driver, other: Driver) -> None:
        """`other` is a second process at the store, where there can be one."""
        seen = other.store.change()
        driver.do(start())
        if other is not driver:
            assert other.store.change() != seen
        assert other.run().id == "r"

    def test_notes_tell_who_has_to_hear(self, driver: Driver) -> None:
        driver.do(start())
        assert driver.notes.ready == {"r"}
        driver.claim()
        assert not driver.notes
        driver.turn("r", opens(wait()))
        driver.do(signal())
        assert driver.notes.nudges == {("r", "w1")}
        driver.turn("r", end=Finish(Status.SUCCEEDED))
        assert driver.notes.ended == {"r"}
        driver.batch(Claim("r", "w1"))
        assert not driver.notes
        driver.do(Register(driver.worker("w3")))
        assert not driver.notes

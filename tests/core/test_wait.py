"""Waits: how they open and what settles them (SPEC 4.1, 4.7-4.9, 4.12, 4.13)."""

from dataclasses import replace
from typing import Any

import pytest

from tarry.core.accepts import Declared
from tarry.core.commands import Ack, Cancel, Close, CloseChannel, Finish, Open, Opening, Park, Refuse, Want
from tarry.model import (
    ArrivalKind,
    ArrivalStatus,
    FieldError,
    KeyId,
    Outcome,
    ReceiptStatus,
    Status,
    Wait,
    WaitKind,
)
from tarry.testing.conformance_driver import Driver, message, opens, place, signal, wait
from tests.core.desk import INT_ID, declare, desk

GROUP: dict[str, Any] = {"scope": "g:0/", "group": "g:0/"}


def member(name: str, kind: WaitKind = WaitKind.SIGNAL, number: int = 0, **more: Any) -> Wait:
    return wait(name, kind, round=number, member=number, **GROUP, **more)


def outcomes(driver: Driver) -> dict[str, tuple[Outcome | None, int | None]]:
    told = driver.turn("r")
    return {settled.name: (settled.outcome, settled.number) for settled in told.waits}


def test_a_wait_is_on_file_with_its_absolute_deadline_before_the_run_lets_go():
    """SPEC 4.1, 4.7: beside a long step it is visible and receives."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=500))
    opened = driver.open_waits()[wait().id]
    assert (opened.opened_ms, opened.deadline_ms) == (driver.clock.now_ms(), driver.clock.now_ms() + 500)
    assert driver.run().status is Status.RUNNING
    assert driver.do(signal()).status is ReceiptStatus.DELIVERED
    assert driver.run().status is Status.RUNNING
    assert driver.notes.nudges == {("r", "w1")}
    assert outcomes(driver) == {"paid": (Outcome.OK, 1)}


def test_until_is_an_instant():
    """SPEC 4.7: one that has passed is over at once."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(), until_ms=driver.clock.now_ms()))
    assert outcomes(driver) == {"paid": (Outcome.TIMEOUT, 1)}


@pytest.mark.parametrize(("after_ms", "settled"), [(99, ReceiptStatus.DELIVERED), (100, ReceiptStatus.STALE)])
def test_a_delivery_counts_before_the_deadline_and_at_it_no_longer(after_ms: int, settled: ReceiptStatus):
    """SPEC 4.8."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=100), end=Park())
    driver.clock.advance(after_ms / 1000)
    assert driver.do(signal()).status is settled
    driver.claim()
    assert outcomes(driver)["paid"][0] is (Outcome.OK if settled is ReceiptStatus.DELIVERED else Outcome.TIMEOUT)


def test_an_outcome_stays_whatever_time_it_is_read():
    """SPEC 4.8: a slow worker flips nothing."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=100), end=Park())
    driver.do(signal())
    driver.clock.advance(3600)
    driver.claim()
    assert outcomes(driver) == {"paid": (Outcome.OK, 1)}


def test_deadlines_fire_the_earliest_first():
    """SPEC 4.8: each outcome has its number in the run's one count."""
    driver = desk()
    driver.begin()
    for name, timeout_ms in (("c", 300), ("a", 200), ("b", 100), ("z", 100), ("later", 9000)):
        driver.turn("r", opens(wait(name, WaitKind.TIMER), timeout_ms=timeout_ms))
    driver.turn("r", end=Park())
    driver.clock.advance(0.3)
    driver.claim()
    fired = {name: found for name, found in outcomes(driver).items() if found[0] is not None}
    assert sorted(fired, key=lambda name: fired[name][1] or 0) == ["b", "z", "a", "c"]


def test_two_waits_on_one_latch_both_get_the_payload():
    """SPEC 4.12."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), opens(wait(scope="s/")), end=Park())
    driver.do(signal())
    driver.claim()
    told = driver.turn("r")
    assert [(settled.scope, settled.arrival) for settled in told.waits] == [("", 1), ("s/", 1)]
    assert told.arrivals == {1: driver.arrivals()[0]}


def test_every_later_wait_on_a_latch_gets_the_first_payload():
    """SPEC 1, 4.13: the payload belongs to the name."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()))
    driver.do(signal())
    driver.turn("r", place(1, wait(), arrival=1))
    told = driver.turn("r", opens(wait(round=1)), end=Park())
    assert [settled.arrival for settled in told.waits] == [1]
    assert not told.over


# --- first --------------------------------------------------------------------------------------------


def test_a_delivery_wins_a_race_and_closes_the_others():
    """SPEC 4.9: in the same transaction; late senders are told."""
    driver = desk()
    driver.begin()
    driver.turn(
        "r", opens(member("a"), member("b", number=1), member("t", WaitKind.TIMER, 2), timeout_ms=100), end=Park()
    )
    driver.do(signal("b"))
    assert driver.do(signal("a")).reason == "lost_race"
    driver.claim()
    assert outcomes(driver) == {"b": (Outcome.OK, 1)}
    driver.turn("r", place(1, member("b", number=1), arrival=1))
    assert driver.turn("r").waits == ()
    assert driver.open_waits() == {}


def test_a_timer_wins_a_race():
    """SPEC 4.9: closed signals are told lost_race, not timeout."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(member("a"), member("t", WaitKind.TIMER, 1), timeout_ms=100), end=Park())
    driver.clock.advance(0.1)
    assert driver.do(signal("a")).reason == "lost_race"
    driver.claim()
    assert outcomes(driver) == {"t": (Outcome.FIRED, 1)}


def test_of_two_deadlines_in_one_race_one_counts():
    """SPEC 4.9: a wait has one outcome."""
    driver = desk()
    driver.begin()
    first = Opening(member("a", WaitKind.TIMER), timeout_ms=50)
    second = Opening(member("b", WaitKind.TIMER, 1), timeout_ms=60)
    driver.turn("r", Open((first, second)), end=Park())
    driver.clock.advance(0.1)
    driver.claim()
    assert outcomes(driver) == {"a": (Outcome.FIRED, 1)}


def test_what_is_on_file_wins_in_the_order_of_commits():
    """SPEC 4.9: not in the order of the call."""
    driver = desk()
    driver.begin()
    driver.batch(signal("b"), message("ev"), signal("a"))
    told = driver.turn("r", opens(member("a"), member("ev", WaitKind.CHANNEL, 1), member("b", number=2)), end=Park())
    assert [(settled.name, settled.arrival) for settled in told.waits] == [("b", 1)]
    assert [arrival.status for arrival in driver.arrivals()] == [
        ArrivalStatus.DELIVERED,
        ArrivalStatus.BUFFERED,
        ArrivalStatus.BUFFERED,
    ]


def test_a_message_wins_a_race_and_stays_on_the_channel():
    """SPEC 4.9: a channel only loses the wait, its messages stay."""
    driver = desk()
    driver.begin()
    driver.do(message("ev", key="old"))
    racing = opens(member("a"), member("ev", WaitKind.CHANNEL, 1, cursor=1))
    assert driver.turn("r", racing, end=Park(), wants=[Want("ev", 1)]).over
    driver.do(message("ev"))
    driver.claim()
    told = driver.turn("r", wants=[Want("ev", 1)])
    assert [(settled.name, settled.arrival) for settled in told.waits] == [("ev", 2)]
    assert [found.key for found in told.pages["ev"]] == ["k1"]
    assert driver.arrivals()[1].status is ArrivalStatus.BUFFERED


def test_a_message_on_file_wins_a_race_that_opens():
    """SPEC 4.9: only beyond what the pass has seen."""
    driver = desk()
    driver.begin()
    driver.batch(message("ev", key="seen"), message("ev", key="new"))
    told = driver.turn("r", opens(member("a"), member("ev", WaitKind.CHANNEL, 1, cursor=1)), end=Park())
    assert [(settled.name, settled.arrival) for settled in told.waits] == [("ev", 2)]
    assert told.arrivals[2].key == "new"


# --- how waits go -------------------------------------------------------------------------------------


def test_a_wait_that_the_pass_did_not_meet_is_abandoned():
    """SPEC 4.4; closing what is not there is nothing."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()))
    driver.turn("r", Close((wait().id, wait("other").id)))
    assert driver.open_waits() == {}
    assert driver.do(signal()).reason == "abandoned"


def test_a_run_that_is_cancelled_opens_nothing():
    """SPEC 3.12."""
    driver = desk()
    driver.begin()
    driver.do(Cancel("r"))
    told = driver.turn("r", opens(wait()), end=Park())
    assert (told.over, told.run.cancelling, driver.open_waits()) == (False, True, {})
    assert driver.turn("r", end=Park(saw_cancel=True)).over


def test_an_end_sweeps_what_is_open_and_what_was_never_read():
    """SPEC 4.16: an unread delivery's receipt tells the truth afterwards."""
    driver = desk()
    driver.begin()
    driver.batch(signal("a"), message("ev", key="read"), message("ev", key="unread"))
    driver.turn("r", opens(wait()), Ack("ev", 2, 1), end=Finish(Status.SUCCEEDED, b"1"))
    assert driver.open_waits() == {}
    assert [arrival.status for arrival in driver.arrivals()] == [
        ArrivalStatus.STALE,
        ArrivalStatus.BUFFERED,
        ArrivalStatus.STALE,
    ]
    assert driver.reasons() == ["ended", "ended"]
    assert (driver.run().buffered, driver.run().buffered_bytes) == (0, 0)


def test_a_winner_that_was_checked_is_taken_before_what_only_lies_there():
    """SPEC 4.3: the name was settled at the door."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(schema=INT_ID)))
    driver.do(signal(payload=b"5"))
    told = driver.turn("r", opens(wait(schema=INT_ID)))
    assert [settled.arrival for settled in told.waits] == [1]
    assert (driver.run().buffered, driver.arrivals()[0].status) == (0, ArrivalStatus.DELIVERED)


def test_a_payload_that_was_refused_in_this_turn_is_not_taken_by_the_next_wait():
    """SPEC 4.6."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()))
    driver.do(signal())
    refused = Refuse(1, KeyId(ArrivalKind.SIGNAL, "paid", "k1"), (FieldError("$", "no"),))
    told = driver.turn("r", refused, opens(wait(scope="s/")), end=Park())
    assert told.over
    assert len(driver.open_waits()) == 2


def test_a_race_whose_winner_was_refused_is_answered_by_what_else_is_on_file():
    """SPEC 4.6, 4.9: nobody else would wake it."""
    driver = desk()
    driver.begin()
    driver.batch(message("ev", key="odd"), signal(key="k2"), message("ev", key="even"))
    race = member("ev", WaitKind.CHANNEL), member("paid", number=1)
    told = driver.turn("r", opens(*race))
    assert [settled.arrival for settled in told.waits] == [1]
    key = KeyId(ArrivalKind.CHANNEL, "ev", "odd")
    reached = replace(race[0], cursor=1), race[1]
    told = driver.turn("r", Refuse(1, key, (FieldError("$", "no"),), reached), end=Park())
    assert [(settled.name, settled.arrival) for settled in told.waits] == [("paid", 2)]
    assert not told.over


def test_a_channel_that_closes_wakes_its_race():
    """SPEC 5.6."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(member("a"), member("ev", WaitKind.CHANNEL, 1)), end=Park(), wants=[Want("ev", 0)])
    driver.do(CloseChannel("r", "ev"))
    assert driver.run().status is Status.READY


def test_of_two_members_on_one_name_the_first_wins():
    """SPEC 4.9: one journaled winner."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(member("a"), member("a", number=1)), end=Park())
    driver.do(signal("a"))
    driver.claim()
    told = driver.turn("r")
    assert [won.member for won in told.waits if won.outcome is Outcome.OK] == [0]

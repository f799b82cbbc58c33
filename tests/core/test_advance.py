"""One turn of a run in one write: entries, acks, the pause and the end (SPEC 3.2, 4.1, 5.2, 5.3, 11.3)."""

from typing import Any

import pytest

from tarry.core.commands import Ack, Block, Close, Finish, Park, Reap, Release, Want
from tarry.errors import LeaseLost
from tarry.model import ArrivalKind, Blocked, Outcome, Slot, Status, WaitKind
from tarry.testing.conformance_driver import message, opens, place, record, signal, wait
from tests.core.desk import desk

READING = wait("ev", WaitKind.CHANNEL)


def test_an_entry_is_stamped_by_the_stores_clock():
    driver = desk()
    driver.begin()
    driver.turn("r", record(at_ms=1))
    assert [entry.at_ms for entry in driver.entries()] == [driver.clock.now_ms()]


def test_an_entry_number_is_written_once():
    """SPEC 11.3: the second fence."""
    driver = desk()
    driver.begin()
    driver.turn("r", record(1, "a"))
    with pytest.raises(LeaseLost):
        driver.turn("r", record(1, "b"))
    assert [entry.name for entry in driver.entries()] == ["a"]


def test_placing_an_outcome_that_is_off_the_table_records_it_all_the_same():
    driver = desk()
    driver.begin()
    driver.turn("r", place(1, wait()))
    assert [entry.name for entry in driver.entries()] == ["paid"]


@pytest.mark.parametrize("seen", [True, False])
def test_park_is_refused_while_a_wait_has_an_outcome(seen: bool):
    """SPEC 4.2: level-triggered, so that no order of events loses one; what was seen and not placed counts too."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()))
    driver.do(signal())
    if seen:
        driver.turn("r")
    told = driver.turn("r", end=Park())
    assert (told.over, told.run.status) == (False, Status.RUNNING)
    assert [settled.arrival for settled in told.waits] == [1]
    assert driver.turn("r", place(1, wait(), arrival=1), end=Park()).over


@pytest.mark.parametrize(("after", "parks"), [(0, False), (1, True)])
def test_park_is_refused_while_a_channel_holds_what_was_not_seen(after: int, parks: bool):
    """SPEC 5.2."""
    driver = desk()
    driver.begin()
    driver.do(message())
    reading = wait("ev", WaitKind.CHANNEL, cursor=after)
    told = driver.turn("r", opens(reading), end=Park(), wants=[Want("ev", after)])
    assert told.over is parks


def test_a_message_in_the_same_batch_as_the_pause_is_not_lost():
    """SPEC 4.2: in either order."""
    for order in (0, 1):
        driver = desk()
        driver.begin()
        pause = driver.advance("r", opens(READING), end=Park(), wants=[Want("ev", 0)])
        driver.batch(*([pause, message()] if order else [message(), pause]))
        assert driver.run().status is (Status.READY if order else Status.RUNNING)


def test_a_pause_is_due_at_its_earliest_deadline():
    """SPEC 6.2."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 500)
    now = driver.clock.now_ms()
    driver.turn("r", opens(wait("a"), timeout_ms=900), opens(wait("b"), timeout_ms=300), opens(wait("c")), end=Park())
    assert driver.run().due_ms == now + 300
    driver.clock.advance(0.3)
    driver.claim()
    driver.turn("r", place(1, wait("b"), Outcome.TIMEOUT), end=Park())
    assert driver.run().due_ms == now + 500


def test_a_pause_for_nothing_but_an_event_is_never_due():
    """SPEC 6.2: nothing polls it."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), end=Park())
    assert driver.run().due_ms is None
    assert driver.store.next_due_ms(["job"]) is None


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_a_finish_is_final(status: Status):
    driver = desk()
    driver.begin()
    told = driver.turn("r", end=Finish(status, b"1", b"2", 3))
    run = driver.run()
    assert told.over
    assert (run.status, run.result, run.error, run.culprit, run.worker) == (status, b"1", b"2", 3, None)
    assert driver.notes.ended == {"r"}


def test_a_block_names_its_reason():
    driver = desk()
    driver.begin()
    driver.turn("r", end=Block(Blocked.NOT_DURABLE, "a socket"))
    run = driver.run()
    assert (run.status, run.blocked, run.reason, run.due_ms) == (Status.BLOCKED, Blocked.NOT_DURABLE, "a socket", None)


@pytest.mark.parametrize(("again", "attempt"), [(False, 1), (True, 2)])
def test_a_release_gives_the_run_back(again: bool, attempt: int):
    """SPEC 3.9: a culprit's entry goes, so that the retried body does that step again."""
    driver = desk()
    driver.begin()
    driver.turn("r", record(1, "a"), record(2, "b"), end=Release(700, again, culprit=2 if again else None))
    run = driver.run()
    assert (run.status, run.due_ms, run.attempt) == (Status.READY, driver.clock.now_ms() + 700, attempt)
    assert len(driver.entries()) == (1 if again else 2)


# --- acks ---------------------------------------------------------------------------------------------


def test_an_ack_counts_once():
    """SPEC 5.2: acks on file are no-ops, whatever order they come in again."""
    driver = desk()
    driver.begin()
    driver.batch(message(payload=b"11"), message(payload=b"222", key="k2"))
    driver.turn("r", Ack("ev", 1, 2), Ack("ev", 1, 2))
    driver.turn("r", Ack("ev", 1, 2))
    assert (driver.run().buffered, driver.run().buffered_bytes, driver.store.acked("r", "ev")) == (1, 3, 1)
    driver.turn("r", Ack("ev", 2, 3))
    assert (driver.run().buffered, driver.run().buffered_bytes, driver.store.acked("r", "ev")) == (0, 0, 2)


def test_an_ack_and_the_folds_state_commit_together_and_drop_the_round():
    """SPEC 5.3."""
    driver = desk()
    driver.begin()
    driver.do(message())
    inside, outside = record(1, "s", scope="ev:k1/"), record(2, "s", scope="ev2:k1/")
    driver.turn("r", inside, outside)
    driver.turn("r", Ack("ev", 1, 1, b'{"n":1}', "ev:"))
    assert [entry.scope for entry in driver.entries()] == ["ev2:k1/"]
    driver.do(Reap("r", "w1"))
    (journal,) = driver.claim()
    assert journal.slots["ev"] == Slot("r", ArrivalKind.CHANNEL, "ev", 1, b'{"n":1}')
    assert journal.messages["ev"] == []


def test_an_ack_is_progress():
    """SPEC 3.9: crashes in a row are counted without it."""
    driver = desk()
    driver.begin()
    driver.do(message())
    driver.do(Reap("r", "w1"))
    driver.claim()
    driver.turn("r", Ack("ev", 1, 1))
    assert driver.run().crashes == 0


# --- what the owner is told ---------------------------------------------------------------------------


def test_the_owner_is_told_what_is_on_file():
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait("a")), opens(wait("b")))
    driver.batch(signal("a"), *(message(key=str(number)) for number in range(3)))
    told = driver.turn("r", wants=[Want("ev", 2, 2), Want("none", 0)])
    assert (told.now_ms, told.run, told.over) == (driver.clock.now_ms(), driver.run(), False)
    assert [(settled.name, settled.arrival) for settled in told.waits] == [("a", 1), ("b", None)]
    assert {number: arrival.name for number, arrival in told.arrivals.items()} == {1: "a"}
    assert [found.no for found in told.pages["ev"]] == [3, 4]
    assert told.pages["none"] == []


@pytest.mark.parametrize("part", [Close((wait().id,)), record()])
def test_a_turn_that_is_refused_writes_none_of_its_parts(part: Any):
    """SPEC 11.3."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()))
    fenced = driver.advance("r", part)
    driver.do(Reap("r", "w1"))
    with pytest.raises(LeaseLost):
        driver.do(fenced)
    assert list(driver.open_waits()) == [wait().id]
    assert driver.entries() == []

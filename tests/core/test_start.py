"""A start: the id is the key (SPEC 3.1)."""

import pytest

from tarry.core.commands import Cancel, Finish, Retry, Start
from tarry.core.states import at_once
from tarry.errors import RunConflict, RunGone
from tarry.model import Status
from tarry.testing.conformance_driver import Driver, signal, start
from tests.core.desk import desk


def test_a_new_run_is_ready_at_once():
    driver = desk()
    told = driver.do(start(tags=(("order", "o-1"),)))
    assert told.created
    assert told.run == driver.run()
    assert (told.run.status, told.run.due_ms, told.run.epoch) == (Status.READY, at_once(driver.clock.now_ms()), 0)
    assert driver.notes.ready == {"r"}


@pytest.mark.parametrize("state", [None, Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
def test_the_same_id_gives_the_existing_run(state: Status | None):
    """SPEC 3.1: whatever became of it; equal input counts, not equal bytes."""
    driver = desk()
    driver.begin()
    if state is not None:
        driver.turn("r", end=Finish(state))
    before = driver.run()
    told = driver.do(Start("r", "job", b'[ "in" ]', tags=(("other", "tag"),)))
    assert (told.created, told.run) == (False, before)
    assert driver.run() == before


@pytest.mark.parametrize(("workflow", "given", "what"), [("other", b'["in"]', "workflow"), ("job", b"[]", "input")])
def test_another_workflow_or_input_under_the_id_is_a_conflict(workflow: str, given: bytes, what: str):
    driver = desk()
    driver.do(start())
    with pytest.raises(RunConflict, match=f"another {what}"):
        driver.do(Start("r", workflow, given))


def test_two_starts_of_one_batch_are_one_run():
    driver = desk()
    told = driver.batch(start(), start())
    assert [answer.created for answer in told] == [True, False]


def test_a_pruned_id_stays_taken():
    driver = desk()
    driver.store.tables.tombstones["r"] = 1  # type: ignore[attr-defined]
    for command in (start(), Cancel("r"), Retry("r")):
        with pytest.raises(RunGone):
            driver.do(command)


@pytest.mark.parametrize(("start_in", "deadline_in", "due_in"), [(500, None, 500), (500, 200, 200), (None, 200, None)])
def test_it_is_looked_at_when_it_may_begin_or_expires(
    start_in: int | None, deadline_in: int | None, due_in: int | None
):
    driver = desk()
    now = driver.clock.now_ms()
    when = {"due_ms": now + start_in} if start_in is not None else {}
    by = {"deadline_ms": now + deadline_in} if deadline_in is not None else {}
    driver.do(start(**when, **by))
    assert driver.run().due_ms == (at_once(now) if due_in is None else now + due_in)
    assert (driver.claim() != []) == (due_in is None)


def expired_unclaimed(driver: Driver) -> None:
    driver.do(start(deadline_ms=driver.clock.now_ms() + 10, due_ms=driver.clock.now_ms() + 1000))
    driver.do(signal())
    driver.clock.advance(0.01)
    assert driver.claim() == []


def test_a_run_that_expires_before_anybody_had_it_ends_at_once():
    """SPEC 3.12: and what it never read is a dead letter."""
    driver = desk()
    expired_unclaimed(driver)
    assert (driver.run().status, driver.run().epoch) == (Status.EXPIRED, 0)
    assert driver.reasons() == ["deadline"]

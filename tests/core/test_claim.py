"""Claims, fences and reaping: who owns a run, and since which epoch (SPEC 11.1-11.4, 3.9)."""

import pytest

from tarry.core.commands import Advance, Block, Claim, Finish, Park, Reap, Release
from tarry.errors import LeaseLost
from tarry.model import Blocked, Limits, Outcome, Status, WaitKind
from tarry.testing.conformance_driver import Driver, opens, record, signal, start, wait
from tests.core.desk import desk


def test_a_claim_raises_the_epoch_and_takes_the_declaration():
    driver = desk()
    driver.do(start())
    driver.batch(documents={"digest": b"[]"})
    (journal,) = driver.claim(accepts="digest")
    run = driver.run()
    assert journal.run == run
    assert (run.status, run.worker, run.epoch, run.accepts, run.due_ms) == (Status.RUNNING, "w1", 1, "digest", None)
    assert not driver.notes


def test_nobody_claims_what_is_claimed_or_not_due():
    """SPEC 11.1."""
    driver = desk()
    driver.do(start(due_ms=driver.clock.now_ms() + 1))
    assert driver.do(Claim("r", "w1")).run is None
    driver.clock.advance(0.001)
    assert driver.do(Claim("r", "w1")).run is not None
    assert driver.do(Claim("r", "w2")).run is None
    assert driver.run().worker == "w1"


@pytest.mark.parametrize("end", [Park(), Block(Blocked.DEADLOCK, ""), Finish(Status.SUCCEEDED, b"1")])
def test_nobody_claims_a_run_at_rest(end: Park | Block | Finish):
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), end=end)
    assert driver.do(Claim("r", "w2")).run is None


def test_a_timer_that_came_due_is_fired_by_the_claim():
    """SPEC 4.8, 6.2: exactly at its instant."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait("grace", WaitKind.TIMER), timeout_ms=100), end=Park())
    driver.clock.advance(0.099)
    assert driver.claim() == []
    driver.clock.advance(0.001)
    (journal,) = driver.claim()
    assert [(fired.name, fired.outcome) for fired in journal.waits] == [("grace", Outcome.FIRED)]


@pytest.mark.parametrize(
    "fenced", [Advance("r", "w1", 1), Advance("r", "w2", 1), Advance("r", "w1", 2), Advance("zz", "w1", 1)]
)
def test_a_write_under_an_old_fence_changes_nothing(fenced: Advance):
    """SPEC 11.3."""
    driver = desk()
    driver.begin()
    driver.do(Reap("r", "w1"))
    before = driver.run()
    with pytest.raises(LeaseLost):
        driver.do(Advance(fenced.run_id, fenced.worker, fenced.epoch, (record(),), Finish(Status.SUCCEEDED)))
    assert (driver.run(), driver.entries()) == (before, [])


def test_a_dead_workers_run_is_ready_under_a_new_epoch():
    """SPEC 11.4."""
    driver = desk()
    driver.begin()
    assert driver.do(Reap("r", "w1")) is True
    run = driver.run()
    assert (run.status, run.worker, run.epoch, run.crashes) == (Status.READY, None, 2, 1)
    assert driver.do(Reap("r", "w1")) is False


@pytest.mark.parametrize("reaped", [Reap("r", "w2"), Reap("zz", "w1")])
def test_only_the_dead_workers_own_runs_are_reaped(reaped: Reap):
    driver = desk()
    driver.begin()
    assert driver.do(reaped) is False
    assert driver.run().status is Status.RUNNING


def crash(driver: Driver, times: int) -> None:
    for _ in range(times):
        driver.claim()
        driver.do(Reap("r", "w1"))


def test_five_crashes_in_a_row_are_poison():
    """SPEC 3.9."""
    driver = desk()
    driver.do(start())
    crash(driver, Limits().crashes - 1)
    assert driver.claim() != []
    driver.do(Reap("r", "w1"))
    assert driver.claim() == []
    assert (driver.run().status, driver.run().blocked) == (Status.BLOCKED, Blocked.POISON)
    assert "5 workers" in (driver.run().reason or "")


def test_a_new_entry_starts_the_count_anew():
    """SPEC 3.9: in a row means without a new entry between."""
    driver = desk()
    driver.do(start())
    crash(driver, Limits().crashes - 1)
    driver.claim()
    driver.turn("r", record())
    assert driver.run().crashes == 0


def test_waiting_is_no_crash():
    """SPEC 3.9."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), end=Park())
    driver.do(signal())
    driver.claim()
    driver.turn("r", end=Release())
    assert driver.run().crashes == 0


def test_a_deadline_beats_poison_where_nobody_ever_had_the_run():
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 10)
    driver.clock.advance(0.01)
    driver.do(Reap("r", "w1"))
    (journal,) = driver.claim()
    assert (journal.run.status, journal.run.expiring) == (Status.RUNNING, True)

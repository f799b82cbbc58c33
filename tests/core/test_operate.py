"""What operators do: cancel, retry, resolve, close a channel (SPEC 3.12, 12.2, 12.4, 5.6)."""

from typing import Any

import pytest

from tarry.core.commands import Block, Cancel, CloseChannel, Finish, Park, Release, Resolve, Retry, Want
from tarry.errors import LeaseLost, NotResolvable, NotRetryable, RunNotFound
from tarry.model import Blocked, EntryKind, Outcome, Status, WaitKind
from tarry.testing.conformance_driver import Driver, message, opens, record, signal, start, wait
from tests.core.desk import desk


def audit(driver: Driver) -> list[tuple[str | None, str]]:
    return [(row.actor, row.action) for row in driver.store.audit("r", None, 100).rows]


# --- cancel -------------------------------------------------------------------------------------------


def parked(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=60_000), end=Park())


def running(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait()))


def blocked(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", end=Block(Blocked.DEADLOCK, "stuck"))


def delayed(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", end=Release(delay_ms=3_600_000, again=True))


@pytest.mark.parametrize("state", [parked, running, blocked, delayed])
def test_a_cancel_closes_the_waits_and_lets_the_body_clean_up(state: Any):
    """SPEC 3.12: at once, whatever the run was waiting for."""
    driver = desk()
    state(driver)
    was = driver.run().status
    assert driver.do(Cancel("r", "ann")).status == "cancelling"
    run = driver.run()
    assert (run.cancelling, run.cancel_actor, run.blocked, driver.open_waits()) == (True, "ann", None, {})
    if was is Status.RUNNING:
        assert run.status is Status.RUNNING
        assert driver.notes.nudges == {("r", "w1")}
    else:
        assert (run.status, run.due_ms) == (Status.READY, driver.clock.now_ms())
        driver.claim()
    driver.turn("r", end=Finish(Status.SUCCEEDED, b"1"))
    assert (driver.run().status, driver.run().result) == (Status.CANCELLED, None)
    assert audit(driver) == [("ann", "cancel")]


@pytest.mark.parametrize("state", [parked, running, blocked, delayed])
def test_force_ends_it_at_once_and_fences_its_worker(state: Any):
    """SPEC 3.12."""
    driver = desk()
    state(driver)
    owned = driver.advance("r", record())
    driver.do(message(payload=b"12"))
    assert driver.do(Cancel("r", force=True)).status == "cancelled"
    run = driver.run()
    assert (run.status, run.worker, run.ended_ms) == (Status.CANCELLED, None, driver.clock.now_ms())
    assert (run.buffered, run.buffered_bytes, driver.open_waits()) == (0, 0, {})
    assert driver.reasons() == ["cancel"]
    with pytest.raises(LeaseLost):
        driver.do(owned)


def test_a_run_that_nobody_had_ends_at_once():
    """SPEC 3.12."""
    driver = desk()
    driver.do(start())
    assert driver.do(Cancel("r")).status == "cancelled"
    assert driver.notes.ended == {"r"}


@pytest.mark.parametrize("end", [Status.SUCCEEDED, Status.FAILED])
def test_where_completion_won_the_receipt_says_so(end: Status):
    """SPEC 3.12."""
    driver = desk()
    driver.begin()
    driver.turn("r", end=Finish(end))
    assert driver.do(Cancel("r")).status == end.value
    assert audit(driver) == []


def test_a_second_cancel_changes_nothing_and_force_still_does():
    """SPEC 3.12."""
    driver = desk()
    running(driver)
    driver.do(Cancel("r", "ann"))
    before = driver.run()
    assert driver.do(Cancel("r", "bo")).status == "cancelling"
    assert driver.run() == before
    assert driver.do(Cancel("r", "bo", force=True)).status == "cancelled"


# --- the run's own deadline ---------------------------------------------------------------------------


def test_the_deadline_does_as_a_cancel_does():
    """SPEC 3.12: exactly at its instant, for a paused run too."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 100)
    driver.turn("r", opens(wait(), timeout_ms=60_000), end=Park())
    assert driver.run().due_ms == driver.run().deadline_ms
    driver.clock.advance(0.1)
    (journal,) = driver.claim()
    assert (journal.run.expiring, journal.waits) == (True, ())
    driver.turn("r", end=Finish(Status.FAILED, error=b"{}"))
    assert driver.run().status is Status.EXPIRED


def test_a_retry_that_was_put_off_does_not_outlast_the_deadline():
    """SPEC 3.12."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 100)
    driver.turn("r", end=Release(delay_ms=3_600_000, again=True))
    assert driver.run().due_ms == driver.run().deadline_ms


def test_a_run_that_expires_is_not_hurried_again():
    """SPEC 3.12: once told, its own delays count."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 100)
    driver.clock.advance(0.1)
    assert driver.turn("r").run.expiring
    driver.turn("r", end=Release(delay_ms=500))
    assert driver.run().due_ms == driver.clock.now_ms() + 500


def test_a_run_between_attempts_is_woken_by_whoever_finds_it_expired():
    """SPEC 3.12."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 100)
    driver.turn("r", end=Release(delay_ms=50, again=True))
    driver.clock.advance(0.1)
    assert driver.do(signal()).reason == "deadline"
    assert (driver.run().status, driver.run().due_ms) == (Status.READY, driver.clock.now_ms())


def test_a_cancel_has_won_over_the_deadline():
    """SPEC 3.12: whichever came first."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 100)
    driver.do(Cancel("r"))
    driver.clock.advance(0.1)
    told = driver.turn("r")
    assert (told.run.cancelling, told.run.expiring) == (True, False)


# --- retry --------------------------------------------------------------------------------------------


def test_a_blocked_run_goes_on():
    """SPEC 12.2, 3.9: the crashes are forgiven, the attempt is the same one."""
    driver = desk()
    blocked(driver)
    assert driver.do(Retry("r", "ann")) is Status.READY
    run = driver.run()
    assert (run.blocked, run.reason, run.crashes, run.attempt, run.epoch) == (None, None, 0, 1, 2)
    assert audit(driver) == [("ann", "retry")]


def test_a_failed_run_does_its_failed_step_again():
    """SPEC 12.2: and nothing else that is on record."""
    driver = desk()
    driver.begin()
    failed = record(2, "b", outcome=Outcome.FAILED)
    driver.turn("r", record(1, "a"), failed, end=Finish(Status.FAILED, error=b"{}", culprit=2))
    driver.do(Retry("r"))
    run = driver.run()
    assert (run.status, run.attempt, run.error, run.culprit, run.ended_ms) == (Status.READY, 2, None, None, None)
    assert [entry.name for entry in driver.entries()] == ["a"]
    assert driver.claim() != []


@pytest.mark.parametrize("state", [parked, running, delayed])
def test_only_blocked_and_failed_runs_are_retried(state: Any):
    driver = desk()
    state(driver)
    with pytest.raises(NotRetryable, match=driver.run().status.value):
        driver.do(Retry("r"))


# --- resolve ------------------------------------------------------------------------------------------


def unknown(driver: Driver) -> None:
    driver.begin()
    lost = record(2, "charge", None, outcome=Outcome.UNKNOWN, scope="s/")
    driver.turn("r", record(1), lost, end=Block(Blocked.UNKNOWN_OUTCOME, "lost"))


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN])
def test_an_unknown_outcome_is_resolved_by_an_entry_over_it(outcome: Outcome):
    """SPEC 3.5: the unknown one stays in the journal."""
    driver = desk()
    unknown(driver)
    assert driver.do(Resolve("r", "charge", 2, outcome, b"7", "ann")) is Status.READY
    resolved = driver.entries()[-1]
    assert (resolved.no, resolved.kind, resolved.scope, resolved.name) == (3, EntryKind.RESOLVE, "s/", "charge")
    assert (resolved.outcome, resolved.value) == (outcome, b"7")
    assert driver.entries()[1].outcome is Outcome.UNKNOWN
    assert audit(driver) == [("ann", "resolve")]


@pytest.mark.parametrize("number", [1, 9])
def test_only_an_unknown_outcome_is_resolved(number: int):
    """SPEC 3.5."""
    driver = desk()
    unknown(driver)
    with pytest.raises(NotResolvable, match=f"entry {number} records no unknown outcome"):
        driver.do(Resolve("r", "charge", number, Outcome.OK, b"7"))
    assert driver.run().status is Status.BLOCKED


def test_a_run_that_is_not_blocked_by_it_has_nothing_to_resolve():
    driver = desk()
    running(driver)
    with pytest.raises(NotResolvable, match="the run is running"):
        driver.do(Resolve("r", "charge", 1, Outcome.OK, b"7"))


# --- closing a channel --------------------------------------------------------------------------------


def test_closing_a_channel_wakes_its_reader_once():
    """SPEC 5.6."""
    driver = desk()
    driver.begin()
    driver.do(message("other"))
    driver.turn("r", opens(wait("ev", WaitKind.CHANNEL)), end=Park(), wants=[Want("ev", 0)])
    assert driver.do(CloseChannel("r", "ev", "ann")) is True
    assert driver.run().status is Status.READY
    assert driver.do(CloseChannel("r", "ev", "bo")) is False
    driver.claim()
    told = driver.turn("r", wants=[Want("ev", 0), Want("other", 0)], end=Park())
    assert (told.over, told.closed) == (False, {"ev"})
    assert audit(driver) == [("ann", "close_channel")]


def test_a_channel_that_nobody_reads_is_closed_all_the_same():
    """SPEC 5.6: and what was told of it before stays."""
    driver = desk()
    running(driver)
    assert driver.do(CloseChannel("r", "ev")) is True
    assert driver.run().status is Status.RUNNING
    driver.turn("r", end=Finish(Status.SUCCEEDED))
    assert driver.do(CloseChannel("r", "other")) is False


@pytest.mark.parametrize(
    "command", [Cancel("r"), Retry("r"), CloseChannel("r", "ev"), Resolve("r", "s", 1, Outcome.OK, b"1")]
)
def test_nobody_operates_on_a_run_that_is_not_there(command: Any):
    with pytest.raises(RunNotFound):
        desk().do(command)

"""The statuses of a run, as one table (SPEC 1)."""

from dataclasses import replace

import pytest

from tarry.core.states import CLAIMABLE, ENDS, TRANSITIONS, closing, move, over
from tarry.model import Blocked, RunRecord, Status

RUN = RunRecord("r", "job", Status.RUNNING, b"[]", due_ms=5, worker="w1", epoch=3)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("to", Status)
def test_only_what_the_table_names_is_possible(status: Status, to: Status):
    run = replace(RUN, status=status)
    if to in TRANSITIONS[status]:
        assert move(run, to, 9).status is to
    else:
        with pytest.raises(AssertionError, match=f"{status} -> {to} of run r"):
            move(run, to, 9)


def test_the_table_has_every_status_and_ends_end():
    assert set(TRANSITIONS) == set(Status)
    assert ENDS | CLAIMABLE | {Status.RUNNING, Status.BLOCKED} == set(Status)
    assert {status for status in ENDS if TRANSITIONS[status]} == {Status.FAILED}
    assert TRANSITIONS[Status.FAILED] == {Status.READY}


def test_what_holds_in_one_status_goes_with_it():
    """Only a running run has a worker, only a blocked one a reason; the next due instant is set anew."""
    assert move(RUN, Status.WAITING, 9) == replace(RUN, status=Status.WAITING, worker=None, due_ms=None, changed_ms=9)
    blocked = move(RUN, Status.BLOCKED, 9, blocked=Blocked.POISON, reason="five")
    assert (blocked.blocked, blocked.reason) == (Blocked.POISON, "five")
    ready = move(blocked, Status.READY, 9, due_ms=9)
    assert (ready.blocked, ready.reason, ready.due_ms) == (None, None, 9)
    assert move(ready, Status.RUNNING, 9, worker="w2").worker == "w2"


@pytest.mark.parametrize("status", Status)
def test_why_a_run_takes_nothing_in(status: Status):
    """SPEC 4.4: the reason that a stale delivery is told."""
    run = replace(RUN, status=status)
    told = {"cancelled": "cancel", "expired": "deadline", "succeeded": "ended", "failed": "ended"}
    assert closing(run) == told.get(status.value)
    assert over(run) == (status.value in told)
    assert closing(replace(run, cancelling=True)) == "cancel"
    assert closing(replace(run, expiring=True)) == ("cancel" if status is Status.CANCELLED else "deadline")

"""The rules H1 to H7, each with histories that keep it and histories that break it and nothing else.

A checker that flags nothing is as useless as one that flags everything: the good scenes hold what is rare but
right (rules 4.3, 4.6, 4.13), the broken ones the faults that the checker is there for.
"""

import pytest

from tarry.testing.history import (
    Fail,
    Info,
    Invoke,
    Received,
    fingerprint,
)
from tests.histories.scene import NAME, RUN, Scene, settled


def test_a_plain_history_keeps_every_rule():
    """SPEC 4.2, 4.4."""
    scene = settled().take(5, "payload", "1", pass_id="p1").take(9, "payload", "1", pass_id="p2")
    scene.deliver(4, 6, "a", "1", "duplicate", retained="1")
    scene.deliver(4, 6, "a", "2", "conflict", retained="1")
    scene.deliver(4, 6, "b", "2", "already_settled", retained="1")
    scene.deliver(20, 21, "c", "2", "stale", reason="ended")
    assert scene.rules == []
    assert scene.report().summary() == "0 lost, 0 applied twice, 0 stuck"


# H1, one outcome, never changed


def test_h1_rounds_and_scopes_have_outcomes_of_their_own():
    """SPEC 4.13: a timeout belongs to one wait, and the payload to the name."""
    scene = Scene().run().take(5, "timeout", round=0, deadline_ms=4, decided_at_ms=4)
    scene.deliver(10, 12, "a", "1", "delivered").arrival(1, "a", "1", at_ms=11)
    scene.take(13, "payload", "1", round=1).take(13, "payload", "1", scope="x")
    scene.entry(1, "wait", NAME, "timeout").entry(2, "wait", NAME, round=1, arrival=1)
    assert scene.rules == []


def test_h1_a_cancelled_wait_is_a_closed_one():
    """SPEC 3.12."""
    scene = Scene().run("cancelled").take(5, "cancelled").take(9, "cancelled").entry(1, "wait", NAME, "closed")
    assert scene.rules == []


@pytest.mark.parametrize("other", ["timeout", "closed"])
def test_h1_sees_an_outcome_that_changes_between_passes(other: str):
    """SPEC 4.8: nothing is decided during replay."""
    scene = settled().take(5, "payload", "1").take(9, other, deadline_ms=1, decided_at_ms=1)
    assert scene.rules == ["H1"]


def test_h1_sees_a_journal_that_says_otherwise():
    scene = settled().take(5, "timeout", deadline_ms=1, decided_at_ms=1)
    assert scene.rules == ["H1"]


def test_h1_sees_two_entries_of_one_wait():
    """SPEC 1: one entry per (kind, scope, name, round)."""
    assert settled().entry(2, "wait", NAME, arrival=1).take(5, "payload", "1").rules == ["H1"]


def test_h1_sees_a_wait_whose_row_contradicts_the_pass():
    scene = Scene().run("waiting", due_ms=1).wait(outcome="ok", arrival=1).deliver(1, 3, "a", "1", "delivered")
    scene.arrival(1, "a", "1").take(5, "closed")
    scene.end = 50
    assert scene.rules == ["H1"]


def test_h1_sees_a_latch_with_two_payloads():
    """SPEC 4.12: two parallel waits on one latch both get the payload."""
    scene = Scene(dumped=False).deliver(1, None, "a", "1", None).deliver(1, None, "b", "2", None)
    scene.take(5, "payload", "1", scope="x").take(5, "payload", "2", scope="y")
    assert scene.rules == ["H1"]


# H2, nothing from nowhere


def test_h2_an_unknown_delivery_may_be_the_source():
    """SPEC 4.2: nobody heard of it, and it happened."""
    scene = Scene().run().deliver(1, None, "a", "1", None).arrival(1, "a", "1")
    assert scene.take(5, "payload", "1").rules == []


@pytest.mark.parametrize("answer", [None, "not_waiting"])
def test_h2_sees_an_outcome_that_nobody_delivered(answer: str | None):
    scene = Scene(dumped=False).take(5, "payload", "7")
    if answer:
        scene.deliver(1, 3, "b", "7", answer)
    assert scene.rules == ["H2"]


def test_h2_a_delivery_that_failed_is_none():
    scene = Scene(dumped=False).take(5, "payload", "1")
    scene.at(1, Invoke(9, RUN, "signal", NAME, "1", "a")).at(2, Fail(9, "RunNotFound"))
    assert scene.rules == ["H2"]
    assert scene.report().counts["failed"] == 1


def test_h2_info_is_no_answer():
    scene = Scene(dumped=False).take(5, "payload", "1")
    scene.at(1, Invoke(9, RUN, "signal", NAME, "1", "a")).at(2, Info(9, "connection lost"))
    assert scene.rules == []
    assert scene.report().counts["unknown"] == 1


def test_h2_sees_an_arrival_that_nobody_delivered():
    assert Scene().run().arrival(1, "a", "1", "buffered").rules == ["H2"]


def test_h2_sees_what_the_type_refused_taken_in():
    """SPEC 4.6: withdrawn before user code sees it."""
    scene = Scene().run().deliver(1, 2, "a", "1", "delivered").arrival(1, "a", "1", "invalid")
    assert "H2" in scene.take(9, "payload", "1").rules


def test_h2_sees_a_message_that_nobody_sent():
    scene = Scene(dumped=False).deliver(1, 2, "k", "1", "buffered", kind="channel", name="c", number=1)
    scene.at(5, Received(RUN, "c", "k", 1, payload="2"))
    assert scene.rules == ["H2"]


# H3, accepted is kept and applied


def test_h3_buffered_without_a_type_may_lose_to_an_earlier_one():
    """SPEC 4.3: the wait takes the first that fits, the receipts of the rest become already_settled."""
    scene = Scene().run().deliver(1, 2, "a", "1", "buffered").deliver(3, 4, "b", "2", "buffered")
    scene.arrival(1, "a", "1").arrival(2, "b", "2", "already_settled").take(9, "payload", "1")
    assert scene.rules == []


def test_h3_what_nobody_waits_for_goes_unread():
    """SPEC 4.3, 4.16: without a type on file, several are kept; at the run's end they are dead letters."""
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(1, 2, "a", "1", "buffered")
    scene.deliver(3, 4, "b", "2", "buffered").arrival(1, "a", "1", "buffered").arrival(2, "b", "2", "buffered")
    assert scene.rules == []
    ended = Scene().run().deliver(1, 2, "a", "1", "buffered").arrival(1, "a", "1", "buffered")
    assert ended.rules == []


def test_h3_what_the_type_refused_is_taken_back():
    """SPEC 4.6: withdrawn, its key is freed, a corrected payload comes under the same key."""
    scene = Scene().run().deliver(1, 2, "a", "1", "delivered").deliver(3, 4, "a", "1", "invalid")
    scene.deliver(3, 4, "z", "9", "already_settled", retained="1")
    scene.deliver(5, 6, "a", "2", "delivered").arrival(2, "a", "2").letter("1", "invalid", "a")
    assert scene.take(9, "payload", "2").rules == []


def test_h3_a_run_that_was_cancelled_may_leave_a_payload_unread():
    """SPEC 3.12."""
    scene = Scene().run("cancelled").deliver(1, 2, "a", "1", "delivered").arrival(1, "a", "1")
    assert scene.rules == []


def test_h3_a_wait_may_time_out_before_the_delivery_that_comes_late():
    """SPEC 4.13, late="keep": buffered between the rounds."""
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").take(9, "timeout", deadline_ms=5, decided_at_ms=8)
    scene.deliver(8, 9, "a", "1", "buffered").arrival(1, "a", "1", "buffered", at_ms=8)
    assert scene.rules == []


def test_h3_a_timeout_of_which_little_is_known_contradicts_nothing():
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").take(9, "timeout", deadline_ms=5)
    scene.deliver(8, 9, "a", "1", "buffered").arrival(1, "a", "1", "buffered")
    assert scene.rules == []


def test_h3_a_pruned_run_keeps_nothing():
    """SPEC 3.1."""
    scene = Scene().deliver(1, 2, "a", "1", "delivered").deliver(5, 6, "a", "1", "gone")
    scene.pruned = frozenset({RUN})
    assert scene.rules == []


def test_h3_sees_a_delivery_that_is_not_kept():
    assert Scene().run("cancelled").deliver(1, 2, "a", "1", "delivered").rules == ["H3"]


def test_h3_sees_a_run_that_is_gone():
    assert Scene().deliver(1, 2, "a", "1", "delivered").rules == ["H3"]


def test_h3_sees_another_payload_under_the_key():
    scene = Scene().run("cancelled").deliver(1, 9, "a", "1", "delivered").deliver(1, None, "a", "2", None)
    assert scene.arrival(1, "a", "2").rules == ["H3"]


@pytest.mark.parametrize("status", ["already_settled", "stale"])
def test_h3_sees_what_was_delivered_taken_back(status: str):
    """SPEC 4.4: only 4.6 can take it back."""
    assert Scene().run().deliver(1, 2, "a", "1", "delivered").arrival(1, "a", "1", status).rules == ["H3"]


def test_h3_sees_the_run_take_another_payload():
    scene = Scene(dumped=False).deliver(1, 9, "a", "1", "delivered").deliver(1, None, "b", "2", None)
    report = scene.take(9, "payload", "2").report()
    assert [violation.rule for violation in report.violations] == ["H3"]
    assert report.summary() == "1 lost, 0 applied twice, 0 stuck"


@pytest.mark.parametrize(("decided", "rules"), [(60, ["H3"]), (50, [])])
def test_h3_sees_a_timeout_after_what_came_in_time(decided: int, rules: list[str]):
    """SPEC 4.8: a delivery before the deadline writes the outcome."""
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(40, 52, "a", "1", "buffered")
    scene.arrival(1, "a", "1", "buffered", at_ms=50)
    scene.take(70, "timeout", deadline_ms=decided, decided_at_ms=decided)
    assert scene.rules == rules


def test_h3_sees_a_run_that_ended_without_what_was_delivered():
    scene = Scene().run().deliver(10, 12, "a", "1", "delivered").arrival(1, "a", "1", at_ms=11)
    assert scene.rules == ["H3"]
    assert scene.entry(1, "wait", NAME, "timeout").take(9, "timeout", deadline_ms=5).rules == ["H3"]


def test_h3_sees_a_message_vanish_before_its_ack():
    scene = Scene().run("cancelled").head("c", 1)
    scene.deliver(1, 2, "k", "1", "buffered", kind="channel", name="c", number=2)
    assert scene.rules == ["H3"]


def test_h3_sees_an_outcome_that_the_store_does_not_keep():
    assert Scene().run().deliver(1, None, "a", "1", None).take(5, "payload", "1").rules == ["H3"]


# H4, one acceptance per key and latch


def test_h4_without_a_key_an_equal_event_is_the_same_one():
    """SPEC 4.4."""
    scene = settled().take(5, "payload", "1")
    scene.rows = [row for row in scene.rows if getattr(row, "key", "") != "a"]
    scene.lines = [line for line in scene.lines if line.process == "body"]
    scene.deliver(1, 3, None, "1", "delivered", number=1).arrival(1, None, "1", at_ms=2)
    scene.deliver(4, 6, None, "1", "duplicate", retained="1")
    scene.deliver(4, 6, None, "1", "already_settled", retained="1", actor="ann")
    assert scene.rules == []


def test_h4_a_buffered_winner_may_go_unread_at_the_end():
    """SPEC 4.3, 4.16: its type was checked at the door, so it had settled the name."""
    scene = Scene().run().deliver(1, 2, "a", "1", "buffered").arrival(1, "a", "1", "stale")
    assert scene.deliver(5, 6, "b", "2", "already_settled", retained="1").rules == []


def test_h4_what_did_not_fit_leaves_the_latch_to_another():
    """SPEC 4.3: the first that fits."""
    scene = Scene().run().deliver(1, 2, "a", "x", "buffered").arrival(1, "a", "x", "invalid")
    scene.deliver(5, 6, "b", "2", "delivered").arrival(2, "b", "2").take(9, "payload", "2")
    assert scene.rules == []


def test_h4_judges_without_the_dump():
    scene = Scene(dumped=False).deliver(1, 2, "a", "1", "delivered").take(9, "payload", "1")
    assert scene.deliver(5, 6, "b", "2", "already_settled", retained="1").rules == []
    assert scene.deliver(7, 8, "b", "2", "already_settled", retained="2").rules == ["H4"]


def test_h4_votes_are_counted_until_one_decides():
    """SPEC 7.2."""
    scene = Scene().run().deliver(1, 2, "ann", "y", "counted", kind="vote")
    scene.deliver(3, 4, "bo", "y", "delivered", kind="vote").deliver(3, 4, "ann", "y", "duplicate", kind="vote")
    scene.arrival(1, "ann", "y").arrival(2, "bo", "y").take(9, "payload", "tally")
    assert scene.rules == []


@pytest.mark.parametrize("second", ["delivered", "buffered"])
def test_h4_sees_a_key_accepted_twice(second: str):
    scene = Scene(dumped=False).deliver(1, 3, "a", "1", "delivered").deliver(2, 4, "a", "1", second)
    assert scene.take(9, "payload", "1").rules == ["H4"]


def test_h4_sees_two_keys_accepted():
    scene = Scene(dumped=False).deliver(1, 3, "a", "1", "delivered").deliver(2, 4, "b", "1", "delivered")
    assert scene.take(9, "payload", "1").rules == ["H4"]


def test_h4_sees_one_delivered_past_another_that_is_buffered():
    scene = Scene().run().deliver(1, 9, "a", "1", "buffered").arrival(1, "a", "1", "buffered")
    scene.deliver(1, 9, "b", "1", "delivered").arrival(2, "b", "1").take(9, "payload", "1")
    assert scene.rules == ["H4"]


def test_h4_sees_two_winners_in_the_store():
    scene = settled().take(5, "payload", "1").deliver(1, None, "b", "2", None).arrival(2, "b", "2")
    assert scene.rules == ["H4"]


@pytest.mark.parametrize(
    ("key", "payload", "status", "retained"),
    [
        ("a", "2", "duplicate", "2"),
        ("a", "1", "conflict", "1"),
        ("a", "2", "conflict", "2"),
        ("a", "1", "duplicate", "2"),
        ("a", "1", "stale", None),
        ("a", "1", "already_settled", "1"),
        ("b", "1", "duplicate", "1"),
        ("b", "2", "already_settled", "2"),
        ("b", "1", "counted", None),
    ],
)
def test_h4_sees_a_later_delivery_told_an_untruth(key: str, payload: str, status: str, retained: str | None):
    scene = settled().take(5, "payload", "1").deliver(8, 9, key, payload, status, retained=retained)
    if status == "counted":
        scene.arrival(2, key, payload, "buffered")
    assert scene.rules == ["H4"]


def test_h4_sees_a_repetition_before_the_first():
    scene = settled().take(7, "payload", "1").deliver(-5, -3, "a", "1", "duplicate", retained="1")
    assert "H4" in scene.rules


# H5, unknown, but one thing for all


def test_h5_a_retry_tells_what_became_of_the_unknown_one():
    """SPEC 4.2: both ends are right, as long as all later answers agree."""
    happened = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(1, None, "a", "1", None)
    happened.deliver(5, 6, "a", "1", "duplicate", retained="1").deliver(7, 8, "a", "2", "conflict", retained="1")
    happened.arrival(1, "a", "1", "buffered")
    assert happened.rules == []
    did_not = settled().take(9, "payload", "1").deliver(0, None, "a", "1", None)
    assert did_not.rules == []


def test_h5_the_unknown_one_may_come_very_late():
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(1, None, "a", "1", None)
    scene.deliver(2, 3, "a", "1", "not_waiting").deliver(5, 6, "a", "1", "duplicate")
    assert scene.arrival(1, "a", "1", "buffered").rules == []


def test_h5_sees_a_retry_that_contradicts_another():
    scene = Scene(dumped=False).deliver(1, None, "a", "1", None)
    scene.deliver(5, 6, "a", "1", "duplicate").deliver(8, 9, "a", "1", "not_waiting")
    assert scene.rules == ["H5"]


def test_h5_sees_both_a_duplicate_and_a_conflict_of_one_payload():
    scene = Scene(dumped=False).deliver(1, None, "a", "1", None)
    scene.deliver(5, 6, "a", "1", "duplicate").deliver(8, 9, "a", "1", "conflict")
    assert scene.rules == ["H5"]


def test_h5_sees_a_repetition_of_what_was_sent_later():
    scene = Scene(dumped=False).deliver(1, 2, "a", "1", "duplicate").deliver(5, None, "a", "1", None)
    assert scene.rules == ["H5"]


def test_h5_sees_a_retry_accepted_after_another_was_called_a_repetition():
    scene = settled().take(9, "payload", "1").deliver(-9, None, "a", "1", None)
    scene.deliver(-5, -3, "a", "1", "duplicate", retained="1")
    report = scene.report()
    assert "H5" in scene.rules
    assert report.of("applied twice") == 1


def test_h5_sees_a_repetition_of_what_is_not_kept():
    scene = Scene().run().deliver(1, None, "a", "1", None).deliver(5, 6, "a", "1", "duplicate")
    assert scene.rules == ["H5"]


# H6, order in real time


def test_h6_overlapping_deliveries_may_win_in_any_order():
    scene = settled().take(8, "payload", "1").deliver(0, 2, "b", "2", "invalid")
    scene.deliver(2, 9, "c", "2", "not_waiting").deliver(0, 2, "d", "2", "already_settled", retained="1")
    assert scene.rules == []


def test_h6_others_may_not_be_waited_for_while_one_is_buffered():
    """SPEC 4.3: without a type on file nothing is settled yet, and require_wait= asks for an open wait."""
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(1, 2, "a", "1", "buffered")
    scene.arrival(1, "a", "1", "buffered").deliver(5, 6, "b", "2", "not_waiting")
    assert scene.rules == []


@pytest.mark.parametrize("status", ["invalid", "not_waiting"])
def test_h6_sees_an_open_latch_after_it_was_settled(status: str):
    assert settled().take(5, "payload", "1").deliver(8, 9, "b", "2", status).rules == ["H6"]


def test_h6_sees_an_answer_that_knows_the_future():
    scene = settled().take(8, "payload", "1").deliver(-5, -3, "b", "2", "already_settled", retained="1")
    assert scene.rules == ["H6"]


def test_h6_sees_the_winner_foretold_though_an_earlier_try_of_it_is_unknown():
    """The retry was accepted, so the first try did nothing."""
    scene = settled().take(8, "payload", "1").deliver(-9, None, "a", "1", None)
    assert scene.deliver(-5, -3, "b", "2", "already_settled", retained="1").rules == ["H6"]


def test_h6_sees_an_outcome_before_its_delivery():
    assert settled().take(0, "payload", "1").rules == ["H6"]


def test_h6_sees_a_later_delivery_win():
    scene = Scene().run().deliver(1, 2, "a", "1", "buffered").deliver(5, 6, "b", "2", "buffered")
    scene.arrival(1, "a", "1", "already_settled").arrival(2, "b", "2").take(9, "payload", "2")
    assert scene.rules == ["H6"]


def test_h6_sees_the_first_that_fitted_passed_over():
    """SPEC 4.3: by the numbers of the store, where the deliveries overlap."""
    scene = Scene().run().deliver(1, 9, "a", "1", "buffered").deliver(1, 9, "b", "2", "buffered")
    scene.arrival(1, "a", "1", "already_settled").arrival(2, "b", "2").take(9, "payload", "2")
    assert scene.rules == ["H6"]


def test_h6_sees_a_later_delivery_win_without_the_dump():
    scene = Scene(dumped=False).deliver(1, 2, "a", "1", "buffered").deliver(5, None, "b", "2", None)
    assert scene.take(9, "payload", "2").rules == ["H6"]


def test_h6_sees_an_unknown_winner_deny_itself():
    """Somebody was told that it is settled; the winner's own key is not free after that."""
    scene = Scene().run("waiting", due_ms=1).wait("timer", "t").deliver(1, None, "a", "1", None)
    scene.arrival(1, "a", "1", "buffered").deliver(2, 4, "b", "2", "already_settled", retained="1")
    assert scene.rules == []
    assert scene.deliver(6, 8, "a", "1", "not_waiting").rules == ["H6"]


# H7, a timeout at its deadline


def test_h7_a_timeout_at_its_deadline():
    """SPEC 4.7, 4.8."""
    scene = Scene().run().entry(1, "wait", NAME, "timeout").deliver(9, 10, "a", "1", "stale", reason="timeout")
    scene.take(9, "timeout", deadline_ms=5, decided_at_ms=5).take(99, "timeout", deadline_ms=5, decided_at_ms=5)
    assert scene.rules == []


@pytest.mark.parametrize("deadline", [None, 6])
def test_h7_sees_a_timeout_before_its_deadline(deadline: int | None):
    assert Scene().run().take(9, "timeout", deadline_ms=deadline, decided_at_ms=5).rules == ["H7"]


def test_h7_sees_a_payload_past_the_deadline():
    assert settled().take(9, "payload", "1", deadline_ms=2, decided_at_ms=2).rules == ["H7"]
    assert settled().take(9, "payload", "1", deadline_ms=3, decided_at_ms=2).rules == []


def test_h7_sees_a_deadline_move():
    """SPEC 4.7: absolute, and journaled at first encounter."""
    scene = settled().take(5, "payload", "1", deadline_ms=50).take(9, "payload", "1", deadline_ms=51)
    assert scene.rules == ["H7"]


def test_h7_sees_the_deadline_of_an_open_wait_move():
    scene = Scene().run("waiting", due_ms=99_999).wait(deadline_ms=99_999).take(5, "timeout", deadline_ms=5)
    assert scene.rules == ["H7"]


def test_h7_sees_somebody_told_of_a_timeout_that_never_was():
    scene = settled().take(5, "payload", "1").deliver(8, 9, "b", "2", "stale", reason="timeout")
    assert scene.rules == ["H7"]


# What the report says


def test_the_report_names_the_rule_the_harm_and_the_lines():
    scene = settled().take(5, "payload", "1").deliver(8, 9, "b", "2", "invalid")
    report = scene.report()
    (violation,) = report.violations
    assert (violation.rule, violation.run, violation.name, violation.harm) == ("H6", RUN, NAME, "wrong")
    assert any("key=b payload=2" in line for line in violation.evidence)
    assert str(violation).startswith("H6 wrong: r/paid: refused as if open")
    assert report.summary() == "0 lost, 0 applied twice, 0 stuck, 1 wrong (H6)"
    assert not report.ok


def test_the_report_shows_no_more_than_one_can_read():
    scene = Scene(dumped=False)
    for n in range(50):
        scene.deliver(n, n, "a", "1", "buffered")
    (violation,) = scene.report().violations
    assert len(violation.evidence) == 21
    assert violation.evidence[-1] == "and 30 more"


def test_the_report_counts_what_there_was_to_break():
    counts = settled().take(5, "payload", "1").deliver(8, None, "b", "2", None).report().counts
    assert (counts["deliveries"], counts["delivered"], counts["unknown"]) == (2, 1, 1)
    assert (counts["outcome payload"], counts["outcome timeout"], counts["runs"]) == (1, 0, 1)


def test_equal_payloads_have_equal_fingerprints():
    """SPEC 13: two payloads are equal if their canonical JSON is."""
    assert fingerprint(b'{"b": 1, "a": [1.0]}') == fingerprint('{"a":[1.0],"b":1}') == '{"a":[1.0],"b":1}'
    assert fingerprint("1") != fingerprint("1.0")
    long = '{"text": "' + "x" * 100 + '"}'
    assert fingerprint(long) == fingerprint(long.replace(" ", ""))
    assert fingerprint(long) != fingerprint(long.replace("x", "y"))
    assert len(fingerprint(long)) < 50

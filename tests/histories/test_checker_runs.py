"""The rules H8 to H12, each with histories that keep it and histories that break it and nothing else: effects,
liveness, channels, the journal and the rows of a run.
"""

from dataclasses import replace

import pytest

from tarry.testing.history import (
    Acked,
    Done,
    Effect,
    Ended,
    Final,
    Healed,
    Pass,
    Received,
    RunRow,
    WaitRow,
    invariants,
)
from tests.histories.scene import RUN, Scene, settled

# H8, effects


def step(ms: int, epoch: int, **more: object) -> tuple[int, Effect]:
    fields = {"key": "r/ship", "pid": epoch, **more}
    return ms, Effect(RUN, "ship", epoch=epoch, **fields)  # type: ignore[arg-type]


def done(scene: Scene, ms: int, epoch: int) -> Scene:
    return scene.at(ms, Done(RUN, "ship", "r/ship", epoch=epoch))


def test_h8_a_crash_before_the_record_repeats_the_step():
    """SPEC 3.5: another claim, the same key; and attempts within one claim."""
    scene = Scene().run(epoch=2).entry(1, "step", "ship").at(*step(1, 1)).at(*step(5, 2))
    scene.at(*step(6, 2, attempt=2))
    assert done(scene, 7, 2).rules == []


def test_h8_the_world_refuses_a_stale_token():
    """SPEC 11.3: a zombie acts after its lease; its token is lower than one already seen."""
    scene = Scene().run(epoch=2).entry(1, "step", "ship", digest="d").at(*step(5, 2))
    done(scene, 6, 2).at(8, Pass(RUN, "p", "w", 2, ((1, "d"),))).at(*step(9, 1))
    assert scene.rules == []
    assert scene.report().counts["fenced"] == 1


def test_h8_only_a_step_that_succeeded_must_have_been_done():
    """SPEC 3.7: a failure is on record too; and a name belongs to its kind."""
    failed = Scene().run(epoch=1).entry(1, "step", "ship", "failed").at(*step(1, 1))
    assert failed.rules == []
    assert Scene().run(epoch=1).entry(1, "now", "ship").at(*step(1, 1)).rules == []


def test_h8_a_step_that_does_not_write_to_the_ledger_is_not_missed():
    assert Scene().run().entry(1, "step", "other").rules == []


def test_h8_sees_a_step_done_twice_in_one_claim():
    scene = Scene().run(epoch=1).entry(1, "step", "ship").at(*step(1, 1)).at(*step(2, 1))
    assert done(scene, 3, 1).rules == ["H8"]


@pytest.mark.parametrize("epoch", [2, 3])
def test_h8_sees_a_step_done_after_it_was_on_record(epoch: int):
    scene = Scene().run(epoch=3).entry(1, "step", "ship", digest="d").at(*step(1, 1))
    done(scene, 2, 1).at(5, Pass(RUN, "p", "w", 2, ((1, "d"),))).at(*step(6, epoch))
    report = scene.report()
    assert scene.rules == ["H8"]
    assert report.summary() == "0 lost, 1 applied twice, 0 stuck"


def test_h8_sees_an_at_most_once_step_repeated():
    """SPEC 3.5: AT_MOST_ONCE is not repeated by another claim."""
    scene = Scene().run(epoch=2).at(*step(1, 1, once=True)).at(*step(5, 2, once=True))
    assert scene.rules == ["H8"]


def test_h8_sees_a_step_on_record_that_was_never_done():
    scene = Scene().run(epoch=1).entry(1, "step", "ship").at(*step(1, 1))
    assert scene.rules == ["H8"]


def test_h8_sees_the_key_change():
    """SPEC 3.5: the same text at every attempt."""
    assert Scene().run(epoch=2).at(*step(1, 1)).at(*step(5, 2, key="other")).rules == ["H8"]


def test_h8_sees_two_steps_share_a_key():
    scene = Scene().run(epoch=1).at(*step(1, 1)).at(5, Effect(RUN, "bill", "r/ship", epoch=1, pid=1))
    assert scene.rules == ["H8"]


def test_h8_sees_two_owners_of_one_token():
    """SPEC 11.3: each claim raises the epoch."""
    passes = Scene().run(epoch=1).at(1, Pass(RUN, "p", "w1", 1)).at(5, Pass(RUN, "q", "w2", 1))
    assert passes.rules == ["H8"]
    assert Scene().run(epoch=1).at(*step(1, 1)).at(*step(5, 1, pid=77, attempt=2)).rules == ["H8"]


def test_h8_sees_an_entry_written_under_an_old_token():
    scene = Scene().run(epoch=2).entry(1, "now", "a", epoch=2).entry(2, "now", "b", epoch=1)
    assert scene.rules == ["H8"]


# H9, after the faults, in time; the bound of these scenes is 12 s


def test_h9_a_resume_within_the_bound():
    scene = settled().take(11_900, "payload", "1")
    assert scene.rules == []


def test_h9_faults_delay_the_bound():
    """SPEC 11.4: after the faults the lease has to run out first."""
    scene = settled().at(40_000, Healed()).take(51_000, "payload", "1")
    assert scene.rules == []


@pytest.mark.parametrize("status", ["blocked", "cancelled"])
def test_h9_a_run_that_stopped_in_sight_is_not_stuck(status: str):
    scene = Scene().run(status).deliver(1, 3, "a", "1", "delivered").arrival(1, "a", "1", at_ms=2)
    assert scene.rules == []


def test_h9_what_came_shortly_before_the_end_is_undecided():
    scene = Scene().run("running", worker="w").deliver(1, 3, "a", "1", "delivered").arrival(1, "a", "1", at_ms=2)
    scene.end = 10_000
    assert scene.rules == []
    assert scene.report().counts["undecided"] == 1
    assert scene.report().counts["quiet_s"] == 9


def test_h9_what_is_told_of_the_end_is_enough():
    scene = Scene(dumped=False).deliver(1, 3, "a", "1", "delivered").at(50_000, Ended(RUN, "failed"))
    assert scene.rules == []


def test_h9_what_does_not_fit_or_just_came_wakes_nobody():
    scene = Scene().run("waiting", changed_ms=5).wait().deliver(1, 3, "a", "1", "buffered")
    scene.arrival(1, "a", "1", "invalid", at_ms=2)
    scene.deliver(99_000, 99_001, "b", "1", "buffered").arrival(2, "b", "1", "buffered", at_ms=99_000)
    assert scene.rules == []
    assert scene.report().counts["undecided"] == 0


@pytest.mark.parametrize(("at", "late"), [(11_900, None), (14_003, "2.000 s too late"), (None, "never")])
def test_h9_each_message_that_wakes_a_reader_is_received_in_time(at: int | None, late: str | None):
    scene = Scene().run("running", worker="w")
    for n in (1, 2):
        scene.deliver(1, 3, f"k{n}", str(n), "delivered", kind="channel", name="c", number=n)
        scene.arrival(n, f"k{n}", str(n), "buffered", kind="channel", name="c")
    scene.at(5, Received(RUN, "c", "k1", 1))
    if at:
        scene.at(at, Received(RUN, "c", "k2", 2))
    assert [v.text.removeprefix("delivered, and taken in ") for v in scene.report().violations] == (
        [late] if late else []
    )


@pytest.mark.parametrize("taken", [None, 13_000])
def test_h9_sees_a_resume_that_is_late_or_never_comes(taken: int | None):
    scene = Scene().run("running", worker="w").deliver(1, 3, "a", "1", "delivered").arrival(1, "a", "1", at_ms=2)
    if taken:
        scene.take(taken, "payload", "1")
    assert scene.rules == ["H9"]
    assert scene.report().summary() == "0 lost, 0 applied twice, 1 stuck"


def test_h9_sees_a_lost_wake_up():
    """SPEC 4.2: no lost wake-up, in either order."""
    scene = Scene().run("waiting", changed_ms=5).wait().deliver(1, 3, "a", "1", "buffered")
    assert scene.arrival(1, "a", "1", "buffered", at_ms=2).rules == ["H9"]


def test_h9_sees_a_settled_wait_that_nobody_takes_in():
    scene = Scene().run("waiting", changed_ms=5).wait(outcome="timeout")
    assert scene.rules == ["H9"]


def test_h9_sees_a_timer_that_does_not_fire():
    """SPEC 6.1: overdue, it fires at once."""
    assert Scene().run("waiting", due_ms=50).wait("timer", "t", deadline_ms=50).rules == ["H9"]
    assert Scene().run("waiting", due_ms=99_000).wait("timer", "t", deadline_ms=99_000).rules == []


def test_h9_sees_a_ready_run_that_nobody_claims():
    """SPEC 11.1."""
    assert Scene().run("ready", changed_ms=5).rules == ["H9"]
    assert Scene().run("ready", changed_ms=5, due_ms=99_999).rules == []


def test_h9_judges_nobody_while_there_are_faults():
    assert Scene().run("ready", changed_ms=5).at(95_000, Healed()).rules == []


def test_h9_sees_a_message_that_is_not_read():
    scene = Scene().run("waiting", changed_ms=5).wait("channel", "c").head("c", 1)
    for n in (1, 2):
        scene.deliver(n, n, f"k{n}", "1", "buffered", kind="channel", name="c", number=n)
        scene.arrival(n, f"k{n}", "1", "buffered", kind="channel", name="c", at_ms=n)
    assert scene.rules == ["H9"]
    assert scene.head("c", 2).rules == []


# H10, channels


def channel(*passes: tuple[int, ...], acked: int = 0, fold: bool = False) -> Scene:
    """Messages 1 to 3 of a channel, and what each pass received of them."""
    scene = Scene().run("cancelled").head("c", acked)
    for n in (1, 2, 3):
        scene.deliver(n * 10, n * 10 + 1, f"k{n}", str(n), "buffered", kind="channel", name="c", number=n)
        scene.arrival(n, f"k{n}", str(n), "buffered", kind="channel", name="c")
    for at, numbers in enumerate(passes):
        for n in numbers:
            message = Received(RUN, "c", f"k{n}", n, payload=str(n), pass_id=f"p{at}", fold=fold)
            scene.at(100 * (at + 1) + n, message)
    return scene


def acks(scene: Scene, *numbers: int) -> Scene:
    for n in numbers:
        scene.at(150, Acked(RUN, "c", f"k{n}", n, "p0"))
    return scene


def test_h10_passes_read_from_the_beginning():
    """SPEC 5.2."""
    assert channel((1, 2), (1, 2, 3)).rules == []


def test_h10_a_fold_begins_behind_what_is_acked():
    """SPEC 5.3."""
    scene = acks(channel((1, 2), (2, 3), acked=1, fold=True), 1)
    assert scene.at(190, Pass(RUN, "p1", "w", 1, heads=(("c", 1),))).run("cancelled", epoch=1).rules == []


def test_h10_an_ack_that_was_said_may_not_have_become_durable():
    """SPEC 5.3: ack and state commit with the run's next write; a crash before it hands the message out again."""
    assert acks(channel((1, 2), (2, 3), acked=1), 1, 2).rules == []


def test_h10_what_a_pass_read_as_acked_is_enough():
    """The body was killed before it said that it had acked."""
    scene = channel((1,), (2, 3), acked=1, fold=True)
    assert scene.at(190, Pass(RUN, "p1", "w", 1, heads=(("c", 1),))).run("cancelled", epoch=1).rules == []


def test_h10_a_plain_loop_reads_again_what_is_acked():
    """SPEC 5.2: acks on file are no-ops."""
    scene = acks(channel((1, 2), (1, 2), acked=2), 1, 2).run("cancelled", epoch=1)
    assert scene.at(190, Pass(RUN, "p1", "w", 1, heads=(("c", 2),))).rules == []


def test_h10_a_message_that_did_not_fit_leaves_no_gap():
    """SPEC 4.6."""
    scene = channel((1, 3))
    scene.rows = [replace(row, status="invalid") if getattr(row, "no", 0) == 2 else row for row in scene.rows]
    assert scene.rules == []


def test_h10_numbers_are_known_from_receipts_alone():
    scene = Scene(dumped=False).at(50, Received(RUN, "c", "k1", 1)).at(51, Received(RUN, "c", "k3", 3))
    for n in (1, 3, 2):
        scene.deliver(n, 9, f"k{n}", "1", "buffered", kind="channel", name="c", number=n)
    assert [violation.harm for violation in scene.report().violations] == ["lost"]
    scene = Scene(dumped=False)
    for n in (2, 1):
        scene.deliver(10 - n, 10 - n, f"k{n}", "1", "buffered", kind="channel", name="c", number=n)
    assert scene.rules == ["H10"]


def test_h10_numbers_are_known_from_the_store_alone():
    scene = Scene().run("cancelled")
    for n in (2, 1):
        scene.deliver(10 - n, 10 - n, f"k{n}", "1", "buffered", kind="channel", name="c")
        scene.arrival(n, f"k{n}", "1", "buffered", kind="channel", name="c")
    assert scene.rules == ["H10"]


def test_h10_deliveries_are_deduplicated():
    """SPEC 5.1."""
    scene = channel().deliver(40, 41, "k1", "1", "duplicate", kind="channel", name="c", retained="1")
    assert scene.deliver(40, 41, "k1", "9", "conflict", kind="channel", name="c", retained="1").rules == []


def test_h10_a_message_that_was_used_up_may_go():
    scene = channel((1, 2, 3), acked=3)
    scene.rows = [row for row in scene.rows if getattr(row, "no", 0) != 1]
    assert scene.rules == []


@pytest.mark.parametrize(
    ("passes", "harm"),
    [([(1, 3)], "lost"), ([(2, 3)], "lost"), ([(1, 2, 3), (3,)], "lost"), ([(1, 1)], "applied twice")],
)
def test_h10_sees_gaps_and_repetitions(passes: list[tuple[int, ...]], harm: str):
    """SPEC 5.5: delivery order is commit order."""
    violations = channel(*passes).report().violations
    assert {(violation.rule, violation.harm) for violation in violations} == {("H10", harm)}


def test_h10_sees_messages_out_of_order():
    scene = channel((1,)).at(150, Received(RUN, "c", "k3", 3, pass_id="p1"))
    scene.at(160, Received(RUN, "c", "k2", 2, pass_id="p1"))
    assert scene.rules == ["H10"]


@pytest.mark.parametrize("fold", [True, False])
def test_h10_sees_a_message_again_after_its_ack(fold: bool):
    scene = acks(channel((1, 2), (1, 2) if fold else (2, 3), acked=2, fold=fold), 1, 2)
    scene.at(190, Pass(RUN, "p1", "w", 1, heads=(("c", 2),))).run("cancelled", epoch=1)
    assert [v.harm for v in scene.report().violations] == ["applied twice"]
    assert scene.rules == ["H10"]


def test_h10_sees_a_key_with_two_numbers():
    assert channel((1,)).at(500, Received(RUN, "c", "k1", 2, pass_id="p0")).rules == ["H10"]


def test_h10_sees_commits_out_of_real_time():
    scene = channel().deliver(50, 51, "k0", "9", "buffered", kind="channel", name="c", number=0)
    assert scene.arrival(0, "k0", "9", "buffered", kind="channel", name="c").rules == ["H10"]


def test_h10_sees_a_key_accepted_twice():
    scene = channel().deliver(25, 26, "k2", "2", "buffered", kind="channel", name="c", number=2)
    assert scene.rules == ["H10"]


@pytest.mark.parametrize("head", [0, 1])
def test_h10_sees_an_ack_fall_back(head: int):
    scene = channel(acked=head).run("cancelled", epoch=2).at(190, Pass(RUN, "p1", "w", 1, heads=(("c", 1),)))
    assert scene.rules == (["H10"] if head == 0 else [])
    assert scene.at(195, Pass(RUN, "p2", "w", 2, heads=(("c", 0),))).rules == ["H10"]


def test_h10_sees_an_ack_lost_at_the_end():
    assert acks(channel((1, 2), acked=1), 1, 2).run("succeeded").rules == ["H10"]
    assert acks(channel((1, 2), acked=2), 1, 2).run("succeeded").rules == []


# H11, every pass reads the same journal


def journal(scene: Scene, *digests: str) -> Scene:
    for no, digest in enumerate(digests, 1):
        scene.entry(no, "now", f"n{no}", digest=digest)
    return scene.run("cancelled", epoch=9)


def begin(epoch: int, **read: str) -> Pass:
    return Pass(RUN, f"p{epoch}", f"w{epoch}", epoch, tuple((int(no[1:]), text) for no, text in read.items()))


def test_h11_each_pass_reads_on():
    """SPEC 3.2."""
    scene = journal(Scene(), "a", "b", "c").at(1, begin(1)).at(2, begin(2, n1="a"))
    assert scene.at(3, begin(3, n1="a", n2="b")).rules == []


def test_h11_a_zombie_reads_what_there_was():
    """SPEC 11.3: passes are in the order of their claims, not of their lines."""
    scene = journal(Scene(), "a", "b").at(1, begin(2, n1="a", n2="b")).at(5, begin(1, n1="a"))
    assert scene.rules == []


def test_h11_the_rounds_of_a_fold_are_dropped():
    """SPEC 5.3."""
    scene = Scene().entry(3, "fold", "c", digest="f").run("cancelled", epoch=9)
    scene.at(1, begin(1, n1="a", n2="b")).at(2, begin(2, n3="f"))
    assert scene.rules == []


@pytest.mark.parametrize("second", [{"n1": "x"}, {"n1": "a"}, {"n2": "b"}, {"n1": "a", "n3": "c"}])
def test_h11_sees_another_journal(second: dict[str, str]):
    scene = journal(Scene(), "a", "b", "c").at(1, begin(1, n1="a", n2="b")).at(2, begin(2, **second))
    assert scene.rules == ["H11"]


def test_h11_sees_two_passes_differ_without_the_dump():
    scene = Scene(dumped=False).at(1, begin(1, n1="a")).at(2, begin(2, n1="x"))
    assert [violation.harm for violation in scene.report().violations] == ["applied twice"]
    assert scene.rules == ["H11"]


def test_h11_sees_entries_vanish():
    assert journal(Scene(), "a").at(1, begin(1, n1="a", n2="b")).rules == ["H11"]


# H12, a run's row, its waits and its owner


def test_h12_every_status_has_a_right_form():
    """SPEC 1."""
    for status, worker, waits in [
        ("ready", None, 0),
        ("running", "w", 0),
        ("running", "w", 1),
        ("waiting", None, 1),
        ("blocked", None, 1),
        ("succeeded", None, 0),
    ]:
        rows = (WaitRow("x", "signal", "s", deadline_ms=7),) * waits
        final = Final(runs=(RunRow("x", status, worker=worker, due_ms=7),), waits=rows)
        assert invariants(final) == (), status


@pytest.mark.parametrize(
    ("row", "waits"),
    [
        (RunRow("x", "running"), 0),
        (RunRow("x", "waiting", worker="w", due_ms=7), 1),
        (RunRow("x", "waiting"), 0),
        (RunRow("x", "waiting", due_ms=8), 1),
        (RunRow("x", "waiting"), 1),
        (RunRow("x", "succeeded"), 1),
        (RunRow("x", "ready", worker="w"), 0),
        (RunRow("other", "ready"), 1),
    ],
)
def test_h12_sees_a_run_whose_rows_disagree(row: RunRow, waits: int):
    final = Final(runs=(row,), waits=(WaitRow("x", "signal", "s", deadline_ms=7),) * waits)
    assert {violation.rule for violation in invariants(final)} == {"H12"}


def test_h12_sees_an_epoch_from_the_future():
    """SPEC 11.3: after a failover a token is not issued again."""
    assert Scene().run("ready", epoch=1, due_ms=99_999).at(1, begin(2)).rules == ["H12"]


@pytest.mark.parametrize(("status", "result"), [("failed", "1"), ("succeeded", "2")])
def test_h12_sees_a_run_that_ends_in_two_ways(status: str, result: str):
    scene = Scene().run(result="1").at(1, Ended(RUN, "succeeded", "1"))
    assert scene.rules == []
    assert scene.at(2, Ended(RUN, status, result)).rules == ["H12"]
    assert Scene().run(result="1").at(2, Ended(RUN, status, result)).rules == ["H12"]

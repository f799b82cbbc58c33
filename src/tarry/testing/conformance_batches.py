"""What a store does with a batch: what was committed is there, what was not is not, and each command fails alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tarry.core.codec import digest
from tarry.core.commands import (
    Ack,
    Advance,
    Block,
    Cancel,
    Claim,
    Close,
    CloseChannel,
    Command,
    Finish,
    Park,
    Reap,
    Refuse,
    Release,
    Resolve,
    Retry,
    Want,
)
from tarry.core.view import Needs
from tarry.errors import LeaseLost, RunNotFound
from tarry.model import (
    ArrivalKind,
    ArrivalStatus,
    Blocked,
    FieldError,
    KeyId,
    NameId,
    Outcome,
    ReceiptStatus,
    Status,
    WaitKind,
)
from tarry.store.batch import Batch
from tarry.store.sweeps import ClaimDue
from tarry.testing.conformance_driver import Driver, message, opens, place, record, signal, start, visible, wait

WRONG = (FieldError("$", "it must be even"),)
INT = b'{"type":"integer"}'


class Broken(Exception):
    """Something that is no refusal: the whole transaction has to go."""


def _running(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait()), record(1, "a"))
    driver.batch(message(key="m1"), message(key="m2"), signal("early"))


def _blocked(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", record(1, "pay", None, outcome=Outcome.UNKNOWN), end=Block(Blocked.UNKNOWN_OUTCOME, "lost"))


def _turn(driver: Driver) -> Advance:
    """A turn with a part of each kind."""
    refused = Refuse(3, KeyId(ArrivalKind.SIGNAL, "early", "k1"), WRONG)
    opened = opens(wait("late"), timeout_ms=500)
    parts = (opened, record(2, "b"), Ack("ev", 1, 1, b'{"n":1}'), Close((wait().id,)), refused)
    return driver.advance("r", *parts, wants=[Want("ev", 1)])


Prepare = Callable[[Driver], Any]

COMMANDS: dict[str, tuple[Prepare, Callable[[Driver], Command]]] = {
    "start": (_running, lambda driver: start("other", tags=(("tag", "value"),))),
    "signal": (_running, lambda driver: signal()),
    "early signal": (_running, lambda driver: signal("other")),
    "message": (_running, lambda driver: message()),
    "close channel": (_running, lambda driver: CloseChannel("r", "ev")),
    "cancel": (_running, lambda driver: Cancel("r", "ann")),
    "cancel by force": (_running, lambda driver: Cancel("r", "ann", force=True)),
    "turn": (_running, _turn),
    "park": (_running, lambda driver: driver.advance("r", end=Park())),
    "finish": (_running, lambda driver: driver.advance("r", end=Finish(Status.SUCCEEDED, b"1"))),
    "block": (_running, lambda driver: driver.advance("r", end=Block(Blocked.DEADLOCK, "stuck"))),
    "release": (_running, lambda driver: driver.advance("r", end=Release(7, again=True, culprit=1))),
    "reap": (_running, lambda driver: Reap("r", "w1")),
    "claim": (lambda driver: driver.do(start()), lambda driver: Claim("r", "w1")),
    "retry": (_blocked, lambda driver: Retry("r", "ann")),
    "resolve": (_blocked, lambda driver: Resolve("r", "pay", 1, Outcome.OK, b"1", "ann")),
}


def _break_off(driver: Driver, batch: Batch) -> None:
    tx = driver.store.begin()
    assert tx is not None
    with tx:
        batch.run(tx)
        raise Broken


class BatchConformance:
    """Each command, each part of a turn, each row: saved, seen by the next, rolled back, and no neighbour's fault."""

    @pytest.mark.parametrize("name", COMMANDS)
    def test_a_command_does_the_same_beside_refused_neighbours(self, driver: Driver, twin: Driver, name: str) -> None:
        """Alone in one store and between two that are refused in the other: it comes to the same."""
        prepare, command = COMMANDS[name]
        for each in (driver, twin):
            prepare(each)
        stray, late = signal(run_id="nobody"), Advance("r", "w9", 99, (record(9),), Finish(Status.FAILED))
        alone = twin.do(command(twin))
        told = driver.batch(stray, late, command(driver), stray, late)
        assert told[2] == alone
        assert [type(told[at]) for at in (0, 1, 3, 4)] == [RunNotFound, LeaseLost, RunNotFound, LeaseLost]
        assert visible(driver.store, ["r", "other"]) == visible(twin.store, ["r", "other"])

    @pytest.mark.parametrize("name", COMMANDS)
    def test_nothing_is_left_of_a_batch_that_was_not_committed(self, driver: Driver, name: str) -> None:
        prepare, command = COMMANDS[name]
        prepare(driver)
        before = visible(driver.store, ["r", "other"])
        batch = Batch([command(driver), start("other")], {"new": b"{}"})
        with pytest.raises(Broken):
            _break_off(driver, batch)
        assert visible(driver.store, ["r", "other"]) == before
        assert driver.store.document("new") is None
        driver.do(command(driver))
        assert visible(driver.store, ["r", "other"]) != before

    def test_an_entry_whose_number_is_taken_takes_its_batch_with_it(self, driver: Driver) -> None:
        """The second fence: whoever wrote that number owns the run."""
        driver.begin()
        driver.turn("r", record(1, "a"))
        before = visible(driver.store, ["r", "s"])
        with pytest.raises(LeaseLost):
            driver.batch(start("s"), driver.advance("r", record(2, "b"), record(1, "c")))
        assert visible(driver.store, ["r", "s"]) == before
        with pytest.raises(LeaseLost):
            driver.batch(driver.advance("r", record(2, "b")), driver.advance("r", record(2, "b")))
        assert visible(driver.store, ["r", "s"]) == before
        driver.turn("r", record(2, "b"))
        assert [entry.name for entry in driver.entries()] == ["a", "b"]

    def test_an_entry_that_its_own_batch_drops_is_not_there(self, driver: Driver) -> None:
        driver.begin()
        driver.turn("r", record(1, "a", scope="ev:k/"))
        driver.do(message())
        kept, dropped = record(2, "b"), record(3, "c", scope="ev:k/")
        driver.turn("r", kept, dropped, Ack("ev", 1, 1, b"1", "ev:"), record(4, "d", scope="ev:l/"))
        assert [entry.name for entry in driver.entries()] == ["b", "d"]
        driver.turn("r", record(5, "e"), end=Release(culprit=5))
        assert [entry.name for entry in driver.entries()] == ["b", "d"]

    def test_a_latch_is_settled_for_ever(self, driver: Driver) -> None:
        """In later transactions too, with the winner on file and its wait gone."""
        driver.begin()
        driver.turn("r", opens(wait()))
        driver.do(signal())
        driver.turn("r", place(1, wait(), arrival=1))
        late = driver.do(signal(payload=b"2", key="k2"))
        assert (late.status, late.payload, late.number) == (ReceiptStatus.ALREADY_SETTLED, b"1", 1)
        told = driver.turn("r", opens(wait(round=1)))
        assert [(settled.arrival, settled.outcome) for settled in told.waits] == [(1, Outcome.OK)]
        assert told.arrivals[1].payload == b"1"

    def test_a_number_that_was_dropped_may_be_taken_again_in_the_same_batch(self, driver: Driver) -> None:
        driver.begin()
        driver.turn("r", record(1, "a"), end=Finish(Status.FAILED, error=b"{}", culprit=1))
        epoch = driver.run().epoch + 2
        again = Advance("r", "w1", epoch, (record(1, "b"),))
        driver.batch(Retry("r"), Claim("r", "w1"), again)
        assert [entry.name for entry in driver.entries()] == ["b"]

    def test_commands_of_a_batch_see_each_other(self, driver: Driver) -> None:
        told = driver.batch(start(), start(), signal(), signal(), signal(key="k2"), Cancel("r"), signal(key="k3"))
        statuses = [answer.status for answer in told if hasattr(answer, "accepted")]
        assert [told[0].created, told[1].created] == [True, False]
        assert statuses == [
            ReceiptStatus.BUFFERED,
            ReceiptStatus.DUPLICATE,
            ReceiptStatus.BUFFERED,
            ReceiptStatus.STALE,
        ]
        assert (driver.run().status, driver.notes.ended) == (Status.CANCELLED, {"r"})

    def test_a_view_holds_what_its_needs_name_and_nothing_else(self, driver: Driver) -> None:
        driver.begin()
        driver.batch(signal("a"), signal("b"), message("a", key="m1"), message("a", key="m2"))
        name, key = NameId(ArrivalKind.SIGNAL, "a"), KeyId(ArrivalKind.CHANNEL, "a", "m2")
        tx = driver.store.begin()
        assert tx is not None
        with tx:
            wanted = Needs(frozenset({key}), frozenset({name}), (Want("a", 0, 1), Want("a", 4)))
            view = tx.load({"r": wanted, "none": wanted})["r"]
        assert view.run == driver.run()
        assert [arrival.name for arrival in view.live[name]] == ["a"]
        assert (view.slots[name].closed, view.slots[name].acked) == (None, 0)
        found = view.keys[key]
        assert found is not None
        assert found.key == "m2"
        assert [[found.no for found in page] for page in view.pages.values()] == [[3], []]
        with pytest.raises(AssertionError):
            view.live[NameId(ArrivalKind.SIGNAL, "b")]
        with pytest.raises(AssertionError):
            view.keys[KeyId(ArrivalKind.SIGNAL, "a", "k1")]

    def test_a_run_that_is_not_there_is_a_view_without_one(self, driver: Driver) -> None:
        name = NameId(ArrivalKind.SIGNAL, "a")
        tx = driver.store.begin()
        assert tx is not None
        with tx:
            view = tx.load({"none": Needs(names=frozenset({name}))})["none"]
        assert (view.run, view.gone, view.waits, view.live[name]) == (None, False, {}, [])

    def test_documents_are_interned_once(self, driver: Driver, other: Driver) -> None:
        """What is there stays: a digest names one text for ever."""
        key = digest(INT)
        driver.batch(documents={key: INT})
        other.batch(documents={key: b"another", "second": b""})
        assert driver.store.document(key) == INT
        assert driver.store.document("second") == b""
        assert driver.store.document("none") is None
        driver.begin()
        driver.turn("r", opens(wait(schema=key)))
        assert driver.do(signal(payload=b'"no"')).status is ReceiptStatus.INVALID

    def test_a_document_is_there_for_the_batch_that_brings_it(self, driver: Driver) -> None:
        key = digest(INT)
        driver.begin()
        opened = driver.advance("r", opens(wait(schema=key)))
        told = driver.batch(opened, signal(payload=b'"no"'), signal(payload=b"5"), documents={key: INT})
        assert [receipt.status for receipt in told[1:]] == [ReceiptStatus.INVALID, ReceiptStatus.DELIVERED]

    def test_an_end_sweeps_waits_and_what_was_never_read(self, driver: Driver) -> None:
        driver.begin()
        driver.do(start("bystander"))
        driver.batch(signal("bystander's", run_id="bystander"), signal("a"), message(key="read"), message(key="unread"))
        driver.turn("r", opens(wait()), Ack("ev", 2, 1))
        driver.turn("r", end=Finish(Status.SUCCEEDED, b"1"))
        statuses = {arrival.key: arrival.status for arrival in driver.arrivals()}
        assert statuses == {
            "k1": ArrivalStatus.STALE,
            "read": ArrivalStatus.BUFFERED,
            "unread": ArrivalStatus.STALE,
        }
        assert (driver.reasons(), driver.open_waits()) == (["ended", "ended"], {})
        assert [arrival.status for arrival in driver.arrivals("bystander")] == [ArrivalStatus.BUFFERED]
        assert driver.reasons("bystander") == []

    def test_a_withdrawn_key_is_taken_anew(self, driver: Driver) -> None:
        """The old arrival goes; no two of one name share a key."""
        driver.begin()
        driver.turn("r", opens(wait()))
        driver.do(signal(payload=b"3"))
        driver.turn("r", Refuse(1, KeyId(ArrivalKind.SIGNAL, "paid", "k1"), WRONG))
        told = driver.batch(signal(payload=b"3"), signal(payload=b"4"), signal(payload=b"4"))
        assert [receipt.status for receipt in told] == [
            ReceiptStatus.INVALID,
            ReceiptStatus.DELIVERED,
            ReceiptStatus.DUPLICATE,
        ]
        assert [(arrival.no, arrival.payload) for arrival in driver.arrivals()] == [(2, b"4")]
        assert driver.store.arrival("r", ArrivalKind.SIGNAL, "paid", "k1") == driver.arrivals()[0]

    def test_a_wait_reads_back_as_it_was_written(self, driver: Driver) -> None:
        """Every field of it, in every kind of wait; two that differ in one part of their id are two."""
        driver.begin()
        driver.batch(documents={digest(INT): INT})
        waits = [
            wait("n", WaitKind.SIGNAL, schema=digest(INT), early=False, late=True),
            wait("n", WaitKind.SIGNAL, round=1),
            wait("n", WaitKind.SIGNAL, scope="s/"),
            wait("n", WaitKind.CHANNEL, cursor=7, group="g", member=3),
            wait("n", WaitKind.TIMER),
            wait("n", WaitKind.RETRY),
        ]
        driver.turn("r", opens(*waits, timeout_ms=1000))
        found = driver.open_waits()
        assert {each.id for each in waits} == set(found)
        for each in waits:
            again = found[each.id]
            assert (again.schema, again.early, again.late) == (each.schema, each.early, each.late)
            assert (again.cursor, again.group, again.member) == (each.cursor, each.group, each.member)
        driver.turn("r", place(1, waits[1], Outcome.OK))
        assert set(driver.open_waits()) == {each.id for each in waits} - {waits[1].id}

    def test_a_claim_and_a_delivery_of_one_batch(self, driver: Driver) -> None:
        """Sweeps run first: the delivery meets the run as claimed, and its owner is nudged."""
        driver.do(start())
        driver.register()
        told = driver.batch(signal(), ClaimDue("w1", 1, {"job": None}))
        assert told[0].status is ReceiptStatus.BUFFERED
        assert told[1][0].run.epoch == 1
        assert driver.notes.nudges == {("r", "w1")}
        assert driver.run().worker == "w1"

"""Deliveries: every receipt status, in the order of SPEC 4.4, over every state that a run can be in."""

from collections.abc import Callable
from typing import Any

import pytest

from tarry.core.accepts import Declared
from tarry.core.commands import Block, Cancel, Close, Finish, Park, Refuse
from tarry.core.decide import letters
from tarry.errors import ActorRequired, KeyRequired, RunNotFound, UnknownSignal
from tarry.model import (
    ArrivalKind,
    ArrivalStatus,
    Blocked,
    FieldError,
    KeyId,
    Outcome,
    ReceiptStatus,
    Status,
    WaitKind,
)
from tarry.testing.conformance_driver import Driver, message, opens, place, signal, start, wait
from tests.core.desk import DOCUMENTS, INT_ID, TEXT_ID, declare, desk

WRONG = (FieldError("$", "it must be even"),)


def refuse(number: int, name: str = "paid", key: str = "k1", kind: ArrivalKind = ArrivalKind.SIGNAL) -> Refuse:
    return Refuse(number, KeyId(kind, name, key), WRONG)


# --- the states a delivery can meet -------------------------------------------------------------------


def fresh(driver: Driver) -> None:
    driver.do(start())


def running(driver: Driver) -> None:
    driver.begin()


def hearing(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait()))


def waiting(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=1000), end=Park())


def late(driver: Driver) -> None:
    waiting(driver)
    driver.clock.advance(1.0)


def lost(driver: Driver) -> None:
    driver.begin()
    group: dict[str, Any] = {"scope": "g:0/", "group": "g:0/"}
    driver.turn("r", opens(wait(**group), wait("other", member=1, **group)), end=Park())
    driver.do(signal("other"))


def abandoned(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", opens(wait()))
    driver.turn("r", Close((wait().id,)), end=Park())


def settled(driver: Driver) -> None:
    waiting(driver)
    driver.do(signal(payload=b"7", key="winner", actor="ann"))


def taken(driver: Driver) -> None:
    settled(driver)
    driver.claim()
    driver.turn("r", place(1, wait(), arrival=2), end=Park())


def blocked(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", end=Block(Blocked.CHANGED_CODE, "changed"))


def cancelling(driver: Driver) -> None:
    hearing(driver)
    driver.do(Cancel("r"))


def cancelled(driver: Driver) -> None:
    driver.begin()
    driver.do(Cancel("r", force=True))


def expiring(driver: Driver) -> None:
    driver.begin(deadline_ms=driver.clock.now_ms() + 1000)
    driver.clock.advance(1.0)


def expired(driver: Driver) -> None:
    driver.do(start(deadline_ms=driver.clock.now_ms()))
    driver.claim()


def succeeded(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", end=Finish(Status.SUCCEEDED, b"1"))


def failed(driver: Driver) -> None:
    driver.begin()
    driver.turn("r", end=Finish(Status.FAILED, error=b"{}"))


MATRIX: list[tuple[Callable[[Driver], None], str, str | None, str | None]] = [
    # the run is …   a delivery is …       because            and with require_wait
    (fresh, "buffered", None, "not_waiting"),
    (running, "buffered", None, "not_waiting"),
    (hearing, "delivered", None, "delivered"),
    (waiting, "delivered", None, "delivered"),
    (late, "stale", "timeout", "stale"),
    (lost, "stale", "lost_race", "stale"),
    (abandoned, "stale", "abandoned", "stale"),
    (settled, "already_settled", None, "already_settled"),
    (taken, "already_settled", None, "already_settled"),
    (blocked, "buffered", None, "not_waiting"),
    (cancelling, "stale", "cancel", "stale"),
    (cancelled, "stale", "cancel", "stale"),
    (expiring, "stale", "deadline", "stale"),
    (expired, "stale", "deadline", "stale"),
    (succeeded, "stale", "ended", "stale"),
    (failed, "stale", "ended", "stale"),
]


@pytest.mark.parametrize(("state", "status", "reason", "strict"), MATRIX)
def test_every_state_has_its_receipt(
    state: Callable[[Driver], None], status: str, reason: str | None, strict: str | None
):
    """SPEC 4.4."""
    for require_wait, expected in ((False, status), (True, strict)):
        driver = desk()
        state(driver)
        before = driver.run()
        receipt = driver.do(signal(require_wait=require_wait))
        assert receipt.status == expected
        if expected == "stale":
            assert receipt.reason == reason
        assert receipt.accepted == (expected in {"delivered", "buffered"})
        after = driver.run()
        if not receipt.accepted and not after.expiring and state is not late:
            assert after == before
        kept = not receipt.accepted
        assert (driver.reasons() != []) == kept


@pytest.mark.parametrize("state", [row[0] for row in MATRIX if row[1] in {"buffered", "delivered"}])
def test_a_repetition_is_a_duplicate_and_a_changed_one_a_conflict(state: Callable[[Driver], None]):
    """SPEC 4.4: the payload that the run keeps comes back, and nothing changes."""
    driver = desk()
    state(driver)
    driver.do(signal(payload=b'{"a":1,"b":2}', actor="ann"))
    before = driver.run()
    again = driver.do(signal(payload=b'{ "b": 2, "a": 1 }', actor="ann"))
    assert (again.status, again.payload, again.actor) == (ReceiptStatus.DUPLICATE, b'{"a":1,"b":2}', "ann")
    other = driver.do(signal(payload=b"2", actor="ann"))
    assert (other.status, other.payload) == (ReceiptStatus.CONFLICT, b'{"a":1,"b":2}')
    assert driver.do(signal(payload=b'{"a":1,"b":2}', actor="bo")).status is ReceiptStatus.CONFLICT
    assert driver.run() == before
    assert driver.reasons() == ["conflict", "conflict"]


def test_a_known_key_is_told_before_that_the_run_is_over():
    """SPEC 4.4: key known comes before run over."""
    driver = desk()
    waiting(driver)
    driver.do(signal())
    driver.do(Cancel("r", force=True))
    assert driver.do(signal()).status is ReceiptStatus.DUPLICATE
    assert driver.do(signal(key="k2")).status is ReceiptStatus.STALE


def test_a_delivery_to_nobody_is_an_error():
    """SPEC 4.4: first of all, the run has to exist."""
    with pytest.raises(RunNotFound):
        desk().do(signal())


def test_a_pruned_run_answers_gone():
    """SPEC 3.1, 4.4."""
    driver = desk()
    driver.store.tables.tombstones["r"] = 1  # type: ignore[attr-defined]
    assert driver.do(signal()).status is ReceiptStatus.GONE


def test_run_over_comes_before_an_unknown_name():
    """SPEC 4.4."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared()))
    driver.do(Cancel("r", force=True))
    assert driver.do(signal("piad")).reason == "cancel"


def test_an_unknown_name_is_told_with_near_misses_and_kept():
    """SPEC 4.4, 4.16."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared()))
    with pytest.raises(UnknownSignal, match="did you mean 'paid'") as raised:
        driver.do(signal("piad"))
    assert raised.value.fields["workflow"] == "job"
    assert driver.reasons() == ["unknown_name"]
    with pytest.raises(UnknownSignal, match="no channel called paid"):
        driver.do(message("paid"))


def test_settled_comes_before_the_type():
    """SPEC 4.4: who comes too late hears of the winner, whatever it sent."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(schema=INT_ID)))
    driver.do(signal())
    receipt = driver.do(signal(payload=b'"no"', key="k2"))
    assert (receipt.status, receipt.payload) == (ReceiptStatus.ALREADY_SETTLED, b"1")


def test_settled_comes_before_the_deadline():
    """SPEC 4.4."""
    driver = desk()
    driver.begin(deadline_ms=driver.clock.now_ms() + 1000, accepts=declare(driver, paid=Declared(schema=INT_ID)))
    driver.do(signal())
    driver.clock.advance(1.0)
    assert driver.do(signal(key="k2")).status is ReceiptStatus.ALREADY_SETTLED
    assert driver.run().expiring


def test_the_deadline_comes_before_the_type():
    """SPEC 4.4."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(schema=INT_ID), timeout_ms=1000), end=Park(), **DOCUMENTS)
    driver.clock.advance(1.0)
    assert driver.do(signal(payload=b'"no"')).reason == "timeout"


@pytest.mark.parametrize("early", [True, False])
def test_the_type_is_checked_at_the_door(early: bool):
    """SPEC 4.6, and 4.4: the type comes before being refused early; the key stays free."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(schema=INT_ID, early=early)))
    before = driver.run()
    receipt = driver.do(signal(payload=b'"no"'))
    assert receipt.status is ReceiptStatus.INVALID
    assert receipt.errors
    assert driver.run() == before
    assert driver.arrivals() == []
    told = driver.do(signal(payload=b"5"))
    assert told.status is (ReceiptStatus.BUFFERED if early else ReceiptStatus.NOT_WAITING)


def test_an_open_wait_checks_its_own_type_and_stays_open():
    """SPEC 4.6."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(schema=INT_ID)), end=Park(), **DOCUMENTS)
    assert driver.do(signal(payload=b'"no"')).status is ReceiptStatus.INVALID
    assert list(driver.open_waits()) == [wait().id]
    assert driver.do(signal(payload=b"5")).status is ReceiptStatus.DELIVERED


def test_parallel_waits_of_two_types_take_what_fits_both():
    """SPEC 4.6: nobody is handed what its type refuses."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(schema=INT_ID)), opens(wait(schema=TEXT_ID, scope="s/")), end=Park(), **DOCUMENTS)
    assert driver.do(signal(payload=b"5")).status is ReceiptStatus.INVALID


@pytest.mark.parametrize(
    ("declared", "error"),
    [(Declared(require_key=True), KeyRequired), (Declared(require_actor=True), ActorRequired)],
)
def test_what_a_name_requires(declared: Declared, error: type[Exception]):
    """SPEC 4.3b."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=declared))
    with pytest.raises(error):
        driver.do(signal(key=letters.derived_key(b"1", None)))
    assert driver.do(signal(actor="ann")).accepted


# --- early and late -----------------------------------------------------------------------------------


def test_an_early_payload_that_was_checked_settles_the_name():
    """SPEC 4.3."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(schema=INT_ID)))
    assert driver.do(signal()).status is ReceiptStatus.BUFFERED
    assert driver.do(signal(payload=b"2", key="k2")).status is ReceiptStatus.ALREADY_SETTLED


def test_unchecked_early_payloads_queue_until_the_wait_takes_the_first_that_fits():
    """SPEC 4.3: and the receipts of the rest become already_settled."""
    driver = desk()
    driver.begin()
    for number, payload in enumerate((b'"no"', b"2", b"3")):
        assert driver.do(signal(payload=payload, key=f"k{number}")).status is ReceiptStatus.BUFFERED
    driver.turn("r", opens(wait(schema=INT_ID)), **DOCUMENTS)
    assert [arrival.status for arrival in driver.arrivals()] == [
        ArrivalStatus.INVALID,
        ArrivalStatus.DELIVERED,
        ArrivalStatus.ALREADY_SETTLED,
    ]
    assert driver.store.winner("r", "paid") == driver.arrivals()[1]
    assert driver.reasons() == ["already_settled", "invalid"]
    assert (driver.run().buffered, driver.run().buffered_bytes) == (0, 0)


def test_two_waits_of_one_turn_take_the_same_payload_once():
    """SPEC 4.12: the counters too, though both waits opened on what was on file."""
    driver = desk()
    driver.begin()
    for number, payload in enumerate((b'"no"', b"2", b"3")):
        driver.do(signal(payload=payload, key=f"k{number}"))
    told = driver.turn("r", opens(wait(schema=INT_ID)), opens(wait(schema=INT_ID, scope="s/")), end=Park(), **DOCUMENTS)
    assert [settled.arrival for settled in told.waits] == [2, 2]
    assert (driver.run().buffered, driver.run().buffered_bytes) == (0, 0)


def test_refused_early():
    """SPEC 4.3."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(early=False)))
    assert driver.do(signal()).status is ReceiptStatus.NOT_WAITING
    driver.turn("r", opens(wait()))
    assert driver.do(signal()).status is ReceiptStatus.DELIVERED


@pytest.mark.parametrize("late_policy", [False, True])
def test_between_rounds(late_policy: bool):
    """SPEC 4.13: `late` says what a delivery between two rounds gets; the next round has its own deadline."""
    driver = desk()
    driver.begin(accepts=declare(driver, paid=Declared(late=late_policy)))
    driver.turn("r", opens(wait(late=late_policy), timeout_ms=1000), end=Park())
    driver.clock.advance(1.0)
    between = driver.do(signal())
    assert between.status is (ReceiptStatus.BUFFERED if late_policy else ReceiptStatus.STALE)
    driver.claim()
    again = wait(round=1, late=late_policy)
    told = driver.turn("r", place(1, wait(), Outcome.TIMEOUT), opens(again, timeout_ms=500), end=Park())
    if late_policy:
        assert [settled.arrival for settled in told.waits] == [between.number]
    else:
        assert driver.open_waits()[again.id].deadline_ms == driver.clock.now_ms() + 500
        assert driver.do(signal()).status is ReceiptStatus.DELIVERED


def test_an_undeclared_name_keeps_late_deliveries_where_its_wait_said_so():
    """SPEC 4.13."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(late=True), timeout_ms=1000), end=Park())
    driver.clock.advance(1.0)
    assert driver.do(signal()).status is ReceiptStatus.BUFFERED


# --- keys ---------------------------------------------------------------------------------------------


def test_without_a_key_equal_payload_and_actor_are_one_delivery():
    """SPEC 4.4; the derived key is never shown."""
    driver = desk()
    driver.begin()
    key = letters.derived_key(b"1", None)
    first = driver.do(signal(key=key))
    assert (first.status, first.key) == (ReceiptStatus.BUFFERED, None)
    assert driver.do(signal(key=key)).status is ReceiptStatus.DUPLICATE
    assert (
        len({key, letters.derived_key(b"2", None), letters.derived_key(b"1", ""), letters.derived_key(b"1", "a")}) == 4
    )


def test_one_key_for_two_names_and_two_kinds():
    """SPEC 4.4: a key is one delivery's under one name."""
    driver = desk()
    driver.begin()
    assert [driver.do(sent).status for sent in (signal("a"), signal("ab"), message("a"), message("ab"))] == [
        ReceiptStatus.BUFFERED
    ] * 4


@pytest.mark.parametrize("parked", [True, False])
def test_a_payload_that_its_type_refuses_is_withdrawn(parked: bool):
    """SPEC 4.6: dead letter with field errors, receipt invalid, the wait reopens with its old deadline."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait(), timeout_ms=60_000), end=Park() if parked else None)
    deadline = driver.open_waits()[wait().id].deadline_ms
    driver.do(signal(payload=b"3"))
    driver.claim()
    driver.turn("r", refuse(1), end=Park())
    assert driver.run().status is Status.WAITING
    assert driver.run().due_ms == deadline
    assert driver.open_waits()[wait().id].deadline_ms == deadline
    (arrival,) = driver.arrivals()
    assert (arrival.status, arrival.settles) == (ArrivalStatus.INVALID, False)
    assert letters.read_errors(arrival.detail) == WRONG
    assert driver.reasons() == ["invalid"]


def test_a_freed_key_takes_a_corrected_payload_and_no_repetition():
    """SPEC 4.6: the same payload again is answered invalid without waking the run."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), end=Park())
    driver.do(signal(payload=b"3"))
    driver.claim()
    driver.turn("r", refuse(1), end=Park())
    before = driver.run()
    again = driver.do(signal(payload=b"3"))
    assert (again.status, again.errors) == (ReceiptStatus.INVALID, WRONG)
    assert driver.run() == before
    corrected = driver.do(signal(payload=b"4"))
    assert (corrected.status, corrected.number) == (ReceiptStatus.DELIVERED, 2)
    assert [arrival.no for arrival in driver.arrivals()] == [2]


def test_a_withdrawn_race_reopens_all_its_members():
    """SPEC 4.6, 4.9."""
    driver = desk()
    driver.begin()
    group: dict[str, Any] = {"scope": "g:0/", "group": "g:0/"}
    timer = wait("grace", WaitKind.TIMER, member=1, **group)
    driver.turn("r", opens(wait(**group), timer, timeout_ms=1000), end=Park())
    driver.do(signal())
    driver.claim()
    driver.turn("r", refuse(1), end=Park())
    assert set(driver.open_waits()) == {wait(**group).id, timer.id}
    driver.clock.advance(1.0)
    driver.claim()
    told = driver.turn("r")
    assert [(won.name, won.outcome) for won in told.waits] == [("grace", Outcome.FIRED)]


def test_two_waits_that_refuse_one_payload_withdraw_it_once():
    """SPEC 4.6, 4.12."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), opens(wait(scope="s/")), end=Park())
    driver.do(signal())
    driver.claim()
    driver.turn("r", refuse(1), refuse(1), end=Park())
    assert len(driver.open_waits()) == 2
    assert driver.reasons() == ["invalid"]


def test_withdrawing_what_is_on_file_no_longer_changes_nothing():
    """SPEC 4.6."""
    driver = desk()
    driver.begin()
    driver.turn("r", refuse(1))
    assert driver.reasons() == []

"""A view decides on what its needs named, and shows each decision to the next (SPEC 4.4)."""

import pytest

from tarry.core.commands import Block, Cancel, CloseChannel, Deliver, Park, Refuse, Resolve, Want
from tarry.core.decide import decide
from tarry.core.view import Loaded, View
from tarry.model import (
    ArrivalKind,
    Blocked,
    FieldError,
    KeyId,
    NameId,
    Outcome,
    ReceiptStatus,
    Slot,
    Status,
    WaitKind,
)
from tarry.testing.conformance_driver import message, opens, record, signal, start, wait
from tests.core.desk import desk


def test_what_was_not_loaded_cannot_be_decided_on():
    with pytest.raises(AssertionError, match="needs do not name"):
        Loaded[str, int]()["paid"]


def test_deciding_on_another_name_than_the_one_loaded_is_a_fault():
    driver = desk()
    run = driver.do(start()).run
    name = NameId(ArrivalKind.SIGNAL, "other")
    view = View(run, schema=lambda digest: b"", live=Loaded({name: []}), slots=Loaded({name: Slot("r", *name)}))
    command = signal()
    view.keys[KeyId(command.kind, command.name, command.key)] = None
    with pytest.raises(AssertionError, match="paid"):
        decide(view, command, 0)


def test_the_commands_of_a_batch_see_each_other():
    """SPEC 4.4: as if each had come alone."""
    driver = desk()
    driver.begin()
    opening = driver.advance("r", opens(wait()), end=Park())
    told = driver.batch(signal("x"), opening, signal(), signal(), signal(key="k2"), Cancel("r"), signal(key="k3"))
    statuses = [answer.status for answer in told if hasattr(answer, "accepted")]
    assert statuses == [
        ReceiptStatus.BUFFERED,
        ReceiptStatus.DELIVERED,
        ReceiptStatus.DUPLICATE,
        ReceiptStatus.ALREADY_SETTLED,
        ReceiptStatus.STALE,
    ]


def test_an_end_is_seen_by_the_next_command():
    """SPEC 4.16."""
    driver = desk()
    driver.begin()
    told = driver.batch(signal(), Cancel("r", force=True), signal(), signal(key="k2"), CloseChannel("r", "ev"))
    assert (told[2].status, told[3].status, told[4]) == (ReceiptStatus.DUPLICATE, ReceiptStatus.STALE, False)


def refused(number: int) -> Refuse:
    return Refuse(number, KeyId(ArrivalKind.CHANNEL, "ev", f"k{number}"), (FieldError("$", "no"),))


def test_a_message_that_changes_is_in_a_page_once():
    """SPEC 5.5: and its place in the order is the old one."""
    driver = desk()
    driver.begin()
    driver.batch(*(message(key=f"k{number}") for number in (1, 2, 3)))
    reading = driver.advance("r", wants=[Want("ev", 0, 4)])
    told = driver.batch(driver.advance("r", refused(2)), reading, message(payload=b"9", key="k2"), reading)
    assert [found.no for found in told[1].pages["ev"]] == [1, 2, 3]
    assert [found.no for found in told[3].pages["ev"]] == [1, 3, 4]
    assert driver.turn("r", wants=[Want("ev", 0, 4)]).pages == told[3].pages


def test_a_page_takes_no_more_than_was_asked_for():
    driver = desk()
    driver.begin()
    reading = driver.advance("r", wants=[Want("ev", 1, 1), Want("other", 0)])
    told = driver.batch(*(message(key=f"k{number}") for number in (1, 2, 3)), reading)
    assert {name: [found.no for found in page] for name, page in told[3].pages.items()} == {"ev": [2], "other": []}


def test_a_message_wins_a_race_within_its_batch():
    """SPEC 4.9."""
    driver = desk()
    driver.begin()
    racing = wait("ev", WaitKind.CHANNEL, group="g")
    told = driver.batch(message(), driver.advance("r", opens(racing)), message(key="k2"))
    assert [(settled.arrival, settled.outcome) for settled in told[1].waits] == [(1, Outcome.OK)]


def test_a_journal_that_grew_in_this_batch_is_numbered_on():
    """SPEC 3.5."""
    driver = desk()
    driver.begin()
    unknown = record(2, outcome=Outcome.UNKNOWN)
    turn = driver.advance("r", record(1, "a"), unknown, end=Block(Blocked.UNKNOWN_OUTCOME, "lost"))
    told = driver.batch(turn, Resolve("r", "work", 2, Outcome.OK, b"1"))
    assert told[1] is Status.READY
    assert [entry.no for entry in driver.entries()] == [1, 2, 3]


def test_a_refused_command_of_a_batch_changes_nothing_for_the_next():
    """SPEC 2: each fails alone."""
    driver = desk()
    driver.begin()
    stray = Deliver("nobody", ArrivalKind.SIGNAL, "paid", b"1", "k")
    fenced = driver.advance("r", opens(wait()), record(1))
    fenced = type(fenced)(fenced.run_id, fenced.worker, fenced.epoch + 1, fenced.parts)
    told = driver.batch(stray, fenced, signal())
    assert [isinstance(answer, Exception) for answer in told] == [True, True, False]
    assert told[2].status is ReceiptStatus.BUFFERED
    assert driver.entries() == []

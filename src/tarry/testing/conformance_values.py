"""What goes in comes out: bytes, names and numbers, however odd; and scopes are prefixes, not patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarry.core import scopes
from tarry.core.commands import Ack, CloseChannel, Finish, Reap, Want
from tarry.core.view import DropEntries, Write
from tarry.errors import Closed
from tarry.model import (
    ArrivalKind,
    Audit,
    EntryKind,
    Letter,
    Outcome,
    Outgoing,
    RunRecord,
    Status,
)
from tarry.store.protocol import LetterFilter
from tarry.testing.conformance_driver import Driver, message, opens, record, signal, start, step, wait

PAYLOADS = {
    "empty": b"",
    "null": b"null",
    "NUL escaped": b'"a\\u0000b"',
    "not ASCII": '"é 漢 \U0001f600"'.encode(),
    "big number": b"1" + b"0" * 400,
    "spaces": b' { "b" : 1 , "a" : 2 } ',
    "just above a kibibyte": b'"' + b"x" * 1100 + b'"',
    "a mebibyte": b'"' + b"0123456789abcdef" * 65_535 + b'"',
    "no pattern": b'"' + bytes(33 + (n * n * 31 + n // 7) % 90 for n in range(5000)).replace(b'"', b"'") + b'"',
}

NAMES = [
    "a",
    "a%",
    "a_",
    "a/b",
    "a:b",
    "%",
    "_",
    "'",
    '"',
    "''--",
    "A",
    "é",
    "e\u0301",
    "漢",
    "\U0001f600",
    " in ",
    "\\",
]


def save(driver: Driver, *rows: Write) -> None:
    tx = driver.store.begin()
    assert tx is not None
    with tx:
        tx.save(rows)
        tx.commit()


class ValueConformance:
    @pytest.mark.parametrize("name", PAYLOADS)
    def test_bytes_come_back_as_they_were_given(self, driver: Driver, name: str) -> None:
        """Wherever the store keeps some."""
        data = PAYLOADS[name]
        driver.batch(replace(start(), input=data), documents={"document": data})
        driver.claim()
        assert driver.store.document("document") == data
        driver.turn("r", opens(wait()), record(1, value=data), record(2, "none", None))
        driver.batch(signal(payload=data), message(payload=data), signal("unread", data, "k"))
        driver.turn("r", Ack("ev", 2, len(data), data))
        assert driver.run().input == data
        assert [entry.value for entry in driver.entries()] == [data, None]
        assert [arrival.payload for arrival in driver.arrivals()] == [data] * 3
        driver.turn("r", end=Finish(Status.FAILED, data, data))
        assert (driver.run().result, driver.run().error) == (data, data)
        assert [letter.payload for letter in driver.store.letters(LetterFilter("r"), None, 9).rows] == [data]

    def test_a_folds_state_comes_back_as_it_was_given(self, driver: Driver) -> None:
        names = [f"channel {name}" for name in PAYLOADS]
        driver.begin()
        for at, (name, data) in enumerate(zip(names, PAYLOADS.values(), strict=True), start=1):
            driver.do(message(name))
            driver.turn("r", Ack(name, at, 1, data))
        driver.batch(*(CloseChannel("r", name) for name in names))
        driver.do(Reap("r", "w1"))
        (journal,) = driver.claim()
        assert [journal.slots[name].state for name in names] == list(PAYLOADS.values())
        assert {slot.closed for slot in journal.slots.values()} == {"closed"}

    def test_names_are_compared_exactly(self, driver: Driver) -> None:
        """Each is another name, key, scope, tag and run; none of them is a pattern."""
        driver.batch(*(start(name, tags=((name, name),)) for name in NAMES))
        assert all(driver.run(name).tags == ((name, name),) for name in NAMES)
        driver.claim()
        for name in NAMES:
            driver.turn(name, opens(wait(name, scope=name, run_id=name)), record(1, name, run_id=name, scope=name))
            told = driver.batch(*(message(name, key=key, run_id=name) for key in NAMES))
            assert [receipt.number for receipt in told] == list(range(1, len(NAMES) + 1))
        for name in NAMES:
            assert [(each.scope, each.name) for each in driver.open_waits(name)] == [(name, name)]
            assert [(entry.scope, entry.name) for entry in driver.entries(name)] == [(name, name)]
            assert [arrival.key for arrival in driver.arrivals(name)] == NAMES
            for key in NAMES:
                found = driver.store.arrival(name, ArrivalKind.CHANNEL, name, key)
                assert found is not None
                assert found.key == key
            pages = driver.turn(name, wants=[Want(other, 0) for other in NAMES]).pages
            assert {other: len(page) for other, page in pages.items() if page} == {name: len(NAMES)}

    def test_entries_are_dropped_by_prefix(self, driver: Driver) -> None:
        """Of one run, and of scopes that begin with exactly that text."""
        folds = [scopes.of_message("", name, "k") for name in NAMES]
        for run_id in ("r", "s"):
            driver.begin(run_id)
            every = [record(at, scope=scope, run_id=run_id) for at, scope in enumerate(["", *folds], start=1)]
            driver.turn(run_id, *every)
        left = ["", *folds]
        for name in NAMES:
            prefix = scopes.of_fold("", name)
            save(driver, DropEntries("r", scope=prefix))
            left = [scope for scope in left if not scope.startswith(prefix)]
            assert [entry.scope for entry in driver.entries()] == left
        assert left == [""]
        assert len(driver.entries("s")) == len(folds) + 1
        for raw in ("%", "_", "a"):
            save(driver, DropEntries("s", scope=raw))
        assert [entry.scope for entry in driver.entries("s")] == [
            scope for scope in ["", *folds] if not scope.startswith(("%", "_", "a"))
        ]

    def test_entries_are_dropped_by_number(self, driver: Driver) -> None:
        driver.begin()
        driver.turn("r", *(record(number, f"s{number}") for number in (1, 2, 12)))
        save(driver, DropEntries("r", no=2))
        save(driver, DropEntries("r", no=3))
        assert [entry.no for entry in driver.entries()] == [1, 12]

    def test_an_entry_reads_back_as_it_was_written(self, driver: Driver) -> None:
        driver.do(start())
        entries = [
            step(at, f"n{at}", None, kind=kind, outcome=outcome, round=at, digest=f"d{at}", arrival=at, at_ms=at)
            for at, (kind, outcome) in enumerate(
                [(kind, outcome) for kind in EntryKind for outcome in Outcome], start=1
            )
        ]
        save(driver, *entries)
        assert driver.entries() == entries

    def test_a_run_reads_back_as_it_was_written(self, driver: Driver) -> None:
        """Every field of it, through every status."""
        driver.do(start())
        for at, status in enumerate(Status, start=1):
            more: dict[str, Any] = {
                "status": status,
                "tags": (("a", str(at)), ("b", "")),
                "due_ms": at,
                "deadline_ms": 10**13,
                "epoch": at,
                "worker": f"w{at}",
                "arrivals": at,
                "buffered": 2 * at,
                "buffered_bytes": 2**40 + at,
                "crashes": at % 5,
                "attempt": 3 * at,
                "cancelling": at % 2 == 0,
                "expiring": at % 3 == 0,
                "cancel_actor": None if at % 2 else "ann",
                "reason": f"reason {at}",
                "result": b"1" if at % 2 else None,
                "error": None if at % 2 else b"2",
                "culprit": at,
                "changed_ms": 4 * at,
                "ended_ms": 5 * at,
            }
            run: RunRecord = replace(driver.run(), **more)
            save(driver, run)
            assert driver.run() == run

    def test_the_last_version_of_a_row_counts(self, driver: Driver) -> None:
        driver.do(start())
        run = driver.run()
        save(driver, replace(run, attempt=2), replace(run, attempt=3))
        assert driver.run().attempt == 3

    def test_acts_of_operators_are_kept_in_order(self, driver: Driver) -> None:
        driver.do(start())
        acts = [Audit("r", None if at else "ann", f"act {at}", "detail", 7) for at in range(3)]
        save(driver, *acts)
        assert list(driver.store.audit("r", None, 10).rows) == acts

    def test_a_letter_reads_back_as_it_was_written(self, driver: Driver) -> None:
        driver.do(start())
        letter = Letter("id", "r", ArrivalKind.CHANNEL, "n", None, b"1", "ann", "why", b"[]", 5, 9)
        save(driver, letter)
        assert driver.store.letters(LetterFilter(), None, 9).rows == (letter,)

    def test_outgoing_rows_wait_in_order_until_they_are_dropped(self, driver: Driver) -> None:
        driver.do(start())
        rows = [Outgoing("r", number, f"t{number}", "signal", b"{}", number) for number in (3, 1, 2)]
        save(driver, *rows)
        tx = driver.store.begin()
        assert tx is not None
        with tx:
            assert tx.outgoing(2) == rows[:2]
            tx.drop_outgoing(rows[:1])
            assert tx.outgoing(9) == rows[1:]
            tx.commit()

    def test_who_may_not_wait_is_told_that_somebody_writes(self, driver: Driver) -> None:
        tx = driver.store.begin()
        assert tx is not None
        with tx:
            assert driver.store.begin(wait=False) is None
        again = driver.store.begin(wait=False)
        assert again is not None
        with again:
            again.commit()

    def test_a_transaction_has_one_now(self, driver: Driver) -> None:
        tx = driver.store.begin()
        assert tx is not None
        before = driver.clock.now_ms()
        with tx:
            driver.clock.advance("1h")
            assert tx.now_ms == before

    def test_a_closed_store_begins_nothing(self, driver: Driver) -> None:
        driver.store.tidy()
        driver.store.close()
        with pytest.raises(Closed):
            driver.store.begin()
        driver.store.close()

"""What a store shows: lookups, and lists a page at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tarry.core.commands import Ack, Block, Cancel, Park
from tarry.errors import BadCursor, BadLimit
from tarry.model import ArrivalKind, Blocked, Page, Status, WaitKind
from tarry.store.protocol import LetterFilter, RunFilter, WaitFilter
from tarry.testing.conformance_driver import Driver, message, opens, record, signal, start, wait

Pages = Callable[[str | None, int], Page[Any]]


def read(pages: Pages, limit: int) -> list[Any]:
    """All pages; each but the last one is full."""
    rows: list[Any] = []
    cursor: str | None = None
    while True:
        page = pages(cursor, limit)
        rows += page.rows
        assert len(page.rows) <= limit
        if page.next_cursor is None:
            return rows
        assert len(page.rows) == limit
        cursor = page.next_cursor


def _fill(driver: Driver) -> None:
    """Several of everything, many of them in the same millisecond."""
    for number in range(7):
        name = f"r{number}"
        driver.do(start(name, tags=(("parity", str(number % 2)), ("of", "all"))))
        driver.claim()
        waits = [wait(f"w{at}", run_id=name) for at in range(3)]
        driver.turn(name, *(opens(each, timeout_ms=10_000 + number) for each in waits), record(1, run_id=name))
        driver.turn(name, record(2, "b", run_id=name), record(3, "c", run_id=name), end=Park())
        sent = [message(key=str(at), run_id=name) for at in range(3)] + [
            signal(f"s{at}", run_id=name) for at in range(3)
        ]
        driver.batch(*sent)
        if number % 3 == 0:
            driver.clock.advance(0.001)
    driver.batch(*(Cancel(f"r{number}", "ann", force=True) for number in (1, 2)))


LISTS: dict[str, tuple[Callable[[Driver], Pages], int]] = {
    "runs": (lambda d: lambda c, n: d.store.runs(RunFilter(), c, n), 7),
    "runs by workflow": (lambda d: lambda c, n: d.store.runs(RunFilter(workflow="job"), c, n), 7),
    "runs of no workflow": (lambda d: lambda c, n: d.store.runs(RunFilter(workflow="none"), c, n), 0),
    "runs by status": (lambda d: lambda c, n: d.store.runs(RunFilter(status=Status.CANCELLED), c, n), 2),
    "runs by tag": (lambda d: lambda c, n: d.store.runs(RunFilter(tag=("parity", "1")), c, n), 3),
    "runs by prefix": (lambda d: lambda c, n: d.store.runs(RunFilter(prefix="r"), c, n), 7),
    "runs by tag and status": (
        lambda d: lambda c, n: d.store.runs(RunFilter(tag=("of", "all"), status=Status.CANCELLED), c, n),
        2,
    ),
    "waits": (lambda d: lambda c, n: d.store.waits(WaitFilter(), c, n), 15),
    "waits of a run": (lambda d: lambda c, n: d.store.waits(WaitFilter("r3"), c, n), 3),
    "waits by name": (lambda d: lambda c, n: d.store.waits(WaitFilter(name="w1"), c, n), 5),
    "waits by kind": (lambda d: lambda c, n: d.store.waits(WaitFilter(kind=WaitKind.TIMER), c, n), 0),
    "waits by workflow": (lambda d: lambda c, n: d.store.waits(WaitFilter(workflow="job"), c, n), 15),
    "waits by tag": (lambda d: lambda c, n: d.store.waits(WaitFilter(tag=("parity", "0")), c, n), 9),
    "waits overdue": (
        lambda d: lambda c, n: d.store.waits(WaitFilter(overdue_at_ms=d.clock.now_ms() + 1_000_000), c, n),
        15,
    ),
    "waits overdue by now": (
        lambda d: lambda c, n: d.store.waits(WaitFilter(overdue_at_ms=d.clock.now_ms()), c, n),
        0,
    ),
    "waits that are old": (
        lambda d: lambda c, n: d.store.waits(WaitFilter(opened_before_ms=d.clock.now_ms()), c, n),
        15,
    ),
    "journal": (lambda d: lambda c, n: d.store.journal("r4", c, n), 3),
    "arrivals": (lambda d: lambda c, n: d.store.arrivals("r4", c, n), 6),
    "letters": (lambda d: lambda c, n: d.store.letters(LetterFilter(), c, n), 12),
    "letters of a run": (lambda d: lambda c, n: d.store.letters(LetterFilter("r1"), c, n), 6),
    "letters by name": (lambda d: lambda c, n: d.store.letters(LetterFilter(name="s0"), c, n), 2),
    "letters by reason": (lambda d: lambda c, n: d.store.letters(LetterFilter(reason="cancel"), c, n), 12),
    "audit": (lambda d: lambda c, n: d.store.audit(None, c, n), 2),
    "audit of a run": (lambda d: lambda c, n: d.store.audit("r2", c, n), 1),
}


class ListConformance:
    @pytest.mark.parametrize("name", LISTS)
    def test_a_list_is_whole_whatever_its_pages(self, driver: Driver, name: str) -> None:
        """No row twice, none left out, one order; with rows of one instant on both sides of a page's edge."""
        _fill(driver)
        pages, count = LISTS[name][0](driver), LISTS[name][1]
        whole = read(pages, 1000)
        assert len(whole) == count
        assert [read(pages, limit) for limit in (1, 2, 3, count or 1)] == [whole] * 4
        for limit in (0, -1, 1001):
            with pytest.raises(BadLimit):
                pages(None, limit)
        for cursor in ("", "x", "bm9uc2Vuc2U", "W10"):
            with pytest.raises(BadCursor):
                pages(cursor, 10)
        first = pages(None, 1)
        driver.do(start("zz"))
        if first.next_cursor is not None:
            assert [*first.rows, *pages(first.next_cursor, 1000).rows][: len(whole)] == whole

    def test_runs_are_listed_by_when_they_were_started(self, driver: Driver) -> None:
        for name in ("b", "a", "c"):
            driver.do(start(name))
            driver.clock.advance(0.001)
        assert [run.id for run in driver.store.runs(RunFilter(), None, 10).rows] == ["b", "a", "c"]

    def test_a_prefix_means_what_it_says(self, driver: Driver) -> None:
        """No character of it is a pattern."""
        names = ["a", "ab", "a_", "a%", "a%b", "A", "b", "a\U0001f600z", "é"]
        driver.batch(*map(start, names))
        for prefix in ("a", "a%", "a_", "a\U0001f600", "é", "A", "zz"):
            found = {run.id for run in driver.store.runs(RunFilter(prefix=prefix), None, 100).rows}
            assert found == {name for name in names if name.startswith(prefix)}

    def test_only_open_waits_of_runs_that_go_on_are_listed(self, driver: Driver) -> None:
        driver.begin()
        driver.turn("r", opens(wait("a")), opens(wait("b")))
        driver.do(signal("a"))
        assert [each.name for each in driver.open_waits().values()] == ["b"]
        driver.turn("r", end=Block(Blocked.DEADLOCK, "stuck"))
        assert [each.name for each in driver.open_waits().values()] == ["b"]
        driver.do(Cancel("r", force=True))
        assert driver.open_waits() == {}

    def test_lookups(self, driver: Driver) -> None:
        driver.begin()
        driver.do(start("s"))
        assert driver.store.run("none") is None
        assert not driver.store.gone("r")
        statuses = driver.store.statuses(["r", "none", "s"])
        assert statuses == {"r": Status.RUNNING, "s": Status.READY}
        assert driver.store.statuses([]) == {}
        driver.turn("r", opens(wait()))
        driver.batch(signal(), message(), signal("paid2"))
        found = driver.store.arrival("r", ArrivalKind.SIGNAL, "paid", "k1")
        assert found == driver.arrivals()[0]
        assert driver.store.winner("r", "paid") == found
        assert driver.store.winner("r", "paid2") is None
        for key in ((ArrivalKind.SIGNAL, "paid", "k2"), (ArrivalKind.CHANNEL, "paid", "k1")):
            assert driver.store.arrival("r", *key) is None
        assert driver.store.arrival("none", ArrivalKind.SIGNAL, "paid", "k1") is None
        driver.turn("r", Ack("ev", 2, 1))
        assert (driver.store.acked("r", "ev"), driver.store.acked("r", "e")) == (2, 0)

    def test_letters_live_until_their_time_is_over(self, driver: Driver) -> None:
        """The same refusal again is the same letter, for as long again."""
        driver.do(start())
        driver.do(Cancel("r"))
        driver.do(signal())
        driver.clock.advance("29d")
        driver.batch(signal(), signal(key="k2"))
        assert len(driver.reasons()) == 2
        driver.clock.advance("29d")
        assert _expire(driver) == 0
        driver.clock.advance("1d")
        assert (_expire(driver, 1), _expire(driver, 9), driver.reasons()) == (1, 1, [])


def _expire(driver: Driver, limit: int = 100) -> int:
    tx = driver.store.begin()
    assert tx is not None
    with tx:
        count = tx.expire_letters(limit)
        tx.commit()
    return count

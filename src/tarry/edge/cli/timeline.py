"""One run's life in order of time: what it recorded, what it was sent and what became of it, what it waits for, and
what operators did. Rows of five tables become one list of events; what is secret in them stays out unless asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tarry.core.codec import decode_error
from tarry.core.decide.letters import read_errors, shown
from tarry.core.durations import from_ms
from tarry.edge.cli.text import instant, json_text
from tarry.model import Arrival, ArrivalKind, Audit, Entry, EntryKind, Letter, Outcome, Page, RunRecord, Wait
from tarry.store.protocol import LetterFilter, Store, WaitFilter

T = TypeVar("T")

PAGE = 1000


@dataclass(frozen=True)
class Event:
    """`rank` orders what happened in one millisecond: a delivery comes before what was made of it. `payload` is
    JSON text."""

    at_ms: int
    rank: int
    sort: str
    what: str
    detail: str = ""
    payload: str | None = None
    bad: bool = False


def events(store: Store, run: RunRecord) -> list[Event]:
    """All that is on file about a run, in order."""
    found = [Event(run.created_ms, 0, "run", "started")]
    found += map(partial(_arrival, store), _every(lambda at: store.arrivals(run.id, at, PAGE)))
    found += map(_entry, _every(lambda at: store.journal(run.id, at, PAGE)))
    found += map(_letter, _every(lambda at: store.letters(LetterFilter(run_id=run.id), at, PAGE)))
    found += map(_audit, _every(lambda at: store.audit(run.id, at, PAGE)))
    found += (_wait(wait) for _, wait in _every(lambda at: store.waits(WaitFilter(run_id=run.id), at, PAGE)))
    if run.ended_ms is not None:
        found.append(Event(run.ended_ms, 6, "run", run.status.value, bad=run.status.value == "failed"))
    return sorted(found, key=lambda event: (event.at_ms, event.rank))


def _every(read: Callable[[str | None], Page[T]]) -> Iterator[T]:
    cursor: str | None = None
    while True:
        page = read(cursor)
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


def _arrival(store: Store, row: Arrival) -> Event:
    status = row.status.value
    if row.kind is ArrivalKind.CHANNEL and status == "buffered":
        status = "read" if row.no <= store.acked(row.run_id, row.name) else "unread"
    key = shown(row.key)
    errors = _fields(row.detail)
    detail = _joined(status, f"key {key}" if key else "", f"by {row.actor}" if row.actor else "", errors)
    bad = status in ("invalid", "stale")
    return Event(row.at_ms, 1, "delivery", f"{row.kind.value} {row.name}", detail, _text(row.payload), bad)


def _letter(row: Letter) -> Event:
    key = f"key {row.key}" if row.key else ""
    detail = _joined(row.reason, key, f"by {row.actor}" if row.actor else "", _fields(row.detail))
    return Event(row.at_ms, 2, "letter", f"{row.kind.value} {row.name}", detail, _text(row.payload), True)


def _entry(row: Entry) -> Event:
    attempts = row.kind in (EntryKind.INTENT, EntryKind.ATTEMPT)
    what = _named(row.kind.value, row.scope, row.name, row.round if attempts else row.round + 1)
    if row.outcome is Outcome.FAILED and row.kind in (EntryKind.STEP, EntryKind.ATTEMPT) and row.value is not None:
        error = decode_error(row.value)
        return Event(row.at_ms, 3, "entry", what, f"failed: {error.type}: {error.message}", None, True)
    outcome = "" if row.outcome is Outcome.OK else row.outcome.value
    bad = row.outcome in (Outcome.FAILED, Outcome.UNKNOWN)
    return Event(row.at_ms, 3, "entry", what, outcome, _text(row.value), bad)


def _audit(row: Audit) -> Event:
    return Event(row.at_ms, 4, "operator", row.action, _joined(row.detail, f"by {row.actor}" if row.actor else ""))


def _wait(row: Wait) -> Event:
    until = "" if row.deadline_ms is None else f"until {instant(from_ms(row.deadline_ms))}"
    return Event(row.opened_ms, 5, "open", _named(row.kind.value, row.scope, row.name, row.round + 1), until)


def _named(kind: str, scope: str, name: str, count: int) -> str:
    return f"{kind} {scope}{name}" + (f" #{count}" if count > 1 else "")


def _fields(detail: bytes | None) -> str:
    return ", ".join(f"{error.path}: {error.reason}" for error in read_errors(detail))


def _text(data: bytes | None) -> str | None:
    return None if data is None else json_text(data)


def _joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)

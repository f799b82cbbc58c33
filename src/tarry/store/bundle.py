"""A batch's writes, sorted by table for a store that writes each table at once; the last version of a row
wins.

Within a bundle, drops may go before puts: no number is used twice, so no drop can hit what was put after
it. A `Sweep` goes last: it works on what is on file. Where a later row of its run would come under it, a
new bundle begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tarry.core.view import DropArrival, DropEntries, DropWait, Sweep, Write
from tarry.model import Arrival, Audit, Entry, Letter, Outgoing, RunRecord, Slot, Wait

Key = tuple[Any, ...]


@dataclass
class Bundle:
    """Rows by primary key; None is a row to drop."""

    runs: dict[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    waits: dict[Key, Wait | None] = field(default_factory=dict[Key, "Wait | None"])
    arrivals: dict[Key, Arrival | None] = field(default_factory=dict[Key, "Arrival | None"])
    slots: dict[Key, Slot] = field(default_factory=dict[Key, Slot])
    entries: list[Entry] = field(default_factory=list[Entry])
    dropped: list[DropEntries] = field(default_factory=list[DropEntries])
    letters: dict[str, Letter] = field(default_factory=dict[str, Letter])
    audits: list[Audit] = field(default_factory=list[Audit])
    outgoing: list[Outgoing] = field(default_factory=list[Outgoing])
    sweeps: dict[str, Sweep] = field(default_factory=dict[str, Sweep])


def bundles(writes: Iterable[Write]) -> Iterator[Bundle]:
    bundle = Bundle()
    for row in writes:
        if bundle.sweeps and type(row) in _SWEPT and row.run_id in bundle.sweeps:  # type: ignore[union-attr]
            yield bundle
            bundle = Bundle()
        _SORT[type(row)](bundle, row)
    yield bundle


def _run(bundle: Bundle, row: RunRecord) -> None:
    bundle.runs[row.id] = row


def _wait(bundle: Bundle, row: Wait) -> None:
    bundle.waits[row.run_id, row.kind, row.scope, row.name, row.round] = row


def _drop_wait(bundle: Bundle, row: DropWait) -> None:
    bundle.waits[row.run_id, *row.wait] = None


def _arrival(bundle: Bundle, row: Arrival) -> None:
    bundle.arrivals[row.run_id, row.kind, row.name, row.no] = row


def _drop_arrival(bundle: Bundle, row: DropArrival) -> None:
    bundle.arrivals[row.run_id, row.kind, row.name, row.no] = None


def _slot(bundle: Bundle, row: Slot) -> None:
    bundle.slots[row.run_id, row.kind, row.name] = row


def _entry(bundle: Bundle, row: Entry) -> None:
    bundle.entries.append(row)


def _drop_entries(bundle: Bundle, row: DropEntries) -> None:
    bundle.dropped.append(row)
    bundle.entries = [entry for entry in bundle.entries if not _covers(row, entry)]


def _covers(row: DropEntries, entry: Entry) -> bool:
    if entry.run_id != row.run_id:
        return False
    return entry.no == row.no or (row.scope is not None and entry.scope.startswith(row.scope))


def _letter(bundle: Bundle, row: Letter) -> None:
    bundle.letters[row.id] = row


def _audit(bundle: Bundle, row: Audit) -> None:
    bundle.audits.append(row)


def _outgoing(bundle: Bundle, row: Outgoing) -> None:
    bundle.outgoing.append(row)


def _sweep(bundle: Bundle, row: Sweep) -> None:
    bundle.sweeps[row.run_id] = row


_SORT: dict[type, Callable[[Bundle, Any], None]] = {
    RunRecord: _run,
    Wait: _wait,
    DropWait: _drop_wait,
    Arrival: _arrival,
    DropArrival: _drop_arrival,
    Slot: _slot,
    Entry: _entry,
    DropEntries: _drop_entries,
    Letter: _letter,
    Audit: _audit,
    Outgoing: _outgoing,
    Sweep: _sweep,
}

_SWEPT = frozenset({Wait, Arrival, DropArrival, Slot, Sweep})

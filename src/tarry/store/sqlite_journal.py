"""What a claim reads beside row and waits: all that the passes of the claimed runs answer from, each table
once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tarry.core.commands import Want
from tarry.core.journal import Journal, first_want
from tarry.core.view import View
from tarry.model import Arrival, ArrivalKind, Entry, RunRecord, Slot
from tarry.store.sqlite_link import Link, Row
from tarry.store.sqlite_rows import Rows


class _OfRun(Protocol):
    @property
    def run_id(self) -> str: ...


R = TypeVar("R", bound=_OfRun)


class JournalReader:
    def __init__(self, link: Link, rows: Rows) -> None:
        self._link = link
        self._rows = rows

    def read(self, claimed: Sequence[View]) -> list[Journal]:
        run_ids = [view.run.id for view in claimed if view.run is not None]
        heard = [view.run.id for view in claimed if view.run is not None and view.run.arrivals]
        entries = self._by_run("load_entries", self._rows.entry, run_ids)
        signals = self._by_run("load_signals", self._rows.arrival, heard)
        slots = self._slots(run_ids, heard)
        return [
            self._journal(view, run, entries.get(run.id, []), signals.get(run.id, []), slots.get(run.id, {}))
            for view in claimed
            if (run := view.run) is not None
        ]

    def _journal(
        self, view: View, run: RunRecord, entries: list[Entry], signals: list[Arrival], slots: dict[str, Slot]
    ) -> Journal:
        messages = {name: self._messages(run.id, first_want(slot, entries)) for name, slot in slots.items()}
        arrivals = {arrival.no: arrival for arrival in signals}
        return Journal(run, tuple(entries), tuple(view.waits.values()), arrivals, slots, messages)

    def _slots(self, run_ids: list[str], heard: list[str]) -> dict[str, dict[str, Slot]]:
        """The heads of all channels that a run has a head of or a message in."""
        found: dict[str, dict[str, Slot]] = {}
        if heard:
            for run_id, name in self._link.each("load_channels", [(run_id,) for run_id in heard]):
                found.setdefault(run_id, {})[name] = Slot(run_id, ArrivalKind.CHANNEL, name)
        for run_id, slots in self._by_run("load_heads", self._rows.slot, run_ids).items():
            found.setdefault(run_id, {}).update((slot.name, slot) for slot in slots)
        return found

    def _messages(self, run_id: str, want: Want) -> list[Arrival]:
        rows = self._link.rows("load_page", (run_id, want.channel, want.after, want.limit))
        return self._rows.read(self._rows.arrival, [row[2:] for row in rows])

    def _by_run(self, name: str, make: Callable[[Row], R], run_ids: list[str]) -> dict[str, list[R]]:
        found: dict[str, list[R]] = {}
        if run_ids:
            for record in self._rows.read(make, self._link.each(name, [(run_id,) for run_id in run_ids])):
                found.setdefault(record.run_id, []).append(record)
        return found

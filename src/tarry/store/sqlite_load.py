"""Loading: a batch of runs as the core's views, one statement per table for all runs together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tarry.core.commands import Want
from tarry.core.view import Needs, View
from tarry.model import Arrival, ArrivalKind, KeyId, NameId, Slot
from tarry.store.sqlite_link import Link, Row
from tarry.store.sqlite_rows import Rows


class Loader:
    """One transaction's reading. `schema` gives an interned document."""

    def __init__(self, link: Link, rows: Rows, schema: Callable[[str], bytes]) -> None:
        self._link = link
        self._rows = rows
        self._schema = schema

    def load(self, needs: Mapping[str, Needs]) -> dict[str, View]:
        views = self._load_runs(needs)
        present = {run_id: need for run_id, need in needs.items() if views[run_id].run is not None}
        self._load_waits(views, present)
        for run_id, need in needs.items():
            _expect(views[run_id], run_id, need)
        self._load_keys(views, present)
        self._load_names(views, present)
        self._load_pages(views, present)
        self._load_entries(views, present)
        return views

    def _load_runs(self, needs: Mapping[str, Needs]) -> dict[str, View]:
        found = self._link.each("load_run", [(run_id,) for run_id in needs])
        views = {run.id: View(run, self._schema) for run in self._rows.read(self._rows.run, found)}
        if len(views) < len(needs):
            missing = [run_id for run_id in needs if run_id not in views]
            gone = {row[0] for row in self._link.each("load_tombstone", [(run_id,) for run_id in missing])}
            views |= {run_id: View(None, self._schema, gone=run_id in gone) for run_id in missing}
        return views

    def _load_waits(self, views: dict[str, View], runs: Iterable[str]) -> None:
        found = self._link.each("load_waits", [(run_id,) for run_id in runs])
        settled: set[Row] = set()
        for wait in self._rows.read(self._rows.wait, found):
            views[wait.run_id].waits[wait.id] = wait
            if wait.arrival is not None:
                settled.add((wait.run_id, wait.kind, wait.name, wait.arrival))
        if settled:
            for arrival in self._arrivals("load_arrival", settled):
                views[arrival.run_id].settled[arrival.no] = arrival

    def _load_keys(self, views: dict[str, View], needs: Mapping[str, Needs]) -> None:
        keys = [(run_id, *key) for run_id, need in needs.items() for key in need.keys]
        if keys:
            for arrival in self._arrivals("load_key", keys):
                key = KeyId(arrival.kind, arrival.name, arrival.key)
                views[arrival.run_id].keys[key] = arrival

    def _load_names(self, views: dict[str, View], needs: Mapping[str, Needs]) -> None:
        names = [(run_id, *name) for run_id, need in needs.items() for name in need.names]
        if not names:
            return
        signals = [name for name in names if name[1] is ArrivalKind.SIGNAL]
        if signals:
            for arrival in self._arrivals("load_live", signals):
                views[arrival.run_id].live[NameId(arrival.kind, arrival.name)].append(arrival)
        for slot in self._rows.read(self._rows.slot, self._link.each("load_slot", names)):
            views[slot.run_id].slots[NameId(slot.kind, slot.name)] = slot

    def _load_pages(self, views: dict[str, View], needs: Mapping[str, Needs]) -> None:
        asked = [
            (run_id, want.channel, want.after, want.limit) for run_id, need in needs.items() for want in need.wants
        ]
        for after, limit, *row in self._link.each("load_page", asked) if asked else ():
            (message,) = self._rows.read(self._rows.arrival, [tuple(row)])
            views[message.run_id].pages[Want(message.name, after, limit)].append(message)

    def _load_entries(self, views: dict[str, View], needs: Mapping[str, Needs]) -> None:
        asked = [(run_id, no) for run_id, need in needs.items() for no in need.entries]
        if not asked:
            return
        for entry in self._rows.read(self._rows.entry, self._link.each("load_entry", asked)):
            views[entry.run_id].entries[entry.no] = entry
        runs = {run_id for run_id, _ in asked}
        for run_id, last in self._link.each("load_last_entry", [(run_id,) for run_id in runs]):
            views[run_id].last_entry = last or 0

    def _arrivals(self, name: str, args: Iterable[Row]) -> list[Arrival]:
        return self._rows.read(self._rows.arrival, self._link.each(name, args))


def _expect(view: View, run_id: str, need: Needs) -> None:
    """What was asked for and may not be there: absent until found."""
    for key in need.keys:
        view.keys[key] = None
    for name in need.names:
        view.live[name] = []
        view.slots[name] = Slot(run_id, name.kind, name.name)
    for want in need.wants:
        view.pages[want] = []

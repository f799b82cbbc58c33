"""Saving: each table of a bundle is one statement, run over all its rows; a table without rows costs
nothing.

Of a run, only what differs from the row on file is written. Which columns of `runs` change decides how many
indexes have to be touched: a counter hangs on none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import apsw

from tarry.core.decide.letters import letter_id, shown
from tarry.core.view import Sweep
from tarry.errors import LeaseLost, StoreError
from tarry.model import Arrival, ArrivalStatus, Entry, Letter, RunRecord
from tarry.store.bundle import Bundle, Key
from tarry.store.sqlite_link import Link, Row
from tarry.store.sqlite_rows import Rows, phase

_counts = attrgetter("id", "arrivals", "buffered", "buffered_bytes", "crashes", "attempt", "changed_ms")
_place = attrgetter("status", "due_ms", "worker", "epoch")
_seldom = attrgetter(
    "tags", "accepts", "deadline_ms", "cancelling", "expiring", "cancel_actor", "blocked", "reason", "culprit",
    "ended_ms", "result", "error",
)  # fmt: skip
_RUN_STATEMENTS = (
    "put_run", "put_run_data", "set_run", "move_run", "count_run", "set_run_data", "drop_tags", "put_tag",
)  # fmt: skip
_audit_row = attrgetter("run_id", "actor", "action", "detail", "at_ms")


class Saver:
    """`known` are the runs as this transaction has read or written them last."""

    def __init__(self, link: Link, rows: Rows, known: dict[str, RunRecord]) -> None:
        self._link = link
        self._rows = rows
        self._known = known

    def save(self, bundle: Bundle) -> None:
        rows = self._rows
        if bundle.runs:
            self._save_runs(bundle.runs)
        if bundle.dropped:
            self._drop_entries(bundle)
        if bundle.entries:
            self._add_entries(bundle.entries)
        if bundle.arrivals:
            self._change("arrival", bundle.arrivals, rows.arrival_row)
        if bundle.waits:
            self._change("wait", bundle.waits, rows.wait_row)
        if bundle.slots:
            self._link.each("put_slot", map(rows.slot_row, bundle.slots.values()))
        if bundle.sweeps:
            self._sweep(bundle)
        if bundle.letters:
            self._link.each("put_letter", map(rows.letter_row, bundle.letters.values()))
        if bundle.audits:
            self._link.each("add_audit", map(_audit_row, bundle.audits))
        if bundle.outgoing:
            self._link.each("put_outgoing", map(rows.outgoing_row, bundle.outgoing))

    def _change(self, table: str, rows: Mapping[Key, Any], write: Callable[[Any], Row]) -> None:
        dropped = [key for key, row in rows.items() if row is None]
        if dropped:
            self._link.each(f"drop_{table}", dropped)
        put = [write(row) for row in rows.values() if row is not None]
        if put:
            self._link.each(f"put_{table}", put)

    # --- runs ---

    def _save_runs(self, runs: Mapping[str, RunRecord]) -> None:
        self._look_up([run_id for run_id in runs if run_id not in self._known])
        plan: dict[str, list[Row]] = {statement: [] for statement in _RUN_STATEMENTS}
        for run in runs.values():
            was = self._known.get(run.id)
            if was is None:
                plan["put_run"].append(self._rows.new_run(run))
                plan["put_run_data"].append(self._rows.new_run_data(run))
            else:
                self._plan_change(plan, was, run)
            if (was.tags if was is not None else ()) != run.tags:
                plan["drop_tags"].append((run.id,))
                plan["put_tag"] += [(run.id, tag, value) for tag, value in run.tags]
        for statement, rows in plan.items():
            if rows:
                self._link.each(statement, rows)
        self._known.update(runs)

    def _look_up(self, run_ids: list[str]) -> None:
        if run_ids:
            found = self._link.each("load_run", [(run_id,) for run_id in run_ids])
            self._known.update((run.id, run) for run in self._rows.read(self._rows.run, found))

    def _plan_change(self, plan: dict[str, list[Row]], was: RunRecord, run: RunRecord) -> None:
        if phase(was.status) != phase(run.status) or _seldom(was) != _seldom(run):
            plan["set_run"].append(self._rows.set_run(run))
            if (was.result, was.error) != (run.result, run.error):
                plan["set_run_data"].append(self._rows.run_end(run))
        elif _place(was) != _place(run):
            plan["move_run"].append((*_counts(run), *_place(run)))
        elif _counts(was) != _counts(run):
            plan["count_run"].append(_counts(run))

    # --- journal ---

    def _drop_entries(self, bundle: Bundle) -> None:
        numbers = [(row.run_id, row.no) for row in bundle.dropped if row.no is not None]
        scopes = [(row.run_id, row.scope) for row in bundle.dropped if row.scope is not None]
        if numbers:
            self._link.each("drop_entry", numbers)
        if scopes:
            self._link.each("drop_scope", scopes)

    def _add_entries(self, entries: list[Entry]) -> None:
        """A number that is taken means that another worker has written on: the run is no longer ours."""
        at = entries[0]

        def rows() -> Iterator[Row]:
            nonlocal at
            for at in entries:
                yield self._rows.entry_row(at)

        try:
            self._link.each("add_entry", rows())
        except StoreError as error:
            if not isinstance(error.__cause__, apsw.ConstraintError):
                raise
            owner = self._known.get(at.run_id)
            raise LeaseLost(run_id=at.run_id, epoch=owner.epoch if owner is not None else 0) from error

    # --- an end ---

    def _sweep(self, bundle: Bundle) -> None:
        self._link.each("drop_waits", [(run_id,) for run_id in bundle.sweeps])
        asked = [(run_id,) for run_id, sweep in bundle.sweeps.items() if sweep.unread]
        if not asked:
            return
        unread = self._rows.read(self._rows.arrival, self._link.each("load_unread", asked))
        unread.sort(key=attrgetter("run_id", "no"))
        stale = [replace(arrival, status=ArrivalStatus.STALE) for arrival in unread]
        self._link.each("put_arrival", map(self._rows.arrival_row, stale))
        letters = [_letter(arrival, bundle.sweeps[arrival.run_id]) for arrival in unread]
        self._link.each("put_letter", map(self._rows.letter_row, letters))


def _letter(arrival: Arrival, sweep: Sweep) -> Letter:
    run_id, kind, name, key = arrival.run_id, arrival.kind, arrival.name, shown(arrival.key)
    payload, actor, reason = arrival.payload, arrival.actor, sweep.reason
    ident = letter_id(run_id, kind, name, key, payload, actor, reason)
    return Letter(ident, run_id, kind, name, key, payload, actor, reason, None, sweep.at_ms, sweep.until_ms)

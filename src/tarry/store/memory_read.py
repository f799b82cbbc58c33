"""Reading the memory store: keyset pages over its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tarry.core.states import ENDS
from tarry.model import (
    Arrival,
    ArrivalKind,
    Audit,
    Entry,
    Letter,
    Page,
    RunRecord,
    Status,
    Wait,
    WorkerRecord,
)
from tarry.store import cursor as cursors
from tarry.store.memory_tables import Tables
from tarry.store.protocol import Clock, LetterFilter, RunFilter, WaitFilter

R = TypeVar("R")

_WAIT = (int, str, str, str, str, int)


class MemoryReads:
    def __init__(self, tables: Tables, clock: Clock) -> None:
        self.tables = tables
        self.clock = clock

    def run(self, run_id: str) -> RunRecord | None:
        return self.tables.runs.get(run_id)

    def gone(self, run_id: str) -> bool:
        return run_id in self.tables.tombstones

    def statuses(self, run_ids: Sequence[str]) -> dict[str, Status]:
        runs = self.tables.runs
        return {run_id: runs[run_id].status for run_id in run_ids if run_id in runs}

    def runs(self, where: RunFilter, cursor: str | None, limit: int) -> Page[RunRecord]:
        rows = [run for run in self.tables.runs.values() if _run_fits(run, where)]
        return _page(rows, lambda run: (run.created_ms, run.id), (int, str), cursor, limit)

    def waits(self, where: WaitFilter, cursor: str | None, limit: int) -> Page[tuple[RunRecord, Wait]]:
        open_waits = [wait for wait in self.tables.waits.values() if wait.outcome is None]
        pairs = [(self.tables.runs[wait.run_id], wait) for wait in open_waits]
        rows = [(run, wait) for run, wait in pairs if _wait_fits(run, wait, where)]
        return _page(rows, lambda row: (row[1].opened_ms, row[1].run_id, *row[1].id), _WAIT, cursor, limit)

    def journal(self, run_id: str, cursor: str | None, limit: int) -> Page[Entry]:
        return _page(self.tables.of(self.tables.entries, run_id), lambda entry: (entry.no,), (int,), cursor, limit)

    def arrivals(self, run_id: str, cursor: str | None, limit: int) -> Page[Arrival]:
        return _page(self.tables.of(self.tables.arrivals, run_id), lambda a: (a.no,), (int,), cursor, limit)

    def arrival(self, run_id: str, kind: ArrivalKind, name: str, key: str) -> Arrival | None:
        number = self.tables.keys.get((run_id, kind, name, key))
        return None if number is None else self.tables.arrivals[run_id, number]

    def winner(self, run_id: str, name: str) -> Arrival | None:
        arrivals = self.tables.of(self.tables.arrivals, run_id)
        return next((a for a in arrivals if a.settles and a.name == name), None)

    def acked(self, run_id: str, channel: str) -> int:
        slot = self.tables.slots.get((run_id, ArrivalKind.CHANNEL, channel))
        return 0 if slot is None else slot.acked

    def letters(self, where: LetterFilter, cursor: str | None, limit: int) -> Page[Letter]:
        rows = [letter for letter in self.tables.letters.values() if _letter_fits(letter, where)]
        return _page(rows, lambda letter: (letter.at_ms, letter.id), (int, str), cursor, limit)

    def audit(self, run_id: str | None, cursor: str | None, limit: int) -> Page[Audit]:
        numbered = [(no, row) for no, row in self.tables.audits.items() if run_id in (None, row.run_id)]
        page = _page(numbered, lambda row: (row[0],), (int,), cursor, limit)
        return Page(tuple(row for _, row in page.rows), page.next_cursor)

    def workers(self) -> tuple[tuple[WorkerRecord, bool], ...]:
        return tuple((row, self.tables.alive(row, self.clock)) for row in self.tables.workers.values())

    def addresses(self) -> dict[str, str]:
        return {row.id: row.address for row, live in self.workers() if live and row.address}

    def due(self, workflows: Sequence[str]) -> bool:
        return bool(self.tables.due(workflows, self.clock.now_ms()))

    def due_runs(self, workflows: Sequence[str], limit: int) -> list[str]:
        return [run.id for run in self.tables.due(workflows, self.clock.now_ms())[:limit]]

    def next_due_ms(self, workflows: Sequence[str]) -> int | None:
        claimable = self.tables.claimable(frozenset(workflows))
        return min((run.due_ms for run in claimable if run.due_ms is not None), default=None)

    def change(self) -> int:
        return self.tables.changes

    def document(self, digest: str) -> bytes | None:
        return self.tables.documents.get(digest)


def _page(
    rows: Iterable[R], key: Callable[[R], tuple[Any, ...]], kinds: tuple[type, ...], cursor: str | None, limit: int
) -> Page[R]:
    cursors.check_limit(limit)
    after = cursors.read(cursor, kinds)
    ordered = sorted(((key(row), row) for row in rows), key=lambda pair: pair[0])
    if after is not None:
        ordered = [pair for pair in ordered if pair[0] > after]
    taken = ordered[:limit]
    more = len(ordered) > limit
    return Page(tuple(row for _, row in taken), cursors.write(*taken[-1][0]) if more else None)


def _run_fits(run: RunRecord, where: RunFilter) -> bool:
    return (
        where.workflow in (None, run.workflow)
        and where.status in (None, run.status)
        and (where.tag is None or where.tag in run.tags)
        and (where.prefix is None or run.id.startswith(where.prefix))
    )


def _wait_fits(run: RunRecord, wait: Wait, where: WaitFilter) -> bool:
    overdue, opened = where.overdue_at_ms, where.opened_before_ms
    return (
        run.status not in ENDS
        and where.run_id in (None, run.id)
        and where.workflow in (None, run.workflow)
        and where.name in (None, wait.name)
        and where.kind in (None, wait.kind)
        and (where.tag is None or where.tag in run.tags)
        and (overdue is None or (wait.deadline_ms is not None and wait.deadline_ms < overdue))
        and (opened is None or wait.opened_ms < opened)
    )


def _letter_fits(letter: Letter, where: LetterFilter) -> bool:
    return (
        where.run_id in (None, letter.run_id)
        and where.name in (None, letter.name)
        and where.reason in (None, letter.reason)
    )

"""Reading: lists for operators, and the present truth of one delivery (rules 4.5, 12.1).

Lists are keyset pages of 1 to 1000 rows (100 if not said), read in a thread, so that a long one holds up no
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from tarry.app import rows
from tarry.app.core import Core
from tarry.core.decide.letters import read_errors, shown
from tarry.core.durations import duration_ms
from tarry.core.names import check_key, check_name, check_run_id
from tarry.core.retry import Duration
from tarry.core.states import closing, over
from tarry.engine.names import Name
from tarry.errors import ReceiptNotFound, RunGone, RunNotFound
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Page,
    Receipt,
    ReceiptStatus,
    RunRecord,
    Status,
    WaitKind,
)
from tarry.store.protocol import LetterFilter, RunFilter, Store, WaitFilter

A = TypeVar("A")
B = TypeVar("B")


class Lists:
    """The reading half of App."""

    def open(self) -> Core:
        raise NotImplementedError

    async def runs(
        self,
        *,
        workflow: str | None = None,
        status: Status | str | None = None,
        tag: tuple[str, str] | None = None,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[rows.RunRow]:
        """Runs, oldest first; `prefix` of the id."""
        where = RunFilter(workflow, None if status is None else Status(status), tag, prefix)
        page = await asyncio.to_thread(self.open().store.runs, where, cursor, limit)
        return _mapped(page, rows.run_row)

    async def run(self, run_id: str) -> rows.RunRow:
        """One run. Raises RunNotFound, RunGone."""
        return rows.run_row(_found(self.open().store, check_run_id(run_id)))

    async def waits(
        self,
        *,
        run: str | None = None,
        workflow: str | None = None,
        name: str | None = None,
        kind: WaitKind | str | None = None,
        tag: tuple[str, str] | None = None,
        age: Duration | timedelta | None = None,
        overdue: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[rows.WaitRow]:
        """Open waits, oldest first: who waits for what. `age`: open for at least so long; `overdue`: past its
        deadline and not settled yet."""
        now = self.open().store.clock.now_ms()
        where = WaitFilter(
            run,
            workflow,
            name,
            None if kind is None else WaitKind(kind),
            tag,
            overdue_at_ms=now if overdue else None,
            opened_before_ms=None if age is None else now - duration_ms(age),
        )
        page = await asyncio.to_thread(self.open().store.waits, where, cursor, limit)
        return _mapped(page, lambda row: rows.wait_row(*row))

    async def journal(self, run_id: str, *, cursor: str | None = None, limit: int = 100) -> Page[rows.JournalRow]:
        """A run's journal, in order."""
        page = await asyncio.to_thread(self.open().store.journal, check_run_id(run_id), cursor, limit)
        return _mapped(page, rows.journal_row)

    async def dead_letters(
        self,
        *,
        run: str | None = None,
        name: str | None = None,
        reason: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[rows.LetterRow]:
        """What could not be applied, with the reason, for 30 days (rule 4.16)."""
        where = LetterFilter(run, name, reason)
        page = await asyncio.to_thread(self.open().store.letters, where, cursor, limit)
        return _mapped(page, rows.letter_row)

    async def workers(self) -> tuple[rows.WorkerRow, ...]:
        """All workers on file, and whether the lease of each is live."""
        found = await asyncio.to_thread(self.open().store.workers)
        return tuple(rows.worker_row(worker, live) for worker, live in found)

    async def receipt(self, run_id: str, name: str | Name[Any], key: str) -> Receipt:
        """The present truth of a delivery that took its key (rule 4.5). Raises ReceiptNotFound, RunNotFound."""
        store = self.open().store
        text = name if isinstance(name, str) else name.name
        kinds = tuple(ArrivalKind) if isinstance(name, str) else (name.kind,)
        check_key(key)
        run = _found(store, check_run_id(run_id))
        for kind in kinds:
            arrival = store.arrival(run_id, kind, check_name("name", text), key)
            if arrival is not None:
                return _receipt(store, run, arrival)
        raise ReceiptNotFound(run_id=run_id, name=text, key=key)


def _receipt(store: Store, run: RunRecord, arrival: Arrival) -> Receipt:
    status = _STATUS[arrival.status]
    if arrival.kind is ArrivalKind.CHANNEL and arrival.status is ArrivalStatus.BUFFERED:
        read = arrival.no <= store.acked(run.id, arrival.name)
        status = ReceiptStatus.DELIVERED if read else ReceiptStatus.BUFFERED
    reason = (closing(run) if over(run) else None) if status is ReceiptStatus.STALE else None
    retained = arrival
    if arrival.status is ArrivalStatus.ALREADY_SETTLED:
        retained = store.winner(run.id, arrival.name) or arrival
    return Receipt(
        run.id,
        arrival.name,
        status,
        shown(arrival.key),
        retained.payload,
        retained.actor,
        reason,
        read_errors(arrival.detail),
        arrival.no,
    )


_STATUS = {
    ArrivalStatus.DELIVERED: ReceiptStatus.DELIVERED,
    ArrivalStatus.BUFFERED: ReceiptStatus.BUFFERED,
    ArrivalStatus.ALREADY_SETTLED: ReceiptStatus.ALREADY_SETTLED,
    ArrivalStatus.INVALID: ReceiptStatus.INVALID,
    ArrivalStatus.STALE: ReceiptStatus.STALE,
}


def _found(store: Store, run_id: str) -> RunRecord:
    run = store.run(run_id)
    if run is None:
        raise RunGone(run_id=run_id) if store.gone(run_id) else RunNotFound(run_id=run_id)
    return run


def _mapped(page: Page[A], shape: Callable[[A], B]) -> Page[B]:
    return Page(tuple(shape(row) for row in page.rows), page.next_cursor)

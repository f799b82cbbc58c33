"""The store in memory: dictionaries, one transaction at a time, undone by a log.

It is what tests and the simulator run on, and the plainest reading of the seam: where it and a SQL store
differ, one of them is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from tarry.core.decide.letters import letter_id, shown
from tarry.core.journal import Journal, first_want
from tarry.core.view import (
    LIVE,
    DropArrival,
    DropEntries,
    DropWait,
    Loaded,
    Needs,
    Sweep,
    View,
    Write,
)
from tarry.errors import Closed, LeaseLost
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Audit,
    Entry,
    Letter,
    NameId,
    Outgoing,
    RunRecord,
    Slot,
    Wait,
    WorkerRecord,
)
from tarry.store.memory_read import MemoryReads
from tarry.store.memory_tables import Tables
from tarry.store.protocol import Clock


class MemoryStore(MemoryReads):
    """One process's store; gone with it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Tables(), clock)
        self._turn = threading.Lock()
        self._closed = False

    def begin(self, *, wait: bool = True) -> MemoryTransaction | None:
        if self._closed:
            raise Closed(what="store")
        if not self._turn.acquire(blocking=wait):
            return None
        return MemoryTransaction(self.tables, self.clock, self._turn.release)

    def landed(self, batch: str) -> bool:
        return False

    def tidy(self) -> None: ...

    def close(self) -> None:
        self._closed = True


class MemoryTransaction:
    def __init__(self, tables: Tables, clock: Clock, done: Callable[[], None]) -> None:
        self.now_ms = clock.now_ms()
        self._tables = tables
        self._clock = clock
        self._done = done
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def __enter__(self) -> MemoryTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for table, key, old in reversed(self._undo):
            if old is None:
                table.pop(key, None)
            else:
                table[key] = old
        self._undo.clear()
        self._done()

    def commit(self, batch: str = "") -> None:
        if self._undo:
            self._tables.changes += 1
        self._undo.clear()

    def _set(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        self._undo.append((table, key, table.get(key)))
        table[key] = row

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            self._undo.append((table, key, table.pop(key)))

    # --- load ---

    def load(self, needs: Mapping[str, Needs]) -> dict[str, View]:
        return {run_id: self._view(run_id, need) for run_id, need in needs.items()}

    def _view(self, run_id: str, need: Needs) -> View:
        tables = self._tables
        waits = {wait.id: wait for wait in tables.of(tables.waits, run_id)}
        arrivals = tables.of(tables.arrivals, run_id)
        settling = {wait.arrival for wait in waits.values() if wait.arrival is not None}
        entries = {entry.no: entry for entry in tables.of(tables.entries, run_id)} if need.entries else {}
        return View(
            run=tables.runs.get(run_id),
            schema=tables.documents.__getitem__,
            gone=run_id in tables.tombstones,
            waits=waits,
            keys=Loaded({key: tables.by_key(run_id, key) for key in need.keys}),
            live=Loaded({name: _live(arrivals, name) for name in need.names}),
            slots=Loaded({name: tables.slot(run_id, name) for name in need.names}),
            pages={want: tables.page(run_id, want) for want in need.wants},
            settled={arrival.no: arrival for arrival in arrivals if arrival.no in settling},
            entries=entries,
            last_entry=max(entries, default=0),
        )

    # --- save ---

    def save(self, writes: Sequence[Write]) -> None:
        for row in writes:
            _SAVE[type(row)](self, row)

    def _save_run(self, row: RunRecord) -> None:
        self._set(self._tables.runs, row.id, row)

    def _save_wait(self, row: Wait) -> None:
        self._set(self._tables.waits, (row.run_id, *row.id), row)

    def _save_arrival(self, row: Arrival) -> None:
        self._set(self._tables.arrivals, (row.run_id, row.no), row)
        self._set(self._tables.keys, (row.run_id, row.kind, row.name, row.key), row.no)

    def _save_slot(self, row: Slot) -> None:
        self._set(self._tables.slots, (row.run_id, row.kind, row.name), row)

    def _save_entry(self, row: Entry) -> None:
        if (row.run_id, row.no) in self._tables.entries:
            raise LeaseLost(run_id=row.run_id, epoch=0)
        self._set(self._tables.entries, (row.run_id, row.no), row)

    def _save_letter(self, row: Letter) -> None:
        self._set(self._tables.letters, row.id, row)

    def _save_audit(self, row: Audit) -> None:
        self._set(self._tables.audits, len(self._tables.audits), row)

    def _save_outgoing(self, row: Outgoing) -> None:
        self._set(self._tables.outgoing, (row.run_id, row.no), row)

    def _drop_wait(self, row: DropWait) -> None:
        self._drop(self._tables.waits, (row.run_id, *row.wait))

    def _drop_arrival(self, row: DropArrival) -> None:
        self._drop(self._tables.arrivals, (row.run_id, row.no))
        self._drop(self._tables.keys, (row.run_id, row.kind, row.name, row.key))

    def _drop_entries(self, row: DropEntries) -> None:
        for entry in list(self._tables.of(self._tables.entries, row.run_id)):
            if entry.no == row.no or (row.scope is not None and entry.scope.startswith(row.scope)):
                self._drop(self._tables.entries, (row.run_id, entry.no))

    def _sweep(self, row: Sweep) -> None:
        tables = self._tables
        for wait in list(tables.of(tables.waits, row.run_id)):
            self._drop(tables.waits, (row.run_id, *wait.id))
        for arrival in list(tables.of(tables.arrivals, row.run_id)) if row.unread else []:
            if _unread(tables, arrival):
                self._save_arrival(replace(arrival, status=ArrivalStatus.STALE))
                self._save_letter(_letter(arrival, row))

    # --- what concerns no single run ---

    def intern(self, documents: Mapping[str, bytes]) -> None:
        for digest, document in documents.items():
            if digest not in self._tables.documents:
                self._set(self._tables.documents, digest, document)

    def due(self, workflows: Sequence[str], limit: int) -> list[tuple[str, str]]:
        return [(run.id, run.workflow) for run in self._tables.due(workflows, self.now_ms)[:limit]]

    def held(self, worker: str) -> list[tuple[str, int]]:
        return [(run.id, run.epoch) for run in self._tables.runs.values() if run.worker == worker]

    def orphans(self, limit: int) -> list[tuple[str, str]]:
        runs = self._tables.runs.values()
        owned = [(run.id, run.worker) for run in runs if run.worker is not None]
        return [(run_id, worker) for run_id, worker in owned if not self.live(worker)][:limit]

    def journals(self, claimed: Sequence[View]) -> list[Journal]:
        return [self._journal(view) for view in claimed]

    def _journal(self, view: View) -> Journal:
        run = view.run
        assert run is not None
        tables = self._tables
        entries = tuple(tables.of(tables.entries, run.id))
        arrivals = [a for a in tables.of(tables.arrivals, run.id) if a.kind is ArrivalKind.SIGNAL]
        channels = {a.name for a in tables.of(tables.arrivals, run.id) if a.kind is ArrivalKind.CHANNEL}
        channels |= {s.name for s in tables.of(tables.slots, run.id) if s.kind is ArrivalKind.CHANNEL}
        slots = {name: tables.slot(run.id, NameId(ArrivalKind.CHANNEL, name)) for name in channels}
        messages = {name: tables.page(run.id, first_want(slot, entries)) for name, slot in slots.items()}
        waits = tuple(view.waits.values())
        return Journal(run, entries, waits, {a.no: a for a in arrivals}, slots, messages)

    def register(self, worker: WorkerRecord) -> None:
        self._set(self._tables.workers, worker.id, worker)

    def beat(self, worker: WorkerRecord) -> bool:
        if worker.id not in self._tables.workers:
            return False
        self._set(self._tables.workers, worker.id, worker)
        return True

    def leave(self, worker: str) -> None:
        self._drop(self._tables.workers, worker)

    def live(self, worker: str) -> bool:
        row = self._tables.workers.get(worker)
        return row is not None and self._tables.alive(row, self._clock)

    def lapsed(self) -> list[str]:
        owners = {run.worker for run in self._tables.runs.values()}
        return [w for w in self._tables.workers if w not in owners and not self.live(w)]

    def outgoing(self, limit: int) -> list[Outgoing]:
        return list(self._tables.outgoing.values())[:limit]

    def drop_outgoing(self, rows: Sequence[Outgoing]) -> None:
        for row in rows:
            self._drop(self._tables.outgoing, (row.run_id, row.no))

    def expire_letters(self, limit: int) -> int:
        old = [letter.id for letter in self._tables.letters.values() if letter.until_ms <= self.now_ms]
        for letter_key in old[:limit]:
            self._drop(self._tables.letters, letter_key)
        return len(old[:limit])


def _live(arrivals: Sequence[Arrival], name: NameId) -> list[Arrival]:
    if name.kind is ArrivalKind.CHANNEL:
        return []
    return [a for a in arrivals if a.kind is name.kind and a.name == name.name and a.status in LIVE]


def _unread(tables: Tables, arrival: Arrival) -> bool:
    if arrival.status is not ArrivalStatus.BUFFERED:
        return False
    acked = tables.slot(arrival.run_id, NameId(arrival.kind, arrival.name)).acked
    return arrival.kind is ArrivalKind.SIGNAL or arrival.no > acked


def _letter(arrival: Arrival, row: Sweep) -> Letter:
    key = shown(arrival.key)
    ident = letter_id(arrival.run_id, arrival.kind, arrival.name, key, arrival.payload, arrival.actor, row.reason)
    return Letter(
        ident,
        arrival.run_id,
        arrival.kind,
        arrival.name,
        key,
        arrival.payload,
        arrival.actor,
        row.reason,
        None,
        row.at_ms,
        row.until_ms,
    )


_SAVE: dict[type, Callable[[MemoryTransaction, Any], None]] = {
    RunRecord: MemoryTransaction._save_run,  # pyright: ignore[reportPrivateUsage]
    Wait: MemoryTransaction._save_wait,  # pyright: ignore[reportPrivateUsage]
    Arrival: MemoryTransaction._save_arrival,  # pyright: ignore[reportPrivateUsage]
    Slot: MemoryTransaction._save_slot,  # pyright: ignore[reportPrivateUsage]
    Entry: MemoryTransaction._save_entry,  # pyright: ignore[reportPrivateUsage]
    Letter: MemoryTransaction._save_letter,  # pyright: ignore[reportPrivateUsage]
    Audit: MemoryTransaction._save_audit,  # pyright: ignore[reportPrivateUsage]
    Outgoing: MemoryTransaction._save_outgoing,  # pyright: ignore[reportPrivateUsage]
    DropWait: MemoryTransaction._drop_wait,  # pyright: ignore[reportPrivateUsage]
    DropArrival: MemoryTransaction._drop_arrival,  # pyright: ignore[reportPrivateUsage]
    DropEntries: MemoryTransaction._drop_entries,  # pyright: ignore[reportPrivateUsage]
    Sweep: MemoryTransaction._sweep,  # pyright: ignore[reportPrivateUsage]
}

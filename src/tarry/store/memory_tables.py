"""The tables of the memory store: plain dictionaries by primary key, whose first part is the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tarry.core.commands import Want
from tarry.core.states import CLAIMABLE
from tarry.model import (
    Arrival,
    ArrivalKind,
    Audit,
    Entry,
    KeyId,
    Letter,
    NameId,
    Outgoing,
    RunRecord,
    Slot,
    Wait,
    WorkerRecord,
)
from tarry.store.protocol import Clock

R = TypeVar("R")


@dataclass
class Tables:
    runs: dict[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    tombstones: dict[str, int] = field(default_factory=dict[str, int])
    entries: dict[tuple[Any, ...], Entry] = field(default_factory=dict[tuple[Any, ...], Entry])
    waits: dict[tuple[Any, ...], Wait] = field(default_factory=dict[tuple[Any, ...], Wait])
    arrivals: dict[tuple[Any, ...], Arrival] = field(default_factory=dict[tuple[Any, ...], Arrival])
    keys: dict[tuple[Any, ...], int] = field(default_factory=dict[tuple[Any, ...], int])
    slots: dict[tuple[Any, ...], Slot] = field(default_factory=dict[tuple[Any, ...], Slot])
    letters: dict[str, Letter] = field(default_factory=dict[str, Letter])
    audits: dict[int, Audit] = field(default_factory=dict[int, Audit])
    outgoing: dict[tuple[Any, ...], Outgoing] = field(default_factory=dict[tuple[Any, ...], Outgoing])
    workers: dict[str, WorkerRecord] = field(default_factory=dict[str, WorkerRecord])
    documents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    changes: int = 0

    def of(self, table: Mapping[tuple[Any, ...], R], run_id: str) -> list[R]:
        """A run's rows of one table, in the order of their keys."""
        return [table[key] for key in sorted(key for key in table if key[0] == run_id)]

    def by_key(self, run_id: str, key: KeyId) -> Arrival | None:
        number = self.keys.get((run_id, *key))
        return None if number is None else self.arrivals[run_id, number]

    def slot(self, run_id: str, name: NameId) -> Slot:
        return self.slots.get((run_id, *name)) or Slot(run_id, name.kind, name.name)

    def page(self, run_id: str, want: Want) -> list[Arrival]:
        messages = [
            a
            for a in self.of(self.arrivals, run_id)
            if a.kind is ArrivalKind.CHANNEL and a.name == want.channel and a.no > want.after
        ]
        return messages[: want.limit]

    def due(self, workflows: Sequence[str], now_ms: int) -> list[RunRecord]:
        known = frozenset(workflows)
        found = [run for run in self.claimable(known) if (run.due_ms or 0) <= now_ms]
        return sorted(found, key=lambda run: (run.due_ms or 0, run.id))

    def claimable(self, workflows: Iterable[str]) -> list[RunRecord]:
        return [
            run
            for run in self.runs.values()
            if run.status in CLAIMABLE and run.due_ms is not None and run.workflow in workflows
        ]

    def alive(self, worker: WorkerRecord, clock: Clock) -> bool:
        return worker.boot == clock.boot and worker.lease_until_ms > clock.lease_ms()

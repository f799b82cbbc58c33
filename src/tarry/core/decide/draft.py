"""The sheet on which one command's decision is worked out.

It reads the run as on file through its view and keeps what it changes to itself: the view stays as it was, so
that a command which is refused half-way has changed nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tarry.core import accepts
from tarry.core.states import at_once, move
from tarry.core.view import LIVE, DropWait, View, Write
from tarry.model import (
    Arrival,
    ArrivalKind,
    Audit,
    Limits,
    NameId,
    RunRecord,
    Slot,
    Status,
    Wait,
    WaitId,
    WaitKind,
)

LIMITS = Limits()
DAY_MS = 86_400_000
LETTER_TTL_MS = 30 * DAY_MS


class Draft:
    """`run` and `waits` are as changed so far; `writes` are the rows to save beside the run's own."""

    def __init__(self, view: View, run: RunRecord, now: int) -> None:
        self.view = view
        self.run = run
        self.now = now
        self.waits = dict(view.waits)
        self.writes: list[Write] = []
        self._arrivals: dict[int, Arrival] = {}

    def rows(self) -> tuple[Write, ...]:
        if self.run is not self.view.run:
            return (self.run, *self.writes)
        return tuple(self.writes)

    def put(self, row: Write) -> None:
        self.writes.append(row)
        if isinstance(row, Arrival):
            self._arrivals[row.no] = row

    def set(self, **changes: Any) -> None:
        self.run = replace(self.run, changed_ms=self.now, **changes)

    def move(self, to: Status, **changes: Any) -> None:
        self.run = move(self.run, to, self.now, **changes)

    def number(self) -> int:
        """The next number in the run's one count of arrivals and outcomes."""
        self.set(arrivals=self.run.arrivals + 1)
        return self.run.arrivals

    def accepts(self) -> accepts.Accepts:
        if self.run.accepts is None:
            return accepts.UNDECLARED
        return accepts.read(self.view.schema(self.run.accepts))

    def put_wait(self, wait: Wait) -> None:
        self.waits[wait.id] = wait
        self.writes.append(wait)

    def drop_wait(self, wait: WaitId) -> None:
        del self.waits[wait]
        self.writes.append(DropWait(self.run.id, wait))

    def open_waits(self, kind: WaitKind, name: str) -> list[Wait]:
        return [w for w in self.waits.values() if w.kind is kind and w.name == name and w.outcome is None]

    def close_name(self, wait: Wait, reason: str) -> None:
        """Remembers why a signal's round closed without a payload: its late senders are told."""
        if wait.kind is WaitKind.SIGNAL and not wait.late:
            slot = Slot(self.run.id, ArrivalKind.SIGNAL, wait.name, closed=reason, closed_ms=self.now)
            self.writes.append(slot)

    def slot(self, kind: ArrivalKind, name: str) -> Slot:
        """A name's slot, with what this decision has already written to it."""
        for row in reversed(self.writes):
            if isinstance(row, Slot) and row.kind is kind and row.name == name:
                return row
        return self.view.slots[NameId(kind, name)]

    def arrival(self, on_file: Arrival) -> Arrival:
        """An arrival as this decision has left it: two waits of one turn may take the same one."""
        return self._arrivals.get(on_file.no, on_file)

    def live(self, name: str) -> list[Arrival]:
        """The deliveries of a signal that count, in order."""
        on_file = self.view.live[NameId(ArrivalKind.SIGNAL, name)]
        return [arrival for arrival in map(self.arrival, on_file) if arrival.status in LIVE]

    def buffer(self, arrival: Arrival, sign: int) -> None:
        """Counts a buffered arrival in (+1) or out (-1), for the run's limits and its unread letters."""
        self.set(
            buffered=self.run.buffered + sign,
            buffered_bytes=self.run.buffered_bytes + sign * len(arrival.payload),
        )

    def audit(self, actor: str | None, action: str, detail: str = "") -> None:
        self.writes.append(Audit(self.run.id, actor, action, detail, self.now))

    def wake(self) -> None:
        """A paused run has something to take in."""
        if self.run.status is Status.WAITING:
            self.move(Status.READY, due_ms=at_once(self.now))

    def rouse(self) -> None:
        """The run is looked at now, be it paused or put off until later."""
        self.wake()
        if self.run.status is Status.READY:
            self.set(due_ms=self.now)

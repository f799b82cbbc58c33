"""What holds of the rows after every commit, whoever made it.

The one that matters most: a paused run has nothing on file that would answer one of its waits. Safety alone
does not see a lost wake-up; this does, at the commit that loses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tarry.core.commands import Advance, Record
from tarry.core.states import ENDS, TRANSITIONS
from tarry.model import ArrivalKind, ArrivalStatus, NameId, Outcome, RunRecord, Status, Wait, WaitKind
from tarry.store.memory_tables import Tables

TIMERS = (WaitKind.TIMER, WaitKind.RETRY)


class Invariants:
    """Remembers each run and wait as the last commit left it, to judge the next."""

    def __init__(self) -> None:
        self._runs: dict[str, RunRecord] = {}
        self._waits: dict[tuple[object, ...], Wait] = {}
        self._workers: set[str] = set()
        self._left: set[str] = set()

    def check(self, tables: Tables, now_ms: int, items: Sequence[object]) -> Iterator[str]:
        yield from self._workers_rows(tables)
        for item in items:
            if isinstance(item, Advance):
                yield from self._placed(tables, item)
        for run in tables.runs.values():
            before = self._runs.get(run.id)
            if before is not run:
                yield from _moved(before, run)
                self._runs[run.id] = run
            yield from _stands(tables, run)
        yield from self._waits_rows(tables, now_ms)

    def _placed(self, tables: Tables, command: Advance) -> Iterator[str]:
        """What a pass places in the journal is what a transaction before it had decided, and nothing else."""
        for part in command.parts:
            if not isinstance(part, Record) or part.wait is None or part.wait.kind is WaitKind.CHANNEL:
                continue
            wait = self._waits.get((command.run_id, *part.wait))
            landed = tables.entries.get((command.run_id, part.entry.no))
            taken = landed is not None and landed.id == part.entry.id
            if taken and wait is not None and wait.outcome is not part.entry.outcome:
                yield f"{part.wait} was placed as {part.entry.outcome}, and on file it was {wait.outcome}"

    def _workers_rows(self, tables: Tables) -> Iterator[str]:
        """A worker that was reaped stays gone: what it held is somebody else's."""
        here = set(tables.workers)
        self._left |= self._workers - here
        self._workers = here
        for worker in sorted(here & self._left):
            yield f"worker {worker} had gone, and holds a lease again"

    def _waits_rows(self, tables: Tables, now_ms: int) -> Iterator[str]:
        for key, wait in tables.waits.items():
            before = self._waits.get(key)
            if before is wait:
                continue
            if before is not None and before.deadline_ms != wait.deadline_ms:
                yield f"the deadline of {wait.id} moved from {before.deadline_ms} to {wait.deadline_ms}"
            if before is None or before.outcome is not wait.outcome:
                yield from _settled(wait, now_ms)
        self._waits = dict(tables.waits)


def _settled(wait: Wait, now_ms: int) -> Iterator[str]:
    past = wait.deadline_ms is not None and wait.deadline_ms <= now_ms
    if wait.outcome in (Outcome.TIMEOUT, Outcome.FIRED) and not past:
        yield f"{wait.id} timed out at {now_ms}, before its deadline {wait.deadline_ms}"
    opened_settled = wait.opened_ms == now_ms
    if wait.outcome is Outcome.OK and past and not opened_settled:
        yield f"{wait.id} was settled by a payload at {now_ms}, past its deadline {wait.deadline_ms}"


def _moved(before: RunRecord | None, run: RunRecord) -> Iterator[str]:
    if before is None:
        return
    if run.epoch < before.epoch:
        yield f"the epoch of {run.id} fell from {before.epoch} to {run.epoch}"
    if before.status in ENDS and replace(run, changed_ms=before.changed_ms) != before:
        yield f"{run.id} was {before.status} and changed afterwards"
    reachable = {run.status} | TRANSITIONS[before.status]
    reachable |= {status for middle in TRANSITIONS[before.status] for status in TRANSITIONS[middle]}
    if run.status not in reachable:
        yield f"{run.id} went from {before.status} to {run.status}"


def _stands(tables: Tables, run: RunRecord) -> Iterator[str]:
    if (run.status is Status.RUNNING) != (run.worker is not None):
        yield f"{run.id} is {run.status}, and its worker is {run.worker}"
    waits = [wait for key, wait in tables.waits.items() if key[0] == run.id]
    if run.status in ENDS and waits:
        yield f"{run.id} has ended and still waits: {waits}"
    if run.status is Status.WAITING:
        yield from _parked(tables, run, waits)


def _parked(tables: Tables, run: RunRecord, waits: list[Wait]) -> Iterator[str]:
    if not waits:
        yield f"{run.id} waits for nothing"
    settled = [wait.id for wait in waits if wait.outcome is not None]
    if settled:
        yield f"{run.id} is parked beside what answers it: {settled}"
    deadlines = [wait.deadline_ms for wait in waits if wait.deadline_ms is not None]
    if deadlines and (run.due_ms is None or run.due_ms > min(deadlines)):
        yield f"{run.id} is parked until {run.due_ms}, past the deadline {min(deadlines)}"
    for wait in waits:
        if wait.kind is WaitKind.CHANNEL and _readable(tables, run, wait):
            yield f"{run.id} is parked beside a message that it waits for: {wait.id}, cursor {wait.cursor}"
        if wait.kind is WaitKind.SIGNAL and _answered(tables, run, wait):
            yield f"{run.id} is parked beside a payload that it waits for: {wait.id}"


def _readable(tables: Tables, run: RunRecord, wait: Wait) -> bool:
    slot = tables.slot(run.id, NameId(ArrivalKind.CHANNEL, wait.name))
    unread = (
        a.kind is ArrivalKind.CHANNEL
        and a.name == wait.name
        and a.no > max(wait.cursor, slot.acked)
        and a.status is not ArrivalStatus.INVALID
        for key, a in tables.arrivals.items()
        if key[0] == run.id
    )
    return any(unread) or (slot.closed is not None and wait.group is None)  # a channel's end wins no race


def _answered(tables: Tables, run: RunRecord, wait: Wait) -> bool:
    return any(
        a.kind is ArrivalKind.SIGNAL and a.name == wait.name and a.settles
        for key, a in tables.arrivals.items()
        if key[0] == run.id
    )

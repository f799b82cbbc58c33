"""Rows and records: which column is which field, and where payloads are sealed and opened.

Columns stand in the order of the record's fields wherever a statement says `select *`. What sealed bytes
belong to is written so that no row can be taken for another: the number first, then the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from tarry.errors import StoreCorrupt
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Blocked,
    Entry,
    EntryKind,
    Letter,
    Outcome,
    Outgoing,
    RunRecord,
    Slot,
    Status,
    Wait,
    WaitKind,
    WorkerRecord,
)
from tarry.store.protocol import Sealer
from tarry.store.sqlite_link import Row

R = TypeVar("R")

_STATUS = {member.value: member for member in Status}
_BLOCKED: dict[str | None, Blocked | None] = {None: None} | {member.value: member for member in Blocked}
_ENTRY = {member.value: member for member in EntryKind}
_RESULT = {member.value: member for member in Outcome}
_OUTCOME: dict[str | None, Outcome | None] = {None: None} | _RESULT
_WAIT = {member.value: member for member in WaitKind}
_KIND = {member.value: member for member in ArrivalKind}
_ARRIVAL = {member.value: member for member in ArrivalStatus}
_LIVE = (Status.READY, Status.RUNNING, Status.WAITING)


def phase(status: Status) -> str:
    """The status for lists, with those as one through which a live run goes all the time."""
    return "live" if status in _LIVE else status.value


class Rows:
    """Both ways for every table that holds payloads, under one sealer."""

    def __init__(self, sealer: Sealer, path: str) -> None:
        self._seal = sealer.seal
        self._open = sealer.open
        self.path = path

    def read(self, make: Callable[[Row], R], rows: Iterable[Row]) -> list[R]:
        """Records of rows. A row that means nothing is damaged: better no answer than a wrong one."""
        try:
            return [make(row) for row in rows]
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            reason = f"a row of a {make.__name__} is not one: {error!r}"
            raise StoreCorrupt(path=self.path, reason=reason) from error

    def _sealed(self, data: bytes | None, context: str) -> bytes | None:
        return None if data is None else self._seal(data, context)

    def _opened(self, data: bytes | None, context: str) -> bytes | None:
        return None if data is None else self._open(data, context)

    # --- runs ---

    def run(self, row: Row) -> RunRecord:
        (
            run_id, workflow, status, given, tags, accepts, due_ms, deadline_ms, epoch, worker, arrivals, buffered,
            buffered_bytes, crashes, attempt, cancelling, expiring, cancel_actor, blocked, reason, result, error,
            culprit, created_ms, changed_ms, ended_ms, *_,
        ) = row  # fmt: skip
        return RunRecord(
            run_id, workflow, _STATUS[status], self._open(given, f"input:{run_id}"), _tags(tags), accepts, due_ms,
            deadline_ms, epoch, worker, arrivals, buffered, buffered_bytes, crashes, attempt, cancelling == 1,
            expiring == 1, cancel_actor, _BLOCKED[blocked], reason, self._opened(result, f"result:{run_id}"),
            self._opened(error, f"error:{run_id}"), culprit, created_ms, changed_ms, ended_ms,
        )  # fmt: skip

    def new_run(self, run: RunRecord) -> Row:
        return (
            run.id,
            run.workflow,
            run.status,
            phase(run.status),
            _tag_text(run),
            run.accepts,
            run.due_ms,
            run.deadline_ms,
            run.epoch,
            run.worker,
            run.arrivals,
            run.buffered,
            run.buffered_bytes,
            run.crashes,
            run.attempt,
            run.cancelling,
            run.expiring,
            run.cancel_actor,
            run.blocked,
            run.reason,
            run.culprit,
            run.created_ms,
            run.changed_ms,
            run.ended_ms,
        )

    def set_run(self, run: RunRecord) -> Row:
        """All that can change of a run. Its workflow and input never do."""
        new = self.new_run(run)
        return (run.id, *new[2:21], *new[22:])

    def new_run_data(self, run: RunRecord) -> Row:
        return (run.id, self._seal(run.input, f"input:{run.id}"), *self.run_end(run)[1:])

    def run_end(self, run: RunRecord) -> Row:
        return (
            run.id,
            self._sealed(run.result, f"result:{run.id}"),
            self._sealed(run.error, f"error:{run.id}"),
        )

    # --- the tables of a run ---

    def entry(self, row: Row) -> Entry:
        return Entry(
            row[0],
            row[1],
            _ENTRY[row[2]],
            row[3],
            row[4],
            row[5],
            _RESULT[row[6]],
            self._opened(row[7], f"entry:{row[1]}:{row[0]}"),
            *row[8:],
        )

    def entry_row(self, entry: Entry) -> Row:
        return (
            entry.run_id,
            entry.no,
            entry.kind,
            entry.scope,
            entry.name,
            entry.round,
            entry.outcome,
            self._sealed(entry.value, f"entry:{entry.no}:{entry.run_id}"),
            entry.digest,
            entry.arrival,
            entry.at_ms,
        )

    def wait(self, row: Row) -> Wait:
        (
            run_id, kind, scope, name, round, group, member, deadline_ms, schema, early, late, cursor, opened_ms,
            outcome, number, arrival,
        ) = row  # fmt: skip
        return Wait(
            run_id, _WAIT[kind], scope, name, round, group, member, deadline_ms, schema, early == 1, late == 1,
            cursor, opened_ms, _OUTCOME[outcome], number, arrival,
        )  # fmt: skip

    def wait_row(self, wait: Wait) -> Row:
        return (
            wait.run_id,
            wait.kind,
            wait.scope,
            wait.name,
            wait.round,
            wait.group,
            wait.member,
            wait.deadline_ms,
            wait.schema,
            wait.early,
            wait.late,
            wait.cursor,
            wait.opened_ms,
            wait.outcome,
            wait.number,
            wait.arrival,
        )

    def arrival(self, row: Row) -> Arrival:
        return Arrival(
            row[0],
            row[1],
            _KIND[row[2]],
            row[3],
            row[4],
            self._open(row[5], f"arrival:{row[1]}:{row[0]}"),
            row[6],
            _ARRIVAL[row[7]],
            row[8] == 1,
            row[9],
            row[10],
        )

    def arrival_row(self, arrival: Arrival) -> Row:
        return (
            arrival.run_id,
            arrival.no,
            arrival.kind,
            arrival.name,
            arrival.key,
            self._seal(arrival.payload, f"arrival:{arrival.no}:{arrival.run_id}"),
            arrival.actor,
            arrival.status,
            arrival.settles,
            arrival.detail,
            arrival.at_ms,
        )

    def slot(self, row: Row) -> Slot:
        state = self._opened(row[4], _state(row[0], row[2]))
        return Slot(row[0], _KIND[row[1]], row[2], row[3], state, row[5], row[6])

    def slot_row(self, slot: Slot) -> Row:
        state = self._sealed(slot.state, _state(slot.run_id, slot.name))
        return (slot.run_id, slot.kind, slot.name, slot.acked, state, slot.closed, slot.closed_ms)

    def letter(self, row: Row) -> Letter:
        payload = self._open(row[5], f"letter:{row[0]}")
        return Letter(row[0], row[1], _KIND[row[2]], row[3], row[4], payload, *row[6:11])

    def letter_row(self, letter: Letter) -> Row:
        return (
            letter.id,
            letter.run_id,
            letter.kind,
            letter.name,
            letter.key,
            self._seal(letter.payload, f"letter:{letter.id}"),
            letter.actor,
            letter.reason,
            letter.detail,
            letter.at_ms,
            letter.until_ms,
        )

    # --- the rest ---

    def outgoing(self, row: Row) -> Outgoing:
        body = self._open(row[4], f"outgoing:{row[1]}:{row[0]}")
        return Outgoing(row[0], row[1], row[2], row[3], body, row[5])

    def outgoing_row(self, row: Outgoing) -> Row:
        body = self._seal(row.body, f"outgoing:{row.no}:{row.run_id}")
        return (row.run_id, row.no, row.target, row.action, body, row.at_ms)

    def worker(self, row: Row) -> WorkerRecord:
        worker, boot, lease_until_ms, address, host, pid, workflows, started_ms, beat_ms = row
        known = tuple(json.loads(workflows))
        return WorkerRecord(worker, boot, lease_until_ms, address, host, pid, known, started_ms, beat_ms)

    def worker_row(self, worker: WorkerRecord) -> Row:
        return (
            worker.id,
            worker.boot,
            worker.lease_until_ms,
            worker.address,
            worker.host,
            worker.pid,
            json.dumps(worker.workflows),
            worker.started_ms,
            worker.beat_ms,
        )


def _state(run_id: str, name: str) -> str:
    """Told apart by the length: either part may contain a colon."""
    return f"state:{len(run_id)}:{run_id}:{name}"


def _tags(text: str | None) -> tuple[tuple[str, str], ...]:
    return () if text is None else tuple((tag, value) for tag, value in json.loads(text))


def _tag_text(run: RunRecord) -> str | None:
    return json.dumps(run.tags) if run.tags else None

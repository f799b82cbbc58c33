"""What lists show: records with times as datetimes, and without payloads (rule 12.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tarry.core.codec import decode_error
from tarry.core.decide import letters
from tarry.core.durations import from_ms
from tarry.model import Entry, FieldError, Letter, RunRecord, Status, Wait, WorkerRecord


@dataclass(frozen=True)
class RunRow:
    id: str
    workflow: str
    status: Status
    tags: dict[str, str]
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    due_at: datetime | None
    deadline: datetime | None
    attempt: int
    worker: str | None
    cancelling: bool
    expiring: bool
    blocked: str | None
    reason: str | None
    error: str | None


@dataclass(frozen=True)
class WaitRow:
    """`assignee` and `context` are a question's."""

    run: str
    workflow: str
    kind: str
    scope: str
    name: str
    attempt: int
    opened_at: datetime
    deadline: datetime | None
    assignee: str | None = None
    context: bytes | None = None


@dataclass(frozen=True)
class JournalRow:
    no: int
    kind: str
    scope: str
    name: str
    round: int
    outcome: str
    at: datetime
    value: bytes | None
    arrival: int | None


@dataclass(frozen=True)
class LetterRow:
    id: str
    run: str
    kind: str
    name: str
    key: str | None
    actor: str | None
    reason: str
    errors: tuple[FieldError, ...]
    size: int
    at: datetime
    until: datetime


@dataclass(frozen=True)
class WorkerRow:
    id: str
    host: str
    pid: int
    live: bool
    workflows: tuple[str, ...]
    started_at: datetime
    beat_at: datetime


def run_row(run: RunRecord) -> RunRow:
    record = decode_error(run.error) if run.error is not None else None
    return RunRow(
        run.id,
        run.workflow,
        run.status,
        dict(run.tags),
        from_ms(run.created_ms),
        from_ms(run.changed_ms),
        _time(run.ended_ms),
        _time(run.due_ms) if run.due_ms is not None and run.due_ms > 0 else None,
        _time(run.deadline_ms),
        run.attempt,
        run.worker,
        run.cancelling,
        run.expiring,
        run.blocked.value if run.blocked is not None else None,
        run.reason,
        f"{record.type}: {record.message}" if record is not None else None,
    )


def wait_row(run: RunRecord, wait: Wait) -> WaitRow:
    return WaitRow(
        run.id,
        run.workflow,
        wait.kind.value,
        wait.scope,
        wait.name,
        wait.round + 1,
        from_ms(wait.opened_ms),
        _time(wait.deadline_ms),
    )


def journal_row(entry: Entry) -> JournalRow:
    return JournalRow(
        entry.no,
        entry.kind.value,
        entry.scope,
        entry.name,
        entry.round,
        entry.outcome.value,
        from_ms(entry.at_ms),
        entry.value,
        entry.arrival,
    )


def letter_row(letter: Letter) -> LetterRow:
    return LetterRow(
        letter.id,
        letter.run_id,
        letter.kind.value,
        letter.name,
        letter.key,
        letter.actor,
        letter.reason,
        letters.read_errors(letter.detail),
        len(letter.payload),
        from_ms(letter.at_ms),
        from_ms(letter.until_ms),
    )


def worker_row(worker: WorkerRecord, live: bool) -> WorkerRow:
    return WorkerRow(
        worker.id,
        worker.host,
        worker.pid,
        live,
        worker.workflows,
        from_ms(worker.started_ms),
        from_ms(worker.beat_ms),
    )


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)

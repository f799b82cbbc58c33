"""Reading beside the writers: single rows, and what a worker looks at before it asks for more."""

from __future__ import annotations

from collections.abc import Sequence

from tarry.model import Arrival, ArrivalKind, RunRecord, Status, WorkerRecord
from tarry.store.protocol import Clock
from tarry.store.sqlite_links import Links
from tarry.store.sqlite_pages import SqlitePages
from tarry.store.sqlite_rows import Rows


class SqliteReads(SqlitePages):
    def __init__(self, links: Links, rows: Rows, clock: Clock) -> None:
        super().__init__(links, rows)
        self.clock = clock

    def run(self, run_id: str) -> RunRecord | None:
        found = self._rows.read(self._rows.run, self._links.rows("load_run", (run_id,)))
        return found[0] if found else None

    def gone(self, run_id: str) -> bool:
        return bool(self._links.rows("load_tombstone", (run_id,)))

    def statuses(self, run_ids: Sequence[str]) -> dict[str, Status]:
        rows = self._links.each("run_status", [(run_id,) for run_id in run_ids])
        return {run_id: Status(status) for run_id, status in rows}

    def arrival(self, run_id: str, kind: ArrivalKind, name: str, key: str) -> Arrival | None:
        return self._one_arrival("load_key", (run_id, kind, name, key))

    def winner(self, run_id: str, name: str) -> Arrival | None:
        return self._one_arrival("winner", (run_id, name))

    def _one_arrival(self, statement: str, args: tuple[str, ...]) -> Arrival | None:
        found = self._rows.read(self._rows.arrival, self._links.rows(statement, args))
        return found[0] if found else None

    def acked(self, run_id: str, channel: str) -> int:
        rows = self._links.rows("acked", (run_id, channel))
        return rows[0][0] if rows else 0

    def document(self, digest: str) -> bytes | None:
        rows = self._links.rows("document", (digest,))
        return rows[0][0] if rows else None

    # --- workers ---

    def workers(self) -> tuple[tuple[WorkerRecord, bool], ...]:
        found = self._rows.read(self._rows.worker, self._links.rows("workers"))
        boot, now = self.clock.boot, self.clock.lease_ms()
        return tuple((worker, worker.boot == boot and worker.lease_until_ms > now) for worker in found)

    def addresses(self) -> dict[str, str]:
        return {worker.id: worker.address for worker, live in self.workers() if live and worker.address}

    def due(self, workflows: Sequence[str]) -> bool:
        return bool(self.due_runs(workflows, 1))

    def due_runs(self, workflows: Sequence[str], limit: int) -> list[str]:
        now = self.clock.now_ms()
        rows = self._links.each("due", [(workflow, now, limit) for workflow in set(workflows)])
        return [run_id for _, _, run_id, _ in sorted(rows)[:limit]]

    def next_due_ms(self, workflows: Sequence[str]) -> int | None:
        rows = self._links.each("next_due", [(workflow,) for workflow in workflows])
        return min((due_ms for (due_ms,) in rows if due_ms is not None), default=None)

    def change(self) -> int:
        return self._links.change()

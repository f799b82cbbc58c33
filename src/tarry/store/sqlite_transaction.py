"""One write transaction of the SQLite store: begun under the turnstile, over with the commit or without
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from tarry.core.journal import Journal
from tarry.core.view import Needs, View, Write
from tarry.errors import StoreCorrupt
from tarry.model import Outgoing, RunRecord, WorkerRecord
from tarry.store.bundle import bundles
from tarry.store.protocol import Clock
from tarry.store.sqlite_journal import JournalReader
from tarry.store.sqlite_link import Link
from tarry.store.sqlite_load import Loader
from tarry.store.sqlite_rows import Rows
from tarry.store.sqlite_save import Saver

_DOCUMENTS = 4096


class SqliteTransaction:
    """`documents` is the store's cache of interned documents: content by digest, so never stale."""

    def __init__(
        self, link: Link, rows: Rows, clock: Clock, documents: dict[str, bytes], done: Callable[[], None]
    ) -> None:
        self.now_ms = clock.now_ms()
        self._link = link
        self._rows = rows
        self._clock = clock
        self._documents = documents
        self._interned: dict[str, bytes] = {}
        self._known: dict[str, RunRecord] = {}
        self._done = done

    def __enter__(self) -> SqliteTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._link.rollback()
        finally:
            self._done()

    def commit(self, batch: str = "") -> None:
        self._link.commit()
        if len(self._documents) > _DOCUMENTS:
            self._documents.clear()
        self._documents.update(self._interned)

    # --- batches ---

    def load(self, needs: Mapping[str, Needs]) -> dict[str, View]:
        views = Loader(self._link, self._rows, self._schema).load(needs)
        self._known.update((run_id, view.run) for run_id, view in views.items() if view.run is not None)
        return views

    def save(self, writes: Sequence[Write]) -> None:
        saver = Saver(self._link, self._rows, self._known)
        for bundle in bundles(writes):
            saver.save(bundle)

    def journals(self, claimed: Sequence[View]) -> list[Journal]:
        return JournalReader(self._link, self._rows).read(claimed)

    def intern(self, documents: Mapping[str, bytes]) -> None:
        new = {digest: body for digest, body in documents.items() if digest not in self._documents}
        if new:
            self._link.each("put_document", new.items())
            self._interned |= new

    def _schema(self, digest: str) -> bytes:
        body = self._documents.get(digest) or self._interned.get(digest)
        if body is None:
            rows = self._link.rows("document", (digest,))
            if not rows:
                raise StoreCorrupt(path=self._rows.path, reason=f"the document {digest} is missing")
            body = self._documents[digest] = rows[0][0]
        return body

    # --- workers ---

    def due(self, workflows: Sequence[str], limit: int) -> list[tuple[str, str]]:
        found = self._link.each("due", [(workflow, self.now_ms, limit) for workflow in set(workflows)])
        return [(run_id, workflow) for _, _, run_id, workflow in sorted(found)[:limit]]

    def held(self, worker: str) -> list[tuple[str, int]]:
        return [(run_id, epoch) for run_id, epoch in self._link.rows("held", (worker,))]

    def orphans(self, limit: int) -> list[tuple[str, str]]:
        rows = self._link.rows("orphans", (*self._now(), limit))
        return [(run_id, worker) for run_id, worker in rows]

    def register(self, worker: WorkerRecord) -> None:
        self._link.rows("put_worker", self._rows.worker_row(worker))

    def beat(self, worker: WorkerRecord) -> bool:
        return bool(self._link.rows("beat", self._rows.worker_row(worker)))

    def leave(self, worker: str) -> None:
        self._link.rows("leave", (worker,))

    def live(self, worker: str) -> bool:
        return bool(self._link.rows("live", (worker, *self._now())))

    def lapsed(self) -> list[str]:
        return [row[0] for row in self._link.rows("lapsed", self._now())]

    def _now(self) -> tuple[str, int]:
        return self._clock.boot, self._clock.lease_ms()

    # --- queues ---

    def outgoing(self, limit: int) -> list[Outgoing]:
        return self._rows.read(self._rows.outgoing, self._link.rows("outgoing", (limit,)))

    def drop_outgoing(self, rows: Sequence[Outgoing]) -> None:
        self._link.each("drop_outgoing", [(row.run_id, row.no) for row in rows])

    def expire_letters(self, limit: int) -> int:
        return len(self._link.rows("expire_letters", (self.now_ms, limit)))

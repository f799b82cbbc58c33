"""The store on one SQLite file, for any number of processes on one machine.

Writers of this process pass a gate, one at a time; those of all processes pass the turnstile; then SQLite's
own lock is free, but for a stranger with a shell. Readers have connections of their own and, under the
write-ahead log, are in nobody's way.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

from tarry.errors import Closed, StoreBusy, StoreError, StoreReadOnly
from tarry.store import sqlite_fork
from tarry.store.protocol import Clock, Sealer
from tarry.store.sqlite_facts import check_alone, facts
from tarry.store.sqlite_link import Link, Observer
from tarry.store.sqlite_links import Links
from tarry.store.sqlite_open import Place, Tuning
from tarry.store.sqlite_read import SqliteReads
from tarry.store.sqlite_rows import Rows
from tarry.store.sqlite_transaction import SqliteTransaction
from tarry.store.turnstile import Turnstile, Ungated

PATIENCE_S = 30.0
_FORK_PATIENCE_S = 5.0
_DEFAULT = Tuning()
_memories = itertools.count(1)


class SqliteStore(SqliteReads):
    """`path` None: in this process's memory. `patience_s` is how long a transaction waits for its turn."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        clock: Clock,
        sealer: Sealer,
        *,
        patience_s: float = PATIENCE_S,
        tuning: Tuning = _DEFAULT,
    ) -> None:
        place = Place(f"/tarry-{next(_memories)}", memory=True) if path is None else Place(os.path.abspath(path))
        self._links = Links(place, tuning, patience_s)
        super().__init__(self._links, Rows(sealer, place.path), clock)
        self._place = place
        self._patience_s = patience_s
        self._documents: dict[str, bytes] = {}
        self._gate = threading.Lock()
        self._owner = 0
        self._closed = False
        self._turn: Turnstile | Ungated | None = None
        self._idle_at = -1
        self._held = False
        self._open()
        sqlite_fork.watch(self)

    def _open(self) -> None:
        check_alone(self._place)
        self._links.check()
        self._identity = self._place.identity()
        try:
            tx = self.begin()
            assert tx is not None
            with tx:
                tx.commit()
        except BaseException:
            self.close()
            raise

    @property
    def observer(self) -> Observer | None:
        """Counts statements and rows, for measurements; None costs nothing."""
        return self._links.observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        self._links.observer = observer

    def facts(self) -> dict[str, Any]:
        """What an operator has to know about the database and this process's way to it."""
        if not self._gate.acquire(timeout=self._patience_s):
            raise StoreBusy(waited_s=self._patience_s)
        try:
            return facts(self._place, self._links.writer())
        finally:
            self._gate.release()

    def quick_check(self) -> str:
        """`ok`, or the first damage found. The whole file is read, beside those who write."""
        return self._links.rows("quick_check")[0][0]

    # --- transactions ---

    def begin(self, *, wait: bool = True) -> SqliteTransaction | None:
        if self._gate.acquire(timeout=self._patience_s if wait else 0):
            try:
                link = self._enter(wait)
                if link is not None:
                    self._owner = threading.get_ident()
                    return SqliteTransaction(link, self._rows, self.clock, self._documents, self._leave)
            except BaseException:
                self._gate.release()
                raise
            self._gate.release()
        if wait:
            raise StoreBusy(waited_s=self._patience_s)
        return None

    def landed(self, batch: str) -> bool:
        """A commit here answers or raises: nothing is ever left unknown."""
        return False

    def _enter(self, wait: bool) -> Link | None:
        """Past the turnstile and into SQLite's own lock; None where that would mean to wait."""
        if self._closed:
            raise Closed(what="store")
        self._check_in_place()
        if not self._turnstile().enter(self._patience_s if wait else 0):
            return None
        try:
            link = self._links.writer()
            link.begin(wait=wait)
        except BaseException as error:
            self._turnstile().leave()
            if isinstance(error, StoreBusy) and not wait:
                return None
            raise
        return link

    def _leave(self) -> None:
        self._owner = 0
        self._turnstile().leave()
        self._gate.release()

    def _check_in_place(self) -> None:
        """A file that was moved or replaced still takes writes, which nobody would ever find again."""
        try:
            found = self._place.identity()
        except OSError:
            found = (0, 0)
        if found != self._identity:
            raise StoreError(reason=f"{self._place.path} was moved, replaced or deleted while it was open; reopen it")

    def _turnstile(self) -> Turnstile | Ungated:
        if self._turn is None:
            try:
                self._turn = Ungated() if self._place.memory else Turnstile(self._place.turn)
            except OSError as error:
                raise StoreReadOnly(reason=f"{self._place.turn}: {error.strerror}") from error
        return self._turn

    # --- housekeeping ---

    def tidy(self) -> None:
        """Moves the log into the file and empties it, once nobody has written since the last call."""
        if (change := self.change()) != self._idle_at:
            self._idle_at = change
        elif not self._place.memory and self._gate.acquire(blocking=False):
            try:
                if not self._closed and self._turnstile().enter(0):
                    self._checkpoint()
            finally:
                self._gate.release()

    def _checkpoint(self) -> None:
        try:
            if os.path.getsize(self._place.wal):
                self._links.writer().checkpoint()
        finally:
            self._turnstile().leave()

    def close(self) -> None:
        if not self._gate.acquire(timeout=self._patience_s):
            raise StoreBusy(waited_s=self._patience_s)
        try:
            if not self._closed:
                self._closed = True
                self._links.close()
                if self._turn is not None:
                    self._turn.close()
        finally:
            self._gate.release()

    # --- forks ---

    def before_fork(self) -> None:
        """A fork inside a transaction cannot wait for its end: then the child's store is closed, its copies
        of the connections are never touched, and it has to open another file."""
        self._held = False
        if self._owner != threading.get_ident() and self._gate.acquire(timeout=_FORK_PATIENCE_S):
            self._held = self._links.hold(_FORK_PATIENCE_S)
            if not self._held:
                self._gate.release()

    def after_fork_in_parent(self) -> None:
        if self._held:
            self._links.release()
            self._gate.release()

    def after_fork_in_child(self) -> None:
        if self._held and not self._place.memory:
            self._links.forget()
            if self._turn is not None:
                self._turn.forget()
                self._turn = None
        elif self._held:
            self._links.release()
        else:
            self._closed = True
        if self._held:
            self._gate.release()

"""One connection to the database, as the rest of the store sees it: named statements in, rows out.

Every statement is run to its end before the call returns, so that no cursor keeps a read transaction open
and holds up checkpoints. A statement that fails inside a transaction rolls it back, and from then on, as
after the commit, the link refuses everything until the next `begin`: nothing is ever written after a write
that is missing, or outside of a transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import apsw

from tarry.errors import Closed, StoreError
from tarry.store.sqlite_errors import told

Row = tuple[Any, ...]
Args = Sequence[Any] | Mapping[str, Any]


class Observer(Protocol):
    """Counts what a store does. `runs` is how often the statement was run, `rows` what it gave back."""

    def statement(self, name: str, runs: int, rows: Sequence[Row]) -> None: ...


_OVER = Closed(what="transaction")


class Link:
    """Used by one thread at a time, which holds `lock` where others could come."""

    def __init__(self, connection: apsw.Connection, path: str, sql: Mapping[str, str], patience_s: float) -> None:
        self.connection: Any = connection
        self.lock = threading.Lock()
        self.observer: Observer | None = None
        self._cursor: Any = connection.cursor()
        self._path = path
        self._sql = sql
        self._patience_ms = int(patience_s * 1000)
        connection.set_busy_timeout(self._patience_ms)
        self._inside = False
        self._over: Exception | None = None

    def rows(self, name: str, args: Args = ()) -> list[Row]:
        """Runs a statement once."""
        self._check()
        try:
            rows = self._cursor.execute(self._sql[name], args).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        if self.observer is not None:
            self.observer.statement(name, 1, rows)
        return rows

    def each(self, name: str, args: Iterable[Args]) -> list[Row]:
        """Runs a statement once for each of `args`; the rows of all. Prepared once, this costs a third of
        as many calls, and less than a join with the keys."""
        self._check()
        if self.observer is not None:
            args = list(args)
        try:
            rows = self._cursor.executemany(self._sql[name], args).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        if self.observer is not None:
            self.observer.statement(name, len(list(args)), rows)
        return rows

    def pragma(self, name: str, *value: str | int) -> Any:
        try:
            return self.connection.pragma(name, *value)
        except apsw.Error as error:
            raise self._failed(error) from error

    def script(self, text: str) -> None:
        """Statements that give nothing back, of a migration."""
        try:
            self._cursor.execute(text).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error

    def begin(self, *, wait: bool) -> None:
        self._over = None
        self._inside = True
        if not wait:
            self.connection.set_busy_timeout(0)
        try:
            self.rows("begin")
        except BaseException:
            self.rollback()
            raise
        finally:
            if not wait:
                self.connection.set_busy_timeout(self._patience_ms)

    def commit(self) -> None:
        self.rows("commit")
        self._inside = False
        self._over = _OVER

    def rollback(self) -> None:
        """Ends the transaction, where one is open. SQLite has rolled it back by itself after some
        errors."""
        if self._inside:
            self._inside = False
            self._over = self._over or _OVER
            with suppress(apsw.Error):
                self._cursor.execute(self._sql["rollback"])

    def checkpoint(self) -> None:
        """Where a reader is in the way, the next one will do."""
        self.connection.set_busy_timeout(0)
        try:
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass
        except apsw.Error as error:
            raise self._failed(error) from error
        finally:
            self.connection.set_busy_timeout(self._patience_ms)

    def _check(self) -> None:
        if self._over is not None:
            raise Closed(what="transaction") from self._over

    def _failed(self, error: apsw.Error) -> StoreError:
        failure = told(error, self._path, self._patience_ms / 1000, self.connection.system_errno)
        if self._inside:
            self._over = failure
            self.rollback()
        return failure

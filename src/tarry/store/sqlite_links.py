"""The connections of one process to one database: one that writes, a few that read, one that watches.

They are opened when first needed, so that a forked child, which must not use its parent's, gets its own.
SQLite keeps locks per process and lock state per file: the child therefore closes its copies, without a
checkpoint and without a transaction open, which touches no file. That is sound only if no thread was inside
SQLite at the fork, where it would have left a mutex locked for ever: `hold` waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import apsw

from tarry.errors import Closed
from tarry.store.sqlite_link import Args, Link, Observer, Row
from tarry.store.sqlite_open import (
    Place,
    Tuning,
    check_ours,
    connect,
    make_file,
    make_reader,
    make_writer,
    migrate,
)

_READERS = 4


class Links:
    """`writer` is for whoever holds the store's gate; readers are handed out locked."""

    def __init__(self, place: Place, tuning: Tuning, patience_s: float) -> None:
        self.place = place
        self._tuning = tuning
        self._patience_s = patience_s
        self._observer: Observer | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._writer: Link | None = None
        self._readers: list[Link] = []

    @property
    def observer(self) -> Observer | None:
        return self._observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        self._observer = observer
        for link in self._all():
            link.observer = observer

    def check(self) -> None:
        """Opens the first reader, and raises unless the database is ours to use; nothing in it is
        changed."""
        if not self.place.memory:
            make_file(self.place)
        self._reader().lock.release()

    def writer(self) -> Link:
        if self._writer is None:
            self._writer = self._connect(self._make_writer)
        return self._writer

    def rows(self, name: str, args: Args = ()) -> list[Row]:
        link = self._reader()
        try:
            return link.rows(name, args)
        finally:
            link.lock.release()

    def each(self, name: str, args: Iterable[Args]) -> list[Row]:
        link = self._reader()
        try:
            return link.each(name, args)
        finally:
            link.lock.release()

    def change(self) -> int:
        """Counted by one connection, about the commits of all others: so always the same one is asked."""
        self._reader().lock.release()
        with self._readers[0].lock:
            return self._readers[0].rows("change")[0][0]

    def close(self) -> None:
        """The last one to close the file moves the log into it."""
        self._closed = True
        for link in self._all():
            with link.lock:
                link.connection.close()
        self._writer = None
        self._readers = []

    # --- forks ---

    def hold(self, patience_s: float) -> bool:
        """Waits until no thread reads, and keeps it so. False: one reads on, and `release` is not
        needed."""
        held: list[threading.Lock] = []
        for lock in (self._opening, *(link.lock for link in self._readers)):
            if not lock.acquire(timeout=patience_s):
                for other in held:
                    other.release()
                return False
            held.append(lock)
        return True

    def release(self) -> None:
        for lock in (self._opening, *(link.lock for link in self._readers)):
            lock.release()

    def forget(self) -> None:
        """In the child of a fork that was held: the parent's connections are gone, and the file knows
        nothing."""
        for link in self._all():
            link.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            link.connection.close()
        self._opening = threading.Lock()
        self._writer = None
        self._readers = []

    # --- opening ---

    def _reader(self) -> Link:
        for link in self._readers:
            if link.lock.acquire(blocking=False):
                return link
        with self._opening:
            if self._closed:
                raise Closed(what="store")
            if len(self._readers) < _READERS:
                link = self._connect(self._make_reader)
                link.lock.acquire()
                self._readers.append(link)
                return link
        link = self._readers[0]
        link.lock.acquire()
        return link

    def _make_reader(self, link: Link) -> None:
        if not self._readers:
            check_ours(link, self.place)
        make_reader(link, self._tuning)

    def _make_writer(self, link: Link) -> None:
        make_writer(link, self.place, self._tuning)
        migrate(link)

    def _connect(self, make: Callable[[Link], None]) -> Link:
        link = connect(self.place, self._patience_s)
        try:
            make(link)
        except BaseException:
            link.connection.close()
            raise
        link.observer = self._observer
        return link

    def _all(self) -> list[Link]:
        return [link for link in (self._writer, *self._readers) if link is not None]

"""Opening a database: what has to be true of it before it is written, and bringing it up to date.

Nothing is changed in a file that is not ours: it is asked who made it before it is switched to WAL.
Durability is asked for and then checked: only under WAL with synchronous=FULL does a power failure lose
nothing that was acknowledged (rule 11.7).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import apsw

from tarry.errors import StoreError, StoreForeign, StoreReadOnly, StoreTooNew
from tarry.store.sqlite_errors import told
from tarry.store.sqlite_link import Link
from tarry.store.statements import migrations, statements

APPLICATION_ID = int.from_bytes(b"tary", "big")
FULL = 2
_MEMORY = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_STATEMENTS = 128


@dataclass(frozen=True)
class Place:
    """Where a database is: a file, or memory of this process under a name."""

    path: str
    memory: bool = False

    @property
    def turn(self) -> str:
        return f"{self.path}-turn"

    @property
    def wal(self) -> str:
        return f"{self.path}-wal"

    def identity(self) -> tuple[int, int] | None:
        """Which file it is. None for memory."""
        if self.memory:
            return None
        found = os.stat(self.path)
        return found.st_dev, found.st_ino


@dataclass(frozen=True)
class Tuning:
    """`wal_pages`: how long the log grows before a commit moves it into the file; each page is 4 KiB."""

    wal_pages: int = 4_000
    wal_bytes_kept: int = 32 << 20
    writer_cache_kib: int = 32 << 10
    reader_cache_kib: int = 4 << 10


def make_file(place: Place) -> None:
    """A new file is its owner's alone: payloads are secret (its log and index inherit the mode)."""
    try:
        os.close(os.open(place.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreReadOnly(reason=f"{place.path}: {error.strerror}") from error


def connect(place: Place, patience_s: float) -> Link:
    """A connection, as yet of no use: see `check_ours`, then `make_writer` or `make_reader`."""
    try:
        if place.memory:
            uri = f"file:{place.path}?vfs=memdb"
            connection = apsw.Connection(uri, flags=_MEMORY, statementcachesize=_STATEMENTS)
        else:
            flags = apsw.SQLITE_OPEN_READWRITE
            connection = apsw.Connection(place.path, flags=flags, statementcachesize=_STATEMENTS)
    except apsw.Error as error:
        raise told(error, place.path) from error
    # Bound values must not change a plan; they would also have statements prepared anew each time, at 20 us.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    return Link(connection, place.path, statements("sqlite"), patience_s)


def check_ours(link: Link, place: Place) -> None:
    """Raises unless the database is ours or empty, known to this version, and can be written."""
    made_by, version = link.pragma("application_id"), link.pragma("user_version")
    if made_by != APPLICATION_ID and (made_by != 0 or link.rows("tables") != [(0,)]):
        raise StoreForeign(path=place.path, reason=f"application id {made_by:#x}")
    if version > len(migrations("sqlite")):
        raise StoreTooNew(found=version, known=len(migrations("sqlite")))
    if link.connection.readonly("main"):
        raise StoreReadOnly(reason=f"{place.path} is read-only")


def make_writer(link: Link, place: Place, tuning: Tuning) -> None:
    for pragma, value in {
        "cache_size": -tuning.writer_cache_kib,
        "temp_store": "memory",
        "trusted_schema": False,
        "journal_size_limit": tuning.wal_bytes_kept,
        "synchronous": "full",
        "fullfsync": True,
        "checkpoint_fullfsync": True,
    }.items():
        link.pragma(pragma, value)
    link.connection.wal_autocheckpoint(tuning.wal_pages)
    mode = link.pragma("journal_mode", "wal")
    if mode != ("memory" if place.memory else "wal") or link.pragma("synchronous") != FULL:
        raise StoreError(reason=f"{place.path}: no write-ahead log on this file system (it gave {mode})")


def make_reader(link: Link, tuning: Tuning) -> None:
    link.pragma("cache_size", -tuning.reader_cache_kib)
    link.pragma("trusted_schema", False)
    link.pragma("query_only", True)


def migrate(link: Link) -> None:
    """Brings the schema up to date, forward only. Others may be doing the same: who comes second finds it
    done."""
    scripts = migrations("sqlite")
    if link.pragma("user_version") == len(scripts):
        return
    link.begin(wait=True)
    for script in scripts[link.pragma("user_version") :]:
        link.script(script)
    link.pragma("application_id", APPLICATION_ID)
    link.pragma("user_version", len(scripts))
    link.commit()

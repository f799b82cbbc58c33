"""What can be told about a database and the way to it: for `doctor`, and for a refusal at the door.

Two SQLite libraries in one process break each other's locks: closing any handle of a file drops all locks
that the process has on it. The standard library's sqlite3 carries a library of its own, so it must not have
the file open here; that it does can be told as long as its connection lives.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
from typing import Any

import apsw

from tarry.errors import StoreError
from tarry.store.sqlite_link import Link
from tarry.store.sqlite_open import Place

_PRAGMAS = ("journal_mode", "synchronous", "page_size", "page_count", "freelist_count")


def facts(place: Place, writer: Link) -> dict[str, Any]:
    """Sizes are in bytes. `other_library`: the standard library's sqlite3 has the file open in this
    process."""
    return {
        "path": None if place.memory else place.path,
        "sqlite_version": apsw.sqlite_lib_version(),
        "schema_version": writer.pragma("user_version"),
        **{pragma: writer.pragma(pragma) for pragma in _PRAGMAS},
        "file_size": _size(place.path),
        "wal_size": _size(place.wal),
        "file_mode": _mode(place),
        "other_library": other_library(place),
    }


def check_alone(place: Place) -> None:
    if other_library(place):
        reason = (
            f"this process has {place.path} open through the sqlite3 module too, and two SQLite libraries in one "
            "process break each other's locks. Close that connection, or open it in another process"
        )
        raise StoreError(reason=reason)


def other_library(place: Place) -> bool:
    module = sys.modules.get("sqlite3")
    if module is None or place.memory or not os.path.exists(place.path):
        return False
    connections = [found for found in gc.get_objects() if isinstance(found, module.Connection)]
    return any(_has_open(connection, place.path) for connection in connections)


def _has_open(connection: Any, path: str) -> bool:
    try:
        files = [row[2] for row in connection.execute("pragma database_list")]
    except Exception:  # of another thread, closed, or busy: it does not tell
        return False
    return any(file and os.path.exists(file) and os.path.samefile(file, path) for file in files)


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _mode(place: Place) -> str | None:
    return None if place.memory else oct(stat.S_IMODE(os.stat(place.path).st_mode))

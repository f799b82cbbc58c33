"""What SQLite says, as Tarry's errors: each names the cause and the remedy."""

from __future__ import annotations

import errno

import apsw

from tarry.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_WRITE = (errno.EROFS, errno.EACCES, errno.EPERM)


def told(error: apsw.Error, path: str, waited_s: float = 0.0, system: int = 0) -> StoreError:
    """`system` is the errno behind an I/O error: SQLite knows only ENOSPC as a full disk, not a quota."""
    reason = str(error)
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(waited_s=waited_s)
        case apsw.FullError():
            return StoreFull(reason=reason)
        case apsw.IOError() if system in _NO_SPACE:
            return StoreFull(reason=reason)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreReadOnly(reason=f"{path}: {reason}")
        case apsw.IOError() if system in _NO_WRITE:
            return StoreReadOnly(reason=f"{path}: {reason}")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreCorrupt(path=path, reason=reason)
        case _:
            return StoreError(reason=f"{path}: {reason}")

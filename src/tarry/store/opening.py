"""From a URL to a store. What a store needs is imported only when it is asked for."""

from __future__ import annotations

from tarry.clock import SystemClock
from tarry.errors import BadStoreUrl
from tarry.store.protocol import Clock, Sealer, Store
from tarry.store.seal import Zlib

_SQLITE = "sqlite://"
_MEMORY = ":memory:"


def open_store(url: str, *, clock: Clock | None = None, sealer: Sealer | None = None) -> Store:
    """Opens `sqlite:///relative/path.db`, `sqlite:////absolute/path.db` or `sqlite://:memory:`, which lives
    in this process and is empty each time. Payloads pass through `sealer`; Zlib by default.

    Raises BadStoreUrl, and the StoreErrors that opening can end in."""
    if not url.startswith(_SQLITE):
        raise BadStoreUrl(url=_without_password(url), reason="only sqlite:// is known here")
    path = _sqlite_path(url)
    from tarry.store.sqlite import SqliteStore

    return SqliteStore(path, clock or SystemClock(), sealer or Zlib())


def _sqlite_path(url: str) -> str | None:
    rest = url.removeprefix(_SQLITE)
    if rest in (_MEMORY, f"/{_MEMORY}"):
        return None
    path = rest.removeprefix("/")
    if not rest.startswith("/") or not path or path.endswith("/"):
        raise BadStoreUrl(url=url, reason="it names no file after sqlite:///")
    if "?" in path or "#" in path or "\0" in path:
        raise BadStoreUrl(url=url, reason="a path with ?, # or NUL in it, and options are not taken")
    return path


def _without_password(url: str) -> str:
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}…@{rest.rpartition('@')[2]}" if "@" in rest else url

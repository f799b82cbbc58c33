"""Keyset cursors: where a page ended, as opaque text."""

from __future__ import annotations

import base64
import binascii
import json

from tarry.errors import BadCursor, BadLimit

MAX_PAGE = 1000


def write(*key: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read(cursor: str | None, kinds: tuple[type, ...]) -> tuple[str | int, ...] | None:
    """The key after which the next page begins; None for the first page."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise BadCursor() from None
    if not isinstance(key, list) or [type(part) for part in key] != list(kinds):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise BadCursor()
    return tuple(key)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def check_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise BadLimit(limit=limit)
    return limit

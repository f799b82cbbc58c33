"""An exception as data: what a step or a run failed with, written for the journal (rule 3.7).

Any exception can be written, whatever its own code does; reading one back imports nothing and runs nothing. The text
is bounded: of a long message the beginning counts, of a long traceback the end.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from typing import Any, cast

from tarry.core.shown import cut
from tarry.model import ErrorRecord

MESSAGE_CHARS = 4_000
TRACEBACK_CHARS = 16_000
NAME_CHARS = 200
FRAMES = 50
BASES = 50
CAUSES = 5


def encode_error(error: BaseException) -> bytes:
    """The error and up to five of its causes. The traceback's text, which tells the causes too, is the first's."""
    told: dict[str, Any] | None = None
    for link in reversed(list(_chain(error))):
        told = _told(link, told)
    assert told is not None
    return json.dumps(told | {"traceback": _traceback(error)}).encode()


def decode_error(data: bytes) -> ErrorRecord:
    """Never raises: of what is not there, or is not as it was written, nothing is told."""
    try:
        return _record(json.loads(data))
    except (ValueError, RecursionError):
        return ErrorRecord("?", "")


def _record(data: object) -> ErrorRecord:
    row = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    texts = {name: text for name in ("type", "message", "traceback") if isinstance(text := row.get(name), str)}
    mro = cast("list[Any]", row["mro"]) if isinstance(row.get("mro"), list) else []
    cause = _record(row["cause"]) if isinstance(row.get("cause"), dict) else None
    names = tuple(name for name in mro if isinstance(name, str))
    return ErrorRecord(texts.get("type", "?"), texts.get("message", ""), texts.get("traceback", ""), names, cause)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from or while."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) <= CAUSES:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _told(error: BaseException, cause: dict[str, Any] | None) -> dict[str, Any]:
    cls = type(error)
    return {
        "type": _name(cls.__qualname__),
        "module": _name(cls.__module__),
        "message": cut(_text(_message(error)), MESSAGE_CHARS),
        "mro": [_name(f"{base.__module__}.{base.__qualname__}") for base in cls.__mro__[:BASES]],
        "cause": cause,
    }


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failed:
        return f"(its message cannot be told: {type(failed).__qualname__})"


def _traceback(error: BaseException) -> str:
    """As Python prints it, source lines included."""
    try:
        lines = traceback.TracebackException(type(error), error, error.__traceback__, limit=-FRAMES).format()
        text = _text("".join(lines))
    except Exception as failed:
        return f"(the traceback cannot be told: {type(failed).__qualname__})"
    return text if len(text) <= TRACEBACK_CHARS else "…" + text[1 - TRACEBACK_CHARS :]


def _name(text: object) -> str:
    return cut(_text(str(text)), NAME_CHARS)


def _text(text: str) -> str:
    """Text that every store takes: halves of surrogate pairs are shown as escapes."""
    return text.encode(errors="backslashreplace").decode()

"""Text for a terminal: nothing that a payload or a name holds may control it."""

from __future__ import annotations

import unicodedata
from datetime import datetime

_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def clean(text: str) -> str:
    """On one line; control and format characters, escapes included, made visible."""
    return text if _plain(text) else "".join(char if _harmless(char) else _visible(char) for char in text)


def json_text(data: bytes) -> str:
    """JSON as it is, still JSON: what could control a terminal stands only in its strings, where it can be escaped."""
    text = data.decode()
    return text if _plain(text) else "".join(char if _harmless(char) else _escaped(char) for char in text)


def short(text: str, width: int) -> str:
    text = clean(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def ago(then: datetime, now: datetime) -> str:
    """`12 s`, `3 min`, `2 h`, `5 d`: how long ago, or in how long."""
    seconds = abs((now - then).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def after(then: datetime, start: datetime) -> str:
    """`+0.014s`, `+2m05s`, `+3d04h`: how long after the start, exact enough to tell neighbours apart."""
    seconds = (then - start).total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    if seconds < 60:
        return f"{sign}{seconds:.3f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{sign}{days}d{hours:02}h"
    return f"{sign}{hours}h{minutes:02}m" if hours else f"{sign}{minutes}m{rest:02}s"


def instant(when: datetime | None) -> str:
    return "" if when is None else when.strftime("%Y-%m-%d %H:%M:%SZ")


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _harmless(char: str) -> bool:
    return unicodedata.category(char) not in _UNSAFE


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(char: str) -> str:
    if char in "\n\r\t":  # white space between values; in a string JSON has escaped it already
        return " "
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

"""Text for a terminal: nothing that a payload or a name holds may control it."""

from __future__ import annotations

import unicodedata
from datetime import datetime


def clean(text: str) -> str:
    """Control and format characters, escapes included, made visible."""
    return "".join(char if _harmless(char) else f"\\x{ord(char):02x}" for char in text)


def _harmless(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


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


def instant(when: datetime | None) -> str:
    return "" if when is None else when.strftime("%Y-%m-%d %H:%M:%SZ")

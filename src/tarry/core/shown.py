"""How values, types and places are told in an error: short, on one line, and whatever they hold.

Payloads are secret, so that an error names the place and the type of what is wrong with one, never its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, get_args, get_origin

TYPE_CHARS = 120
PLACE_CHARS = 200
STEP_CHARS = 40


def cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def shown(value: object, chars: int = 60) -> str:
    """The repr of what a caller gave, cut; its type where it has none."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__qualname__}>"
    return cut(" ".join(text.encode(errors="backslashreplace").decode().split()), chars)


def type_name(tp: Any) -> str:
    """`Payment`, `list[int]`, `int | str`; a type that only carries metadata is told without it."""
    if get_origin(tp) is Annotated:
        return type_name(get_args(tp)[0])
    return cut(tp.__qualname__ if isinstance(tp, type) else str(tp).replace("typing.", ""), TYPE_CHARS)


def place(steps: Iterable[object]) -> str:
    """Where in a payload: `amount`, `m[1]`, `a.b[0]`, `m['odd key']`; `$` is the payload itself."""
    text = ""
    for step in steps:
        if isinstance(step, str) and step.isidentifier():
            text += f".{cut(step, STEP_CHARS)}"
        else:
            text += f"[{shown(step, STEP_CHARS)}]"
    return cut(text.removeprefix("."), PLACE_CHARS) or "$"

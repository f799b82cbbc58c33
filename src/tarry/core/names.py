"""What may be a name, a run's id, a key or an actor (rules 3.1, 5.5 and 13): any printable text.

Names match exactly, character for character. So that two which look alike are alike, and that none can forge a line
of a log, there are no control characters, no line separators, no marks that turn the direction of text, and no white
space at the edges. Which characters those are is listed here and does not change with Python's Unicode version: a
name that one process takes is a name in every other.
"""

from __future__ import annotations

import re

from tarry.core.shown import shown
from tarry.errors import InvalidName
from tarry.model import Limits

LIMITS = Limits()

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_EDGES = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_EDGED = re.compile(f"^[{_EDGES}]|[{_EDGES}]$")


def check_name(what: str, text: str, limits: Limits = LIMITS) -> str:
    """A name of 1-200 characters; `what` it names is told in the error."""
    return _checked(what, text, limits.name_chars)


def check_run_id(text: str, limits: Limits = LIMITS) -> str:
    return _checked("run id", text, limits.name_chars)


def check_actor(text: str, limits: Limits = LIMITS) -> str:
    return _checked("actor", text, limits.actor_chars)


def check_key(text: str, limits: Limits = LIMITS) -> str:
    """A key of 1-512 bytes of UTF-8. It never begins with a control character, which marks a derived one."""
    _checked("key", text, limits.key_bytes)
    if not text.isascii() and (size := len(text.encode())) > limits.key_bytes:
        raise InvalidName(what="key", name=shown(text), reason=f"it has {size} bytes, {limits.key_bytes} at most")
    return str.__str__(text)


def _checked(what: str, text: str, limit: int) -> str:
    if type(text) is str and 0 < len(text) <= limit and text.isascii() and text.isprintable() and text == text.strip():
        return text
    if reason := _wrong(text, limit):
        raise InvalidName(what=what, name=shown(text), reason=reason)
    return str.__str__(text)


def _wrong(text: object, limit: int) -> str | None:
    if not isinstance(text, str):
        return "it is not text"
    if not text:
        return "it is empty"
    if len(text) > limit:
        return f"it has {len(text)} characters, {limit} at most"
    if found := _UNPRINTABLE.search(text):
        return f"it holds {found[0]!a}, which cannot be printed"
    if _EDGED.search(text):
        return "it begins or ends with white space"
    return None

"""Values as they are walked: JSON's own types, and what in a value no JSON text can hold.

Where nothing declares a type, only JSON's own types are taken (rule 13): a tuple would come back as a list and a
dict's key 1 as "1", so they are refused, with the place. Raw text given from outside is held to the same. No walk
recurses, so that no depth can break one; where something is wrong is looked for only once it is known to be.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, NamedTuple, cast

from pydantic import BaseModel
from pydantic_core import from_json

from tarry.core.canonical import deeper_than, depth, structure
from tarry.core.shown import cut, place, shown, type_name
from tarry.errors import PayloadTooDeep, PayloadTooLarge, Unencodable
from tarry.model import Limits

LIMITS = Limits()

kind_of: Callable[[object], type[object]] = type
"""The exact class of a value."""

DIGITS = 4000
"""The longest integer. Readers of JSON in Python end at 4300 digits, some of them a little before."""

_END = 10**DIGITS
_TEXT = {str}
_PLAIN = {str, int, float, bool, type(None), list, dict}
_LEAVES = {str, int, bool, type(None), bytes}
_ANNOTATE = (
    "without a declared type only JSON's own types are stored, and it would come back as something else. Annotate the "
    "parameter or what is returned, or pass returns= (an annotation that cannot be resolved counts as none)"
)


def survey(value: object, limits: Limits = LIMITS) -> int:
    """Refuses what is not made of JSON's own types alone; returns how many members its objects have."""
    todo: list[Any] = [value]
    members = 0
    for item in todo:
        kind = kind_of(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if -_END < item < _END:
                continue
        elif kind is float:
            if math.isfinite(item):
                continue
        elif kind is list:
            todo += item
            if len(todo) <= limits.payload_bytes:
                continue
        elif kind is dict and _TEXT.issuperset(map(type, item)):
            todo += item.values()
            members += len(item)
            if len(todo) <= limits.payload_bytes:
                continue
        raise trouble(value, plain=True, limits=limits) or PayloadTooLarge(size=len(todo), limit=limits.payload_bytes)
    return members


def holds_nan(value: object) -> bool:
    """Whether a float in it is no number that JSON has."""
    todo: list[Any] = [value]
    for item in todo:
        kind = kind_of(item)
        if kind is float:
            if not math.isfinite(item):
                return True
        elif kind is dict:
            todo += item.values()
        elif kind not in _LEAVES and (parts := children(item)):
            todo += [part for _, part in parts]
    return False


def check_raw(data: bytes, limits: Limits = LIMITS) -> bytes:
    """JSON text as somebody wrote it, for the store. Refused beside what is no JSON: NaN and numbers beyond a
    double, halves of surrogate pairs, and a key that an object has twice, which readers take differently."""
    check_size(data, limits)
    try:
        value = from_json(data)
    except ValueError as error:
        raise Unencodable(path="$", reason=f"it is not JSON: {cut(str(error), 100)}") from None
    if survey(value, limits) != structure(data).count(b":"):
        raise Unencodable(path="$", reason="an object in it has the same key twice")
    return data


def check_size(data: bytes, limits: Limits = LIMITS) -> None:
    if len(data) > limits.payload_bytes:
        raise PayloadTooLarge(size=len(data), limit=limits.payload_bytes)
    if deeper_than(data, limits.depth):
        raise PayloadTooDeep(depth=depth(data), limit=limits.depth)


# --- what is wrong, and where -------------------------------------------------------------------------


class _Node(NamedTuple):
    """A value, and the way to it from the payload's root."""

    item: Any
    step: object = None
    parent: _Node | None = None

    def above(self) -> Iterator[_Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def refuse(self, reason: str) -> Unencodable:
        steps = [node.step for node in (self, *self.above()) if node.parent is not None]
        return Unencodable(path=place(reversed(steps)), reason=reason)


def trouble(value: object, *, plain: bool = False, limits: Limits = LIMITS) -> Exception | None:
    """What no JSON text can hold, first in the order of reading, as the error to raise; None: nothing is found.
    With `plain`, also what is not of JSON's own types."""
    seen: dict[int, Any] = {}
    stack = [_Node(value)]
    while stack:
        node = stack.pop()
        if reason := _wrong(node.item, plain):
            return node.refuse(reason)
        parts = children(node.item)
        if parts is None:
            continue
        if id(node.item) not in seen:
            seen[id(node.item)] = node.item
            stack += [_Node(child, step, node) for step, child in reversed(parts)]
        elif any(above.item is node.item for above in node.above()):
            return node.refuse("it refers to itself")
    levels = _levels(value)
    return PayloadTooDeep(depth=levels, limit=limits.depth) if levels > limits.depth else None


def _levels(value: object) -> int:
    """How deep a value without cycles is nested; what a level holds twice is looked at once."""
    level = {id(value): value}
    levels = 0
    while below := [parts for item in level.values() if (parts := children(item)) is not None]:
        levels += 1
        level = {id(child): child for parts in below for _, child in parts}
    return levels


def _wrong(item: Any, plain: bool) -> str | None:
    kind = kind_of(item)
    if isinstance(item, float):
        if not math.isfinite(item):
            return "NaN, Infinity and what is beyond a double are not JSON"
    elif isinstance(item, Decimal):
        if not item.is_finite():
            return "NaN and Infinity are not JSON"
    elif isinstance(item, str):
        if not _is_text(item):
            return "the text holds half of a surrogate pair"
    elif isinstance(item, int):
        if not -_END < item < _END:
            return f"an integer of more than {DIGITS} digits could not be read back"
    elif isinstance(item, dict) and (reason := _wrong_key(cast("dict[Any, Any]", item), plain)):
        return reason
    return f"it is of type {type_name(kind)}: {_ANNOTATE}" if plain and kind not in _PLAIN else None


def _wrong_key(item: dict[Any, Any], plain: bool) -> str | None:
    for key in item:
        if plain and type(key) is not str:
            return f"a key, {shown(key, 20)}, is of type {type_name(type(key))}; the keys of JSON are text"
        if isinstance(key, str | int | float | Decimal) and (reason := _wrong(key, False)):
            return f"of a key, {reason}"
    return None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def children(item: Any) -> list[tuple[object, Any]] | None:
    """The parts of a value that has any by its kind, each with its step; None for a value without parts."""
    if isinstance(item, dict):
        return list(cast("dict[object, Any]", item).items())
    if isinstance(item, list | tuple | set | frozenset | deque):
        return list(enumerate(cast("Iterable[Any]", item)))
    if issubclass(kind_of(item), BaseModel):  # of the class: an instance may do anything when it is asked
        return _fields(item)
    if is_dataclass(item) and not isinstance(item, type):
        return [(field.name, getattr(item, field.name, None)) for field in fields(item)]
    return None


def _fields(model: BaseModel) -> list[tuple[object, Any]]:
    """Those that are set, and what came beside them; no attribute that only caches something."""
    extra = model.__pydantic_extra__ or {}
    held = {**model.__dict__, **extra}
    return [(name, held[name]) for name in (*type(model).__pydantic_fields__, *extra) if name in held]

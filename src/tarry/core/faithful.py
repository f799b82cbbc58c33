"""A value beside its own JSON: what has changed on the way there and back, and what of it has no order.

Both go by the value, never by guesses about the text.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, RootModel
from pydantic_core import from_json, to_json

from tarry.core.plain import children, kind_of
from tarry.core.shown import place, type_name

_SCALARS = {type(None), bool, int, float, str}
_ABSENT = object()
_text_of = json.JSONEncoder(sort_keys=True).encode


class Change(NamedTuple):
    path: str
    reason: str


def alike(value: object, copy: object) -> bool:
    """Whether `changed` finds nothing, faster for what is made of dicts, lists and scalars."""
    todo: list[tuple[Any, Any]] = [(value, copy)]
    for a, b in todo:
        kind = kind_of(a)
        if kind is not type(b):
            return False
        if kind in _SCALARS:
            if a != b:
                return False
        elif kind is dict:
            if len(a) != len(b):
                return False
            todo += [(part, b.get(step, _ABSENT)) for step, part in a.items()]
        elif kind is list or kind is tuple:
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif changed(a, b) is not None:
            return False
    return True


def changed(value: object, copy: object) -> Change | None:
    """The first place where a value and its copy differ, in type or in content. Fields that their model excludes
    are no content, nor are attributes that are no fields; what does not define equality counts as equal."""
    stack: list[tuple[tuple[object, ...], Any, Any]] = [((), value, copy)]
    while stack:
        path, a, b = stack.pop()
        kind = type_name(kind_of(a))
        if type(a) is not type(b):
            return Change(place(path), f"{kind} would come back as {type_name(type(b))}")
        parts = _parts(a)
        if parts is None:
            if not _equal(a, b):
                return Change(place(path), f"{kind} would come back changed")
            continue
        others = dict(_parts(b) or ())
        if len(others) != len(parts) or any(step not in others for step, _ in parts):
            return Change(place(path), f"{kind} would come back with other members")
        stack += [((*path, step), part, others[step]) for step, part in reversed(parts)]
    return None


def _parts(item: Any) -> list[tuple[object, Any]] | None:
    """What is compared part by part; the rest is compared as a whole."""
    if isinstance(item, set | frozenset):
        return None
    parts = children(item)
    if isinstance(item, BaseModel) and parts is not None:
        model = type(item).__pydantic_fields__
        return [(name, part) for name, part in parts if name not in model or not model[str(name)].exclude]
    return parts


def _equal(a: Any, b: Any) -> bool:
    if type(a).__eq__ is object.__eq__:
        return True
    try:
        return bool(a == b)
    except Exception:
        return False


def in_order(value: object, data: bytes) -> bytes:
    """The JSON of a value with its sets sorted: a set has an order that differs from process to process, and one
    payload must be one text."""
    return to_json(_sorted(value, from_json(data)))


def _sorted(value: object, parsed: Any) -> Any:
    if isinstance(value, RootModel):
        return _sorted(cast("RootModel[Any]", value).root, parsed)
    parts = children(value)
    if parts is None or not isinstance(parsed, list | dict) or len(parts) != len(cast("list[Any]", parsed)):
        return cast("Any", parsed)
    if isinstance(parsed, dict):
        told = cast("dict[str, Any]", parsed).items()
        return {name: _sorted(part, item) for (_, part), (name, item) in zip(parts, told, strict=True)}
    items = [_sorted(part, item) for (_, part), item in zip(parts, cast("list[Any]", parsed), strict=True)]
    return sorted(items, key=_text_of) if isinstance(value, set | frozenset) else items

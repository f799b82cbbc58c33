"""The arguments of workflows and steps, by the annotations of the function that takes them.

A workflow's arguments are stored as one JSON array, without the first, which is the run. What was given is what is on
file: a default that the caller left out stays the code's. Of a step's arguments only a digest is kept, to notice that
the code has changed under a waiting run (rule 3.4); it is the same in every process, whatever its hash seed.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json, to_json

from tarry.core.annotations import hints
from tarry.core.canonical import digest
from tarry.core.plain import LIMITS, children, kind_of
from tarry.core.schema import FieldErrors
from tarry.core.typed import Typed, typed
from tarry.errors import BadArguments, Undecodable, Unencodable
from tarry.model import FieldError, Limits

Function = Callable[..., Any]


def encode_args(fn: Function, args: Sequence[Any], limits: Limits = LIMITS) -> bytes:
    """A workflow's input. Raises BadArguments, or Unencodable with the parameter's name."""
    parameters = _parameters(fn)
    if reason := parameters.misfit(len(args)):
        raise BadArguments(workflow=_name(fn), reason=reason)
    try:
        return parameters.codec(len(args)).encode(tuple(args), limits)
    except Unencodable as error:
        raise parameters.refusal(args, limits) or error from None


def decode_args(fn: Function, data: bytes) -> tuple[Any, ...]:
    """What to call a workflow with, after the run. Raises Undecodable where the code no longer takes it."""
    parameters = _parameters(fn)
    try:
        count = len(cast("list[Any]", from_json(data)))
    except (ValueError, TypeError):
        raise _undecodable(fn, FieldErrors([FieldError("$", "they are no list")])) from None
    if reason := parameters.misfit(count):
        raise _undecodable(fn, FieldErrors([FieldError("$", reason)]))
    try:
        return parameters.codec(count).decode(data)
    except Undecodable as error:
        told: FieldErrors = error.fields["errors"]
        errors = FieldErrors(FieldError(parameters.place(path), reason) for path, reason in told)
    raise _undecodable(fn, errors)


def _undecodable(fn: Function, errors: FieldErrors) -> Undecodable:
    return Undecodable(type_name=f"the arguments of {_name(fn)}", errors=errors, field_errors=errors)


def _name(fn: Function) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


# --- what a function takes ----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _parameters(fn: Function) -> _Parameters:
    return _Parameters(fn)


class _Parameters:
    """The positional parameters of a workflow function after its first, with their types."""

    def __init__(self, fn: Function) -> None:
        known = hints(fn)
        parameters = list(_signature(fn).parameters.values())
        named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
        self.names = [p.name for p in named]
        self.types = [known.get(p.name, Any) for p in named]
        self.least = sum(p.default is p.empty for p in named)
        self.rest = [known.get(p.name, Any) for p in parameters if p.kind is p.VAR_POSITIONAL]
        self.unreachable = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        self._codecs: dict[int, Typed] = {}

    def misfit(self, count: int) -> str | None:
        """Why so many arguments cannot be given."""
        if self.unreachable:
            return f"its parameter {self.unreachable[0]} is taken by keyword only; give it a default"
        if count < self.least:
            return f"{' and '.join(self.names[count : self.least])} missing"
        if count > len(self.names) and not self.rest:
            return f"it takes {len(self.names)} beside the run, and {count} were given"
        return None

    def codec(self, count: int) -> Typed:
        """For an array of so many arguments."""
        if count not in self._codecs:
            self._codecs[count] = typed(cast("Any", tuple)[tuple(self._types(count))])
        return self._codecs[count]

    def refusal(self, args: Sequence[Any], limits: Limits) -> Unencodable | None:
        """Which argument cannot be stored, told under its parameter's name."""
        for index, (tp, arg) in enumerate(zip(self._types(len(args)), args, strict=True)):
            try:
                typed(tp).encode(arg, limits)
            except Unencodable as error:
                path = str(error.fields["path"])
                inner = "" if path == "$" else path if path.startswith("[") else f".{path}"
                return Unencodable(path=self.place(f"[{index}]{inner}"), reason=error.fields["reason"])
        return None

    def _types(self, count: int) -> list[Any]:
        return (self.types + self.rest * (count - len(self.types)))[:count]

    def place(self, path: str) -> str:
        """`[1].amount` by the parameter's name: `payment.amount`."""
        found = re.match(r"\[(\d+)\]", path)
        if found is None or int(found[1]) >= len(self.names):
            return path
        return self.names[int(found[1])] + path[found.end() :]


def _signature(fn: Function) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(fn, annotation_format=Format.FORWARDREF)
    return inspect.signature(fn)


# --- the arguments of a step --------------------------------------------------------------------------

_NONE = digest(b"[]")
_DEEPEST = 200
_text_of = json.JSONEncoder(sort_keys=True).encode


def args_digest(args: Sequence[Any]) -> str:
    """Tells whether a step is called with what it was recorded with. What is no data counts by its type's name."""
    if not args:
        return _NONE
    return digest(_text_of([_told(arg) for arg in args]).encode())


def _told(value: Any, above: tuple[int, ...] = ()) -> Any:
    """A value as plain JSON that is the same in every process: sets are sorted, objects without data are named."""
    kind = kind_of(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value
    if kind is int:
        return value if value.bit_length() < 10_000 else hex(value)
    parts = children(value)
    if parts is None:
        return _leaf(value)
    if id(value) in above or len(above) == _DEEPEST:
        return kind.__qualname__
    above = (*above, id(value))
    if isinstance(value, set | frozenset):
        return sorted(_text_of(_told(part, above)) for _, part in parts)
    if not isinstance(value, list | tuple | deque):
        return {_key(step): _told(part, above) for step, part in parts}
    return [_told(part, above) for _, part in parts]


def _key(step: object) -> str:
    return step if isinstance(step, str) else _text_of(_told(step))


def _leaf(value: Any) -> str:
    """Text for a date, a number, bytes, an enum …; the type's name for all else. An iterator is not used up."""
    kind = kind_of(value)
    if hasattr(kind, "__next__"):
        return kind.__qualname__
    try:
        told = to_json(value, bytes_mode="base64", inf_nan_mode="constants", fallback=lambda _: kind.__qualname__)
    except Exception:
        return kind.__qualname__
    return told.decode()

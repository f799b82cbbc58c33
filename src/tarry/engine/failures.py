"""Exceptions that come back from the journal as themselves (rule 3.7).

Only classes that the code at hand declares are ever built: a row cannot choose one. What cannot be rebuilt
alike comes back as `StepFailed`, on the first pass as on every replay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tarry.core.codec import encode_error
from tarry.errors import TarryError


def with_state(error: BaseException, declared: Sequence[type[Exception]]) -> bytes:
    """The error as data; one of a declared class with what it takes to build it again."""
    record = encode_error(error)
    if type(error) not in declared:
        return record
    state = error.fields if isinstance(error, TarryError) else vars(error)
    try:
        extra = json.dumps({"args": list(error.args), "state": state}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return record
    return json.dumps(json.loads(record) | {"as_itself": json.loads(extra)}).encode()


def rebuilt(value: bytes, declared: Sequence[type[Exception]]) -> Exception | None:
    data: dict[str, Any] = json.loads(value)
    extra = data.get("as_itself")
    if extra is None:
        return None
    for cls in declared:
        if [cls.__module__, cls.__qualname__] == [data.get("module"), data.get("qualname", data.get("type"))]:
            return _build(cls, extra["args"], extra["state"])
    return None


def _build(cls: type[Exception], args: list[Any], state: dict[str, Any]) -> Exception:
    if issubclass(cls, TarryError):
        return cls(**state)
    error = cls.__new__(cls, *args)
    error.args = tuple(args)
    vars(error).update(state)
    return error

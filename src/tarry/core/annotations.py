"""What a function's annotations say, resolved as far as they can be.

An annotation that names what is not there at run time (imported for type checkers only, or local to a function) counts
as none; it does not take the function's other annotations with it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from types import MethodType, SimpleNamespace
from typing import Any, cast, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

Function = Callable[..., Any]

_known: WeakKeyDictionary[Function, Mapping[str, Any]] = WeakKeyDictionary()


def return_type(fn: Function, returns: Any = None) -> Any:
    """The type of what a call comes to: `returns` where it is given, else by annotation; None: not declared."""
    if returns is not None:
        return returns
    if isinstance(fn, type):
        return fn
    told = hints(fn).get("return")
    return get_args(told)[-1] if get_origin(told) in (Awaitable, Coroutine) else told


def hints(fn: Function) -> Mapping[str, Any]:
    """Type by parameter name, and under "return"; without those that cannot be resolved."""
    function = _function(fn)
    try:
        if (known := _known.get(function)) is None:
            known = _known[function] = _resolved(function)
        return known
    except TypeError:  # a callable that cannot be remembered: it has no hash, or takes no weak reference
        return _resolved(function)


def _function(fn: Function) -> Function:
    """The function that bears the annotations: behind a partial, a bound method, an object that can be called."""
    while isinstance(fn, partial):
        fn = cast("partial[Any]", fn).func
    if isinstance(fn, MethodType):
        return fn.__func__
    return fn if hasattr(fn, "__name__") else type(fn).__call__


def _resolved(fn: Function) -> Mapping[str, Any]:
    try:
        return get_type_hints(fn, include_extras=True)
    except Exception:  # whatever an annotation raises when it is evaluated
        return {name: tp for name, told in _annotations(fn).items() for tp in _one(fn, name, told)}


def _one(fn: Function, name: str, told: Any) -> list[Any]:
    bearer = SimpleNamespace(__annotations__={name: told})
    try:
        return [get_type_hints(bearer, getattr(fn, "__globals__", {}), include_extras=True)[name]]
    except Exception:
        return []


def _annotations(fn: Function) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(fn, format=Format.FORWARDREF)
    return getattr(fn, "__annotations__", {})

"""A declared type and its payloads: values to the bytes of their JSON, and back (rule 13).

JSON by Pydantic's rules, with three promises of its own. What is written can be read: NaN, halves of surrogate pairs,
cycles and too long integers are refused with the place. What is read equals what was written, type for type, or the
value is refused when it is written. One value is one text in every process, sets included. No error holds what a
payload holds.

A type's core schema is taken from an adapter of a one-element tuple of it: only so does Pydantic's config (bytes as
base64, NaN not as null) reach a dataclass or a TypedDict. A model has a config of its own; what that does to bytes
or NaN is refused where it loses something.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import CoreConfig, SchemaSerializer, SchemaValidator, from_json, to_json

from tarry.core.canonical import digest
from tarry.core.faithful import Change, alike, changed, in_order
from tarry.core.plain import DIGITS, LIMITS, check_size, holds_nan, kind_of, survey, trouble
from tarry.core.schema import FieldErrors, schema_of, told_by_type
from tarry.core.shape import shape_of
from tarry.core.shown import cut, type_name
from tarry.errors import Undecodable, Unencodable
from tarry.model import FieldError, Limits

_CONFIG = ConfigDict(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants", allow_inf_nan=False
)
_CORE_CONFIG = CoreConfig(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants", allow_inf_nan=False
)

_LONG = b"0" * (DIGITS + 1)
_subclasses = type.__subclasses__
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)


class Typed:
    """One declared type. `schema` is None where it has none, and everything is let in at the door."""

    def __init__(self, tp: Any) -> None:
        self.type = tp
        self.name = type_name(tp)

    def encode(self, value: Any, limits: Limits = LIMITS) -> bytes:
        """Raises Unencodable, PayloadTooLarge or PayloadTooDeep, before anything is stored."""
        codec = self._codec
        if not isinstance(value, codec.root):  # Pydantic writes {} for any object where a model is expected
            raise _mismatch("$", self.name, type_name(kind_of(value)))
        try:
            data = codec.write(value)
        except Exception as error:
            raise trouble(value, limits=limits) or _refusal(self.name, str(error)) from None
        if codec.sets:
            data = in_order(value, data)
        check_size(data, limits)
        if codec.suspects(value, data) and (found := trouble(value, limits=limits)):
            raise found
        if codec.verifies or any(map(_subclasses, codec.classes)):
            codec.verify(value, data)
        return data

    def decode(self, data: bytes) -> Any:
        """Raises Undecodable, with the field errors."""
        try:
            return self._codec.read(data)
        except ValidationError as error:
            errors = told_by_type(error)
        except Unencodable as error:
            errors = FieldErrors([FieldError("$", error.fields["reason"])])
        except Exception as error:
            errors = FieldErrors([FieldError("$", f"{type(error).__name__}, raised by a validator")])
        raise Undecodable(type_name=self.name, errors=errors, field_errors=errors)

    def ready(self) -> None:
        """Raises Unencodable now, not at the first value, if the type has no JSON form."""
        assert self._codec

    @cached_property
    def schema(self) -> bytes | None:
        try:
            return schema_of(self._codec.schema, self._codec.by_alias)
        except Unencodable:
            return None

    @cached_property
    def schema_digest(self) -> str:
        """Names the schema; empty where there is none."""
        return digest(self.schema) if self.schema is not None else ""

    @cached_property
    def _codec(self) -> _Codec:
        try:
            return _Codec(self.type)
        except Exception as error:
            reason = cut(str(error).partition("\n")[0].partition(". ")[0], 150)
            raise Unencodable(path="$", reason=f"{self.name} has no JSON form: {reason}") from error


class _Untyped(Typed):
    """JSON's own types, as they are. Untyped values have no schema."""

    def __init__(self) -> None:
        super().__init__(None)
        self.name = "JSON"

    def encode(self, value: Any, limits: Limits = LIMITS) -> bytes:
        survey(value, limits)
        try:
            data = to_json(value)
        except Exception as error:
            raise trouble(value, plain=True, limits=limits) or _refusal(self.name, str(error)) from None
        check_size(data, limits)
        return data

    def decode(self, data: bytes) -> Any:
        try:
            return from_json(data)
        except ValueError as error:
            errors = FieldErrors([FieldError("$", str(error))])
        raise Undecodable(type_name=self.name, errors=errors, field_errors=errors)

    def ready(self) -> None:
        """Untyped JSON always has its form."""

    @cached_property
    def schema(self) -> bytes | None:
        return None


class _Codec:
    """What Pydantic builds for a type."""

    def __init__(self, tp: Any) -> None:
        self.schema = schema = _core_schema(tp)
        shape = shape_of(schema)
        self.by_alias = shape.by_alias
        self.sets = shape.sets
        self.nulls = shape.nulls
        self.verifies = shape.verify
        self.classes = shape.classes
        self.root: type = tp if tp in shape.classes else object
        self.write: Callable[[Any], bytes] = partial(
            SchemaSerializer(schema, _CORE_CONFIG).to_json,
            by_alias=self.by_alias,
            round_trip=True,
            warnings="error",
        )
        self.read: Callable[[bytes], Any] = partial(
            SchemaValidator(schema, _CORE_CONFIG).validate_json, by_alias=True, by_name=True
        )

    def suspects(self, value: object, data: bytes) -> bool:
        """Whether the text may stand for what JSON has not: NaN, Infinity, an integer that no reader takes."""
        if b"NaN" in data or b"Infinity" in data:
            return True
        if len(data) > DIGITS and _LONG in data.translate(_DIGITS_ALIKE):
            return True
        return self.nulls and b"null" in data and holds_nan(value)

    def verify(self, value: object, data: bytes) -> None:
        """Reads back what was written, and refuses what has changed."""
        try:
            copy = self.read(data)
        except ValidationError as error:
            told = told_by_type(error)[0]
            change = Change(told.path, f"what is written could not be read back: {told.reason}")
        except Exception as error:
            change = Change("$", f"what is written could not be read back: {type(error).__name__}")
        else:
            change = None if alike(value, copy) else changed(value, copy)
        if change is not None:
            raise Unencodable(path=change.path, reason=f"{change.reason}. Declare a type that fits, or convert it")


def _core_schema(tp: Any) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", tuple)[tp], config=_CONFIG)
    schema: Any = adapter.core_schema
    if schema["type"] == "definitions":
        return {**schema, "schema": schema["schema"]["items_schema"][0]}
    return schema["items_schema"][0]


_UNEXPECTED = re.compile(r"Expected `([^`]+)`(?:.*\binput_type=(\w+))?", re.DOTALL)
_FIELD = re.compile(r"\[field_name='(\w+)'")
_KNOWN = re.compile(r"(Unable to serialize unknown type: .*|Error calling function `\w+`: \w+|invalid utf-8)")


def _refusal(name: str, told: str) -> Unencodable:
    """Pydantic's reason, without the values that it quotes."""
    field = _FIELD.search(told)
    path = field[1] if field else "$"
    if found := _UNEXPECTED.search(told):
        return _mismatch(path, found[1], found[2] or "another")
    if found := _KNOWN.search(told):
        reason = cut(found[1], 120).replace("invalid utf-8", "its bytes are not UTF-8: configure base64")
        return Unencodable(path=path, reason=f"{reason} (as {name})")
    return Unencodable(path=path, reason=f"Pydantic cannot write it as {name}")


def _mismatch(path: str, expected: str, got: str) -> Unencodable:
    return Unencodable(path=path, reason=f"it should be of type {cut(expected, 80)}, not {cut(got, 40)}")


# --- one codec per type -------------------------------------------------------------------------------

_UNTYPED = _Untyped()


def typed(tp: Any) -> Typed:
    """The codec of a type, made once: a class, any annotation, or None for untyped JSON."""
    if tp is None or tp is Any or tp is object:
        return _UNTYPED
    try:
        return _typed(tp, "" if isinstance(tp, type) else repr(tp))
    except TypeError:  # an annotation whose metadata has no hash
        return Typed(tp)


@lru_cache(maxsize=4096)
def _typed(tp: Any, _text: str) -> Typed:
    """The text tells apart what is equal and yet decodes differently: `int | str` and `str | int`."""
    return Typed(tp)


def type_errors(tp: Any, data: bytes) -> FieldErrors:
    """Why a payload does not fit its type, by the type itself: what a schema cannot express."""
    try:
        typed(tp).decode(data)
    except Undecodable as error:
        return error.fields["field_errors"]
    return FieldErrors()

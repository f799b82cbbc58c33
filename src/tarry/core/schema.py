"""JSON schemas: what a type accepts as a document on file, so that a process without the code can say at the door
what is wrong with a payload (rule 4.6).

A schema admits at least what its type writes. Where it cannot know that (a serializer of the author's own, a bound
on what is measured in another unit than the text), it leaves the question to the type, which is asked when the
payload is taken in. A type without any JSON schema accepts everything at the door.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any, cast

from jsonschema_rs import Draft202012Validator, ReferencingError, ValidationError, ValidationErrorKind
from pydantic import ValidationError as Misfit
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema as core
from pydantic_core import from_json, to_json

from tarry.core.canonical import canonical
from tarry.core.shape import fields_of, read_as, read_in, written_as
from tarry.core.shown import cut, place
from tarry.model import FieldError

ERRORS = 20
REASON_CHARS = 200


class FieldErrors(tuple[FieldError, ...]):
    """Why a payload does not fit, as text: `amount: Input should be a valid integer; …`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(f"{error.path}: {error.reason}" for error in self)


# --- from a type -------------------------------------------------------------------------------------


def schema_of(core_schema: core.CoreSchema, by_alias: bool) -> bytes | None:
    """The JSON schema of a type, canonical; None where it has none. `by_alias`: whether it is written so."""
    try:
        return canonical(to_json(_Door(by_alias=by_alias).generate(core_schema)))
    except Exception:  # whatever Pydantic, or a hook of the type's own, makes of it
        return None


class _Door(GenerateJsonSchema):
    """Pydantic's schema for reading, opened to all that the same type writes."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """What has no place in a schema, like a default that is no JSON, is left out of it."""

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        read = super().generate_inner(schema)
        if "serialization" not in schema or "type" not in schema["serialization"]:
            return read
        written = self.ser_schema(schema["serialization"])
        if written is None:
            return {}
        return read if read == written else {"anyOf": [read, written]}

    def bytes_schema(self, schema: core.BytesSchema) -> JsonSchemaValue:
        """Length is counted in bytes, and text in base64 is longer."""
        return _without(super().bytes_schema(schema), "minLength", "maxLength")

    def float_schema(self, schema: core.FloatSchema) -> JsonSchemaValue:
        """0.3 is a multiple of 0.1 as text and none as a double."""
        return _without(super().float_schema(schema), "multipleOf")

    def decimal_schema(self, schema: core.DecimalSchema) -> JsonSchemaValue:
        """A pattern for digits refuses 1E+5."""
        told = super().decimal_schema(schema)
        return told | {"anyOf": [_without(part, "pattern") for part in told["anyOf"]]}

    def dict_schema(self, schema: core.DictSchema) -> JsonSchemaValue:
        """A key is text, also where its type is a number."""
        told = super().dict_schema(schema)
        keys = schema.get("keys_schema", {}).get("type")
        return told if keys == "str" else _without(told, "propertyNames")

    def model_fields_schema(self, schema: core.ModelFieldsSchema) -> JsonSchemaValue:
        return self._under_each_name(schema, super().model_fields_schema(schema))

    def dataclass_args_schema(self, schema: core.DataclassArgsSchema) -> JsonSchemaValue:
        return self._under_each_name(schema, super().dataclass_args_schema(schema))

    def typed_dict_schema(self, schema: core.TypedDictSchema) -> JsonSchemaValue:
        return self._under_each_name(schema, super().typed_dict_schema(schema))

    def _under_each_name(self, schema: Any, told: JsonSchemaValue) -> JsonSchemaValue:
        """A field that comes under more than one name may come under each, and is asked for under none."""
        properties: dict[str, Any] = told.get("properties", {})
        required: set[str] = set(told.get("required", ()))
        for name, field in fields_of(schema):
            names = {written_as(name, field) if self.by_alias else name, *read_as(field)}
            known = {name, *names} & properties.keys()
            if known and (names != known or read_in(field)):
                properties |= dict.fromkeys(names, properties[min(known)])
                properties |= {member: True for member in read_in(field) if member not in properties}
                required -= {name, *names}
        return _without(told, "required") | ({"required": sorted(required)} if required else {})


def _without(schema: JsonSchemaValue, *keywords: str) -> JsonSchemaValue:
    return {name: value for name, value in schema.items() if name not in keywords}


# --- at the door -------------------------------------------------------------------------------------


def field_errors(schema: bytes, data: bytes) -> FieldErrors:
    """What does not fit, at most 20 reasons; nothing, for a schema that cannot be used."""
    validator = _validator(schema)
    if validator is None:
        return FieldErrors()
    try:
        value = from_json(data)
    except ValueError:
        return FieldErrors([FieldError("$", "it is not JSON that can be read")])
    if validator.is_valid(value):
        return FieldErrors()
    return FieldErrors(_told(error) for error in islice(validator.iter_errors(value), ERRORS))


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Draft202012Validator | None:
    """Compiled once. `mask`: what a payload holds is in no error; `offline`: no schema makes it fetch anything."""
    try:
        return Draft202012Validator(from_json(schema), mask="the value", offline=True)
    except (ValueError, ReferencingError):
        return None


def _told(error: ValidationError) -> FieldError:
    return FieldError(place(error.instance_path), cut(_reason(error), REASON_CHARS))


def _reason(error: ValidationError) -> str:
    """For a union, what each of its members says, instead of that none fits."""
    if isinstance(error.kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        branches = [branch[0] for branch in error.kind.context if branch]
        depth = max((len(branch.instance_path) for branch in branches), default=0)
        nearest = [branch for branch in branches if len(branch.instance_path) == depth]
        return "; or ".join(dict.fromkeys(map(_reason, nearest)))
    return error.message


# --- when the type itself is asked -------------------------------------------------------------------


def told_by_type(error: Misfit) -> FieldErrors:
    """The reasons of Pydantic, without the payload's content. Of a key, the key is the place."""
    rows = error.errors(include_url=False, include_context=True, include_input=False)
    return FieldErrors(
        FieldError(
            place(step for step in row["loc"] if step != "[key]"),
            cut(_without_content(cast("dict[str, Any]", row)), REASON_CHARS),
        )
        for row in rows[:ERRORS]
    )


def _without_content(row: dict[str, Any]) -> str:
    if row["type"] == "union_tag_invalid":
        return f"the tag is none of {row['ctx']['expected_tags']}"
    return row["msg"]

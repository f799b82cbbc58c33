"""What Pydantic's core schema of a type tells about the type's JSON.

Most types come back from JSON as they were by construction. Some need not: an `Any` in them, a union whose members
write the same text, a serializer of their own. For those each value is read back once when it is written
(`verify`), and refused if it has changed: nothing is lost in silence (rule 13). What is not known is such a type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

Node = Mapping[str, Any]

_FAITHFUL = {
    *("none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime", "timedelta", "uuid"),
    *("list", "tuple", "set", "frozenset", "deque", "dict", "nullable", "tagged-union", "literal", "enum"),
    *("model", "model-fields", "model-field", "dataclass", "dataclass-args", "dataclass-field"),
    *("typed-dict", "typed-dict-field", "default", "definitions", "definition-ref"),
}
_APART = {"metadata", "serialization", "default", "config", "computed_fields"}
"""Parts of a node that are no parts of the value."""


@dataclass(frozen=True)
class Shape:
    """`classes` are the models and dataclasses in the type: a value of a subclass would lose what it adds.
    `nulls`: a class in it has Pydantic's default config, which writes NaN as null. `sets`: it holds sets, which
    are written in an order that differs between processes. `by_alias`: its fields are written under their
    aliases; not where a field could not be read under the alias that it is written under."""

    verify: bool
    nulls: bool
    sets: bool
    by_alias: bool
    classes: tuple[type, ...]


def shape_of(core_schema: Any) -> Shape:
    nodes = list(_nodes(core_schema))
    kinds = {node["type"] for node in nodes}
    return Shape(
        verify=not kinds <= _FAITHFUL or any(map(_changes, nodes)),
        nulls="float" in kinds and any(map(_writes_nan_as_null, nodes)),
        sets=not kinds.isdisjoint({"set", "frozenset"}),
        by_alias=all(readable(name, field) for node in nodes for name, field in fields_of(node)),
        classes=tuple({node["cls"]: None for node in nodes if node["type"] in ("model", "dataclass")}),
    )


def fields_of(node: Node) -> Iterator[tuple[str, Node]]:
    """The fields of a model, dataclass or TypedDict, by name."""
    fields = node.get("fields") if node["type"] in ("model-fields", "typed-dict", "dataclass-args") else None
    if isinstance(fields, list):
        for field in cast("list[Node]", fields):
            yield field["name"], field
    elif isinstance(fields, dict):
        yield from cast("dict[str, Node]", fields).items()


def written_as(name: str, field: Node) -> str:
    return field.get("serialization_alias") or name


def read_as(field: Node) -> list[str]:
    """The aliases under which a field is read, beside its own name."""
    return [path[0] for path in _aliases(field) if len(path) == 1]


def read_in(field: Node) -> list[str]:
    """The members inside of which a field is looked for."""
    return [path[0] for path in _aliases(field) if len(path) > 1]


def _aliases(field: Node) -> list[list[Any]]:
    alias: Any = field.get("validation_alias")
    if not alias:
        return []
    if isinstance(alias, str):
        return [[alias]]
    return alias if isinstance(alias[0], list) else [alias]


def readable(name: str, field: Node) -> bool:
    return written_as(name, field) in (name, *read_as(field))


def _nodes(value: object) -> Iterator[Node]:
    """All parts of a core schema that have a type of their own, the schema itself first."""
    if isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        if isinstance(node.get("type"), str):
            yield node
        for name, child in node.items():
            if name not in _APART:
                yield from _nodes(child)
    elif isinstance(value, list | tuple):
        for child in cast("list[object]", value):
            yield from _nodes(child)


def _changes(node: Node) -> bool:
    """Whether a part of a faithful kind has something about it that may change a value on the way."""
    match node["type"]:
        case "dict":
            return node.get("keys_schema", {}).get("type") not in ("str", "int")
        case "enum":
            return not all(type(member.value) in (str, int) for member in node["members"])
        case "literal":
            return not all(type(value) in (str, int, bool, type(None)) for value in node["expected"])
        case "model" | "dataclass":
            config = node.get("config", {})
            extra = config.get("extra_fields_behavior") == "allow"
            return bool(node.get("post_init") or node.get("custom_init") or extra or "serialization" in node)
        case "dataclass-field":
            return bool(node.get("init_only")) or node.get("init") is False
        case "model-fields" | "typed-dict":
            return node.get("extra_behavior") == "allow"
        case _:
            return "serialization" in node


def _writes_nan_as_null(node: Node) -> bool:
    return node["type"] in ("model", "dataclass") and node.get("config", {}).get("ser_json_inf_nan", "null") == "null"

"""SQL by name: each dialect's statements stand in .sql files beside this module, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_MARK = "-- name: "


@cache
def statements(dialect: str) -> Mapping[str, str]:
    """The named statements of a dialect. A name that is given twice is an error, not an override."""
    found: dict[str, str] = {}
    for block in sql_file(dialect, "queries.sql").split(_MARK)[1:]:
        name, _, text = block.partition("\n")
        assert name not in found, f"the statement {name} is written twice"
        found[name] = text.partition("\n\n\n")[0].strip()
    return MappingProxyType(found)


@cache
def migrations(dialect: str) -> tuple[str, ...]:
    """The scripts that take a database from each version to the next; the first one makes it."""
    folder = files("tarry.store") / "sql" / dialect / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == [*range(1, len(names) + 1)], "migrations are numbered from 0001"
    return tuple(sql_file(dialect, "migrations", name) for name in names)


def sql_file(dialect: str, *path: str) -> str:
    return (files("tarry.store") / "sql" / dialect).joinpath(*path).read_text("utf-8")

"""The public surface is what `__all__` says: sorted, each name there, and no public name beside it.

And it is light: `import tarry` brings in neither the command line's libraries nor a second SQLite, which in
one process with the first would break its file locks.
"""

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.house.tree import Source, built, sources

FACES = ("tarry", "tarry.testing")
HEAVY = {
    "_sqlite3",
    "anyio",
    "cyclopts",
    "fastapi",
    "httpx",
    "hypothesis",
    "multiprocessing",
    "opentelemetry",
    "psycopg",
    "pytest",
    "rich",
    "sqlite3",
    "tarry.edge",
    "tarry.testing",
    "unittest",
    "uvicorn",
}


def astray(module: Any) -> Iterator[str]:
    """Names that `__all__` promises and the module lacks, or has and does not tell."""
    told = set(getattr(module, "__all__", ()))
    for name in sorted(told):
        if not hasattr(module, name):
            yield f"{module.__name__}.__all__ names {name}, which is not there"
    for name, value in vars(module).items():
        room = isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}.")
        if not name.startswith("_") and name not in told and not room:
            yield f"{module.__name__}.{name} is public and not in __all__"


def unsorted(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if "__all__" in map(ast.unparse, targets):
                names = list(ast.literal_eval(node.value))
                if names != sorted(set(names)):
                    yield f"{source.name}:{node.lineno}: __all__ is not sorted, or names something twice"


def heavy(statement: str) -> set[str]:
    """Which heavy modules a fresh interpreter holds after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(ran.stdout))


@pytest.mark.parametrize("face", FACES)
def test_the_face_is_exact(face: str):
    module = importlib.import_module(face)
    if built("app.py"):
        assert module.__all__
    assert [*astray(module)] == []


def test_every_list_of_names_is_sorted():
    found = sources("src")
    assert found
    assert [line for source in found for line in unsorted(source)] == []


def test_importing_tarry_is_light():
    assert heavy("import tarry; tarry.App") == set()


def test_the_rule_sees_what_is_astray():
    module = ModuleType("face")
    exec("import os\n__all__ = ['gone', 'here']\nhere = there = _own = 1", vars(module))
    assert [line.split(" ")[0] for line in astray(module)] == ["face.__all__", "face.os", "face.there"]


@pytest.mark.parametrize("text", ["__all__ = ['b', 'a']", "__all__ = ['a', 'a']", "__all__: list[str] = ['b', 'B']"])
def test_the_rule_sees_disorder(text: str):
    assert [*unsorted(Source("a.py", text))]


def test_the_rule_sees_weight():
    assert heavy("import tarry, sqlite3, rich") == {"_sqlite3", "sqlite3", "rich"}

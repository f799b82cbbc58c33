"""Who may know which third party, and proof that the import contracts can break.

The rooms themselves are held by import-linter (pyproject.toml). A dependency has one home, so that it can be
replaced there: names with a pattern in them are beyond the contracts' language, and are held here.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house.tree import ROOT, SRC, Source, sources

HOMES = {
    "annotated_types": ("tarry.core.*",),
    "apsw": ("tarry.store.sqlite", "tarry.store.sqlite_*", "tarry.store.sql", "tarry.store.sql.*"),
    "cyclopts": ("tarry.edge.cli", "tarry.edge.cli.*"),
    "jsonschema_rs": ("tarry.core.*",),
    "psycopg": ("tarry.store.postgres", "tarry.store.postgres_*"),
    "pydantic": ("tarry.*",),
    "pydantic_core": ("tarry.*",),
    "pytest": ("tarry.testing", "tarry.testing.*"),
    "rich": ("tarry.edge.cli", "tarry.edge.cli.*"),
    "typing_extensions": ("tarry.*",),
}
SIBLINGS = ("memory", "sqlite", "postgres")


def strangers(source: Source) -> Iterator[str]:
    for line, module in source.imports():
        top = module.split(".")[0]
        own = top == "tarry" or top in (sys.stdlib_module_names | {"annotationlib"}) - {"sqlite3"}
        if not own and not any(fnmatch(source.module, home) for home in HOMES.get(top, ())):
            yield f"{source.name}:{line}: {source.module} imports {top}"


def cousins(source: Source) -> Iterator[str]:
    """A store that imports another, or a part of another such as sqlite_open."""
    families = [name for name in SIBLINGS if source.module.startswith(f"tarry.store.{name}")]
    for line, module in source.imports():
        for other in SIBLINGS:
            if families and other not in families and module.startswith(f"tarry.store.{other}"):
                yield f"{source.name}:{line}: {source.module} imports {module}"


def verdict(tmp_path: Path, contract: str, file: str, line: str) -> str:
    """What import-linter says of a copy of src with one more line in one file."""
    shutil.copytree(SRC, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("store/memory.py", "store/sqlite.py", file):
        (tmp_path / "src" / "tarry" / name).touch()
    with (tmp_path / "src" / "tarry" / file).open("a", encoding="utf-8") as changed:
        changed.write(f"\n{line}\n")
    linter = Path(sys.executable).with_name("lint-imports")
    command = [linter, "--no-logo", "--no-cache", "--contract", contract, ROOT / "pyproject.toml"]
    told = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout + told.stderr


def test_each_third_party_has_one_home():
    assert [line for source in sources("src") for line in strangers(source)] == []


def test_stores_do_not_import_each_other():
    assert [line for source in sources("src/tarry/store") for line in cousins(source)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/tarry/store/batch.py", "import apsw"),
        ("src/tarry/edge/http.py", "def f():\n    from rich.table import Table"),
        ("src/tarry/store/sqlite.py", "import sqlite3"),
        ("src/tarry/app.py", "import requests"),
    ],
)
def test_the_rule_sees_a_stranger(name: str, text: str):
    assert [*strangers(Source(name, text))]


def test_the_rule_sees_a_cousin():
    assert [*cousins(Source("src/tarry/store/memory.py", "from tarry.store.sqlite_open import opened"))]


@pytest.mark.parametrize(
    ("contract", "file", "line"),
    [
        ("rooms", "core/decide/__init__.py", "from tarry.store import protocol"),
        ("rooms", "store/__init__.py", "if TYPE_CHECKING:\n    import tarry.engine"),
        ("rooms", "attic.py", '"""A module that stands in no room."""'),
        ("face", "engine/__init__.py", "import tarry"),
        ("stores", "store/memory.py", "import tarry.store.sqlite"),
        ("pure", "core/__init__.py", "def f():\n    import asyncio"),
        ("pure", "model.py", "from os.path import join"),
    ],
)
def test_the_contracts_can_break(tmp_path: Path, contract: str, file: str, line: str):
    assert "0 kept, 1 broken" in verdict(tmp_path, contract, file, line)


@pytest.mark.parametrize("contract", ["rooms", "face", "stores", "edges", "pure"])
def test_the_contracts_are_kept(tmp_path: Path, contract: str):
    assert "1 kept, 0 broken" in verdict(tmp_path, contract, "core/__init__.py", "")

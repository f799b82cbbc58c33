"""What is shipped: the whole package with its SQL and its type marker, and six dependencies; no more."""

import re
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from tests.house.tree import ROOT, SRC

SUFFIXES = {".py", ".typed", ".sql", ".json", ".txt"}  # the demo's recorded bodies, and their licence
NEEDS = {"apsw", "cyclopts", "jsonschema-rs", "pydantic", "rich", "typing-extensions"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    into = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", into, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = into.glob("*.whl")
    return ZipFile(built)


def shipped(name: str) -> bool:
    """Whether a file belongs in the wheel: in the package or its metadata, and of a kind that is ours."""
    path = PurePosixPath(name)
    metadata = path.parts[0].startswith("tarry-") and path.parts[0].endswith(".dist-info")
    return metadata or (path.parts[0] == "tarry" and path.suffix in SUFFIXES and "tests" not in path.parts)


def metadata(wheel: ZipFile) -> dict[str, list[str]]:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    parsed = HeaderParser().parsestr(wheel.read(name).decode())
    return {key: [str(value) for value in parsed.get_all(key, [])] for key in parsed}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: ZipFile):
    assert [name for name in wheel.namelist() if not shipped(name)] == []


def test_the_wheel_holds_all_of_the_package(wheel: ZipFile):
    ours = {path.relative_to(SRC).as_posix() for path in (SRC / "tarry").rglob("*") if path.suffix in SUFFIXES}
    assert ours > {"tarry/__init__.py"}
    assert ours - set(wheel.namelist()) == set()
    assert "tarry/py.typed" in ours


def test_the_wheel_says_what_it_needs(wheel: ZipFile):
    told = metadata(wheel)
    base = [need for need in told["Requires-Dist"] if "extra ==" not in need]
    assert {re.split(r"[^\w-]", need)[0] for need in base} == NEEDS
    assert told["Requires-Python"] == [">=3.11"]
    assert told["License-Expression"] == ["Apache-2.0"]
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


@pytest.mark.parametrize("name", ["tests/test_a.py", "tarry/notes.md", "tarry/a.so", "tarry/tests/a.py", "other/a.py"])
def test_the_rule_sees(name: str):
    assert not shipped(name)


def test_the_sources_are_shipped():
    assert all(map(shipped, ("tarry/app/app.py", "tarry/py.typed", "tarry/store/sql/sqlite/schema.sql")))
    assert Path(ROOT / "LICENSE").exists()

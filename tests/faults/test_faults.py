"""Real processes, really killed (rules 3.5, 4.2, 5.4, 11.1 to 11.4).

The sizes here are for every day; `make check` runs the siege at its full size (see the Makefile).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADVANCE = "src/tarry/core/decide/advance.py"
FENCE = """    if run.worker != command.worker or run.epoch != command.epoch:
        raise LeaseLost(run_id=command.run_id, epoch=command.epoch)
"""
LOOK_AGAIN = """    if _answerable(draft, part):
        return
"""


def run(module: str, *arguments: str, source: Path = ROOT / "src") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=115,
    )


def without(tmp_path: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of the source with some of its lines changed."""
    shutil.copytree(ROOT / "src" / "tarry", tmp_path / "src" / "tarry")
    for name, old, new in changes:
        file = tmp_path / name
        text = file.read_text()
        assert text.count(old) == 1, f"{name} no longer holds the lines that are taken out"
        file.write_text(text.replace(old, new))
    return tmp_path / "src"


def test_a_worker_killed_at_each_commit_boundary_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """SPEC 3.5, 11.4, S22: before and after each commit of a run, once."""
    told = run("tests.faults.boundaries", str(tmp_path))
    assert told.returncode == 0, told.stdout + told.stderr
    assert ", 0 with violations" in told.stdout


def test_a_siege_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """SPEC 11.3, 11.4, S54: kills at random, zombies, workers whose lease lapses unnoticed."""
    told = run("tests.faults.siege", str(tmp_path / "town"), "--runs", "120", "--kills", "12", "--stops", "1")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "0 lost, 0 applied twice, 0 stuck" in told.stdout


@pytest.mark.long
def test_without_the_fence_the_siege_finds_it(tmp_path: Path) -> None:
    """SPEC 11.3: the control. Both layers are off: the epoch, and the journal's primary key under it."""
    source = without(
        tmp_path,
        (ADVANCE, FENCE, ""),
        ("src/tarry/store/sql/sqlite/queries.sql", "insert into entries", "insert or replace into entries"),
    )
    told = run("tests.faults.siege", str(tmp_path / "town"), "--runs", "200", "--kills", "25", source=source)
    assert told.returncode == 1, told.stdout + told.stderr


def test_with_a_pause_that_does_not_look_again_the_siege_finds_it(tmp_path: Path) -> None:
    """SPEC 4.2: the control for lost wake-ups."""
    source = without(tmp_path, (ADVANCE, LOOK_AGAIN, ""))
    told = run(
        "tests.faults.siege", str(tmp_path / "town"), "--runs", "60", "--kills", "5", "--patience", "5", source=source
    )
    assert told.returncode == 1, told.stdout + told.stderr
    assert " 0 stuck" not in told.stdout

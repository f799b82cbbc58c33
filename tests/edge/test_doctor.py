"""doctor finds what is wrong, says what to do, and exits with 1 where something is broken."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tarry.edge.cli import doctor
from tests.edge.conftest import Command, Drive, Ran


def graded(ran: Ran) -> dict[str, str]:
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert all(row["remedy"] or row["grade"] == "ok" for row in rows)
    return {row["what"]: row["grade"] for row in rows}


def test_a_healthy_store(tarry: Command) -> None:
    """SPEC 14: 0; that no worker runs is a warning."""
    tarry("start", "order", '"o-1"', "--id", "r")
    ran = tarry("doctor", "--json")
    found = graded(ran)
    assert ran.code == 0
    assert found["integrity: ok"] == found["journal mode wal, synchronous 2"] == "ok"
    assert found["live workers: 0"] == found["no live worker has the code of order"] == "warn"
    assert "live workers: 0. Nothing goes on until one runs" in tarry("doctor").out


def test_blocked_runs(tarry: Command, drive: Drive) -> None:
    """SPEC 14: they are pointed at."""
    tarry("start", "hangs", "--id", "r")
    drive("r")
    assert graded(tarry("doctor", "--json"))["blocked: 1"] == "warn"


def test_an_open_file(tarry: Command, tmp_path: Path) -> None:
    """SPEC 14: payloads are secret."""
    tarry("start", "order", '"o-1"', "--id", "r")
    os.chmod(tmp_path / "shop.db", 0o644)
    assert graded(tarry("doctor", "--json"))["the file's mode is 0o644"] == "warn"


def test_a_damaged_store(tarry: Command, tmp_path: Path) -> None:
    """SPEC 14: 1, and the rest of what can be told is told all the same."""
    (tmp_path / "shop.db").write_bytes(b"not a database at all" * 1000)
    ran = tarry("doctor", "--json")
    assert ran.code == 1
    assert "fail" in [json.loads(line)["grade"] for line in ran.out.splitlines()]
    assert "Python 3" in ran.out


FINE: dict[str, Any] = {
    "path": ".",
    "file_size": 4096,
    "schema_version": 1,
    "sqlite_version": "3.51.3",
    "journal_mode": "wal",
    "synchronous": 2,
    "wal_size": 0,
    "file_mode": None,
    "other_library": False,
}


@pytest.mark.parametrize(
    ("wrong", "grade"),
    [
        ({}, "ok"),
        ({"sqlite_version": "3.51.2"}, "fail"),
        ({"journal_mode": "delete"}, "fail"),
        ({"synchronous": 1}, "fail"),
        ({"other_library": True}, "fail"),
        ({"wal_size": 1 << 30}, "warn"),
    ],
)
def test_each_fact_is_judged(wrong: dict[str, Any], grade: str) -> None:
    """SPEC 11.7, 14: what loses data fails, and says what to do."""
    found = [finding for finding in doctor.file_findings(FINE | wrong) if finding.grade != "ok"]
    assert [finding.grade for finding in found] == ([] if grade == "ok" else [grade])
    assert all(finding.remedy for finding in found)

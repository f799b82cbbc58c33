"""Where CI runs, a test that did not run is a failure: tests/conftest.py, tried on tests that skip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import TESTS

SKIPPING = {
    "a mark": "@pytest.mark.skip(reason='no postgres')\ndef test_a(): pass",
    "a call": "def test_a(): pytest.skip('no postgres')",
    "a module": "pytest.skip('no postgres', allow_module_level=True)",
    "an expected failure": "@pytest.mark.xfail(reason='no postgres')\ndef test_a(): assert False",
}


def outcome(tmp_path: Path, text: str, ci: str) -> tuple[int, str]:
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text(f"import pytest\n{text}\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rA",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
        tmp_path,
    ]
    env = os.environ | {"CI": ci}
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("text", SKIPPING.values(), ids=SKIPPING.keys())
def test_a_skip_fails_in_ci(tmp_path: Path, text: str):
    code, told = outcome(tmp_path, text, "true")
    assert code != 0
    assert "test_a.py" in told
    assert "did not run, and in CI every test must: no postgres" in told.replace("Skipped: ", "")


@pytest.mark.parametrize("text", SKIPPING.values(), ids=SKIPPING.keys())
def test_a_skip_is_told_elsewhere(tmp_path: Path, text: str):
    code, told = outcome(tmp_path, text, "")
    assert code in {0, pytest.ExitCode.NO_TESTS_COLLECTED}
    assert "no postgres" in told

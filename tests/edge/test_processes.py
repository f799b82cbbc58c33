"""The command as it is used: processes of their own, one store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TARRY = [sys.executable, "-m", "tarry"]
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "shop_app.py").write_text("from tests.edge.shop import opened\napp = opened()\n")
    store = {"TARRY_STORE": f"sqlite:///{tmp_path}/shop.db", "PYTHONPATH": str(ROOT)}
    return {name: value for name, value in os.environ.items() if name != "TARRY_LOG_LEVEL"} | store


@pytest.fixture
def worker(tmp_path: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [*TARRY, "worker", "shop_app:app", "--lease", "2"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "of shop_app:app runs basket, fails, hangs, order, unsure" in process.stderr.readline()
        yield process
        process.kill()


def tarry(tmp_path: Path, env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TARRY, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_a_start_and_a_signal(
    tmp_path: Path, env: dict[str, str], worker: subprocess.Popen[str], number: int
) -> None:
    """SPEC 11.4, 14: three processes meet on one file; SIGTERM and Ctrl-C end the worker with 0, its runs kept."""
    assert tarry(tmp_path, env, "start", "order", '"o-1"', "--id", "r").returncode == 0
    assert tarry(tmp_path, env, "signal", "r", "paid", '{"amount": 5}').stdout in ("delivered\n", "buffered\n")
    done = tarry(tmp_path, env, "start", "order", '"o-1"', "--id", "r", "--wait", "--timeout", "30s")
    assert (done.returncode, done.stdout) == (0, '"invoice-o-1: 5"\n')
    assert "live" in tarry(tmp_path, env, "workers").stdout
    worker.send_signal(number)
    _, told = worker.communicate(timeout=30)
    assert worker.returncode == 0
    assert "worker stopped" in told
    assert "Traceback" not in told
    assert tarry(tmp_path, env, "workers").stdout == "nothing\n"


def test_waiting_is_interrupted(tmp_path: Path, env: dict[str, str]) -> None:
    """SPEC 14: 130, no traceback; the run is not touched."""
    command = [*TARRY, "start", "order", '"o-1"', "--id", "r", "--wait"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "run r started\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (130, "")
    assert "ready" in tarry(tmp_path, env, "runs").stdout


def test_a_reader_that_goes_away(tmp_path: Path, env: dict[str, str]) -> None:
    """SPEC 14: `tarry runs | head` is no failure."""
    tarry(tmp_path, env, "start", "order", '"o-1"', "--id", "r")
    read, write = os.pipe()
    os.close(read)
    try:
        ran = subprocess.run(
            [*TARRY, "runs"], cwd=tmp_path, env=env, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")

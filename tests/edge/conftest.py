"""`tarry`: the command, called in this process on a store of its own; `drive`: what a worker would do, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tarry.edge.cli.main import main
from tests.edge import shop


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ran]
Drive = Callable[[str], None]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in ("TARRY_LOG_LEVEL", "COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.setenv(name, "")  # so that what a call sets is undone, too
        monkeypatch.delenv(name)
    named = f"sqlite:///{tmp_path}/shop.db"
    monkeypatch.setenv("TARRY_STORE", named)
    return named


@pytest.fixture
def tarry(url: str, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told = capsys.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else -1, told.out, told.err)

    return call


@pytest.fixture
def drive(url: str) -> Drive:
    async def once(run_id: str) -> None:
        async with shop.opened(url) as app:
            await app.drive(run_id)

    return lambda run_id: asyncio.run(once(run_id))

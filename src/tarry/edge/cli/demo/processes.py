"""The demo's other processes: a worker to be killed, and senders that know nothing of the workflow's code.

They are the commands that anybody types: `tarry worker`, `tarry signal`, `tarry send`, `tarry resolve`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

TARRY = (sys.executable, "-P", "-m", "tarry")
APP = "tarry.edge.cli.demo.shop:app"
LEASE_S = 1


class Worker:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None

    async def start(self) -> int:
        command = (*TARRY, "worker", APP, "--lease", str(LEASE_S))
        log = (self._folder / "worker.log").open("ab")
        with log:
            self._process = await asyncio.create_subprocess_exec(*command, cwd=self._folder, stderr=log)
        return self._process.pid

    async def kill(self) -> int:
        """kill -9: no clean-up, no farewell. Gives the pid of the dead."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        return self._process.pid

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


async def deliver(store: str, verb: str, run: str, name: str, payload: Any, key: str) -> dict[str, Any]:
    """`tarry signal` or `tarry send` in a process of its own; the receipt that it prints."""
    options = ("--key", key, "--actor", "github", "--json", "--store", store)
    told = await _call(verb, run, name, "-", *options, given=json.dumps(payload))
    return json.loads(told)


async def resolve(store: str, run: str, step: str, result: str) -> None:
    """`tarry resolve`: an operator says what became of a step."""
    await _call("resolve", run, step, "--result", json.dumps(result), "--actor", "ann", "--store", store)


async def _call(*arguments: str, given: str = "") -> str:
    process = await asyncio.create_subprocess_exec(*TARRY, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    told, complaint = await process.communicate(given.encode())
    if not told:
        raise RuntimeError(f"tarry {arguments[0]} ended with {process.returncode}: {complaint.decode()}")
    return told.decode()

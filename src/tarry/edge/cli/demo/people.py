"""The demo's other processes: a worker to be killed, and senders that know nothing of the workflow's code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


class Worker:
    def __init__(self, store: str, ledger: Path) -> None:
        self._command = [sys.executable, "-m", "tarry.edge.cli.demo.shop", store, str(ledger)]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> int:
        self._process = await asyncio.create_subprocess_exec(*self._command)
        return self._process.pid

    async def kill(self) -> None:
        """kill -9: no clean-up, no farewell."""
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


async def deliver(store: str, verb: str, run: str, name: str, payload: Any, key: str) -> dict[str, Any]:
    """`tarry signal` or `tarry send` in a process of its own; the receipt that it prints."""
    command = [sys.executable, "-m", "tarry", verb, run, name, "-", "--key", key]
    process = await asyncio.create_subprocess_exec(
        *command,
        "--actor",
        "github",
        "--json",
        "--store",
        store,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, complaint = await process.communicate(json.dumps(payload).encode())
    if not told:
        raise RuntimeError(complaint.decode())
    return json.loads(told)

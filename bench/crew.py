"""The processes of one trial, seen from the harness: started, asked, and ended by their own process ids.

A crew is a context: whatever happens in it, an answer, an error or a time limit, its processes are gone after
it.
"""

import asyncio
import json
import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.systems import System

ROOT = Path(__file__).parent.parent
LONGEST_LINE = 2**24


class Failed(Exception):
    """A process answered with an error; the text is its traceback."""


class Gone(Exception):
    """A process ended while it was asked; the text says how, and the last it wrote to standard error."""


class Member:
    """One process. Ask it one thing at a time."""

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.process = process
        self.errors = errors

    async def ask(self, call: str, **arguments: Any) -> Any:
        """Call a method of the role in that process and return what it returned."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"call": call, "arguments": arguments}).encode() + b"\n")
        reply = await self.hear()
        if "error" in reply:
            raise Failed(reply["error"].strip())
        return reply["value"]

    async def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            status = await self.process.wait()
            raise Gone(f"ended with status {status}: {self.last_words()}")
        return json.loads(line)

    def last_words(self) -> str:
        return self.errors.read_text("utf-8", "replace")[-2000:].strip()

    async def killed_itself(self) -> bool:
        return await self.process.wait() == -signal.SIGKILL

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Crew:
    """The processes of one system over one store."""

    def __init__(self, system: System, folder: Path, billed: bool = False) -> None:
        self.system = system
        self.folder = folder
        self.store = folder / "store.db"
        self.billed = billed
        self.members: list[Member] = []
        self.about: dict[str, str] = {}

    async def worker(self) -> Member:
        """A new process that works, with the store open."""
        member = await self.opened("worker")
        self.about = await member.ask("about")
        return member

    async def sender(self) -> Member:
        """A new process that delivers, with the store open."""
        return await self.opened("sender")

    async def opened(self, role: str) -> Member:
        member = await self.started(role)
        await member.ask("open")
        return member

    async def started(self, role: str) -> Member:
        """A new process that has loaded its code and touched nothing."""
        errors = self.folder / f"{role}-{len(self.members)}.err"
        command = [self.system.python(), "-m", self.system.module, role, str(self.folder)]
        with errors.open("wb") as written:
            process = await asyncio.create_subprocess_exec(
                *command,
                *(["--bill"] if self.billed else []),
                cwd=ROOT,
                env={**os.environ, **self.system.environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=written,
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        member = Member(process, errors)
        self.members.append(member)
        await member.hear()
        return member

    async def bill(self) -> dict[str, int]:
        """What all members that live have asked of their stores, summed."""
        sums: dict[str, int] = {}
        for member in self.members:
            if member.process.returncode is not None:
                continue
            for name, count in (await member.ask("bill")).items():
                sums[name] = sums.get(name, 0) + count
        return sums

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            await member.end()

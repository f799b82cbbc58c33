"""A process of a trial from inside: requests on standard input, replies on what was standard output.

One JSON object a line, one request at a time. Whatever a library prints goes to standard error. When the
harness goes away, for whatever reason, the input ends and the process ends with it: nothing is left behind.
"""

import asyncio
import json
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

from bench.pace import instant
from bench.roles import Role, Sender, Worker

Requests = asyncio.Queue[dict[str, Any]]


def serve(worker: type[Worker], sender: type[Sender]) -> None:
    """Be one role of a system: `python -m bench.SYSTEM worker|sender FOLDER [--bill]`."""
    role, folder = sys.argv[1:3]
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    host = Host({"worker": worker, "sender": sender}[role](Path(folder)), billed="--bill" in sys.argv)
    asyncio.run(host.answer(replies))


class Host:
    """Calls a role by the names of its methods, beside a few that every process answers alike."""

    def __init__(self, role: Role, billed: bool) -> None:
        self.role = role
        self.own: dict[str, Callable[[], Awaitable[Any]]] = {"open": self.open, "usage": self.usage}
        if billed:
            from bench.bill import Bill  # needs apsw, which a rival's environment may lack

            self.own["bill"] = Bill().read

    async def open(self) -> float:
        """Open the role; the instant at which that began."""
        began = instant()
        await self.role.open()
        return began

    async def usage(self) -> dict[str, float]:
        """Processor seconds and resident megabytes of this process."""
        return {"cpu_s": time.process_time(), "resident_mb": resident_mb()}

    async def answer(self, replies: TextIO) -> None:
        requests: Requests = asyncio.Queue()
        threading.Thread(target=read, args=(asyncio.get_running_loop(), requests), daemon=True).start()
        print("{}", file=replies)
        while True:
            print(json.dumps(await self.reply(**await requests.get())), file=replies)

    async def reply(self, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            method = self.own.get(call) or getattr(self.role, call)
            return {"value": await method(**arguments)}
        except Exception:
            return {"error": traceback.format_exc()}


def read(loop: asyncio.AbstractEventLoop, requests: Requests) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(requests.put_nowait, json.loads(line))
    os._exit(0)


def resident_mb() -> float:
    """What is in memory now; where the system does not tell, the most that ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return pages * resource.getpagesize() / 2**20

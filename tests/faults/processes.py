"""Real processes: forked from a parent that has imported everything and opened nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any


def fork(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """The pid of a child that runs `work` on a fresh loop and exits 0, or 1 with a traceback."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        asyncio.run(work())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def end(pid: int) -> int:
    """Asks a process to end, and its exit code."""
    os.kill(pid, signal.SIGTERM)
    return join(pid)


def join(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def running(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG) == (0, 0)

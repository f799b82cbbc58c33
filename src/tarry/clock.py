"""The machine's clocks and its chance: the one file that reads either.

Everything else is told the time and given its ids, so that a test can step the one and fix the other.
Deadlines go by the wall clock. Leases go by the boot clock, which nobody sets and which runs on while the
machine sleeps; it starts anew with each boot, so it counts only together with the id of the boot (rule 6.5).
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYSCTL = ("kern.bootsessionuuid", "kern.boottime")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The clock of a store outside of tests."""

    @property
    def boot(self) -> str:
        return boot_id()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def lease_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


def elapsed_s() -> float:
    """For measuring how long something took; its zero means nothing."""
    return time.perf_counter()


def new_id(prefix: str) -> str:
    """An id that nobody else makes: 48 bits of time, so that new rows lie beside new rows in every index, and
    72 bits of chance. As text it sorts by time."""
    stamp = (time.time_ns() // 1_000_000).to_bytes(6, "big")
    return f"{prefix}_{base64.b32hexencode(stamp + os.urandom(9)).decode().lower()}"


@cache
def boot_id() -> str:
    """The id of this boot of the machine. Where none can be told, all boots are one: a lease from before a
    restart then lasts until the new uptime has passed it."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return next((told for name in _SYSCTL if (told := _sysctl(name))), "unknown")


def _sysctl(name: str) -> str:
    try:
        asked = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()

"""The machine that the figures hold for, and how fast its disk confirms a write."""

import os
import platform
from pathlib import Path
from typing import Any

from bench.pace import instant

MEASURED_FOR_S = 0.5
PAGE = bytes(4096)


def machine(work: Path) -> dict[str, Any]:
    """What a reader needs to compare; `work` is the folder in which the stores are."""
    return {
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "fsync_per_s": round(syncs_per_s(work)),
        "load_average": load_average(),
    }


def load_average() -> list[float]:
    """Over the last 1, 5 and 15 minutes: what else the machine was doing."""
    return [round(value, 2) for value in os.getloadavg()]


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def syncs_per_s(work: Path) -> float:
    """Writes of a page, each made durable before the next, by one caller."""
    path = work / "sync"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    done, began = 0, instant()
    try:
        while (passed := instant() - began) < MEASURED_FOR_S:
            os.pwrite(descriptor, PAGE, done % 1024 * len(PAGE))
            os.fsync(descriptor)
            done += 1
    finally:
        os.close(descriptor)
        path.unlink()
    return done / passed

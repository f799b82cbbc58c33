"""Plants a fault into a copy of the source and plays seeds over it until one breaks.

python -m tests.planted.hunt              all of them, and how many seeds each took
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.planted.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
LIMIT = 20_000
PLAY = """
import sys
import tarry
assert tarry.__file__.startswith(sys.argv[1]), tarry.__file__
from tarry.testing.sim.campaign import tally
for seed in range(int(sys.argv[2])):
    broken = tally([seed]).broken
    if broken:
        print(seed + 1, broken[seed][0].splitlines()[0][:200], sep="|")
        break
"""


class NotPlanted(Exception):
    """The source no longer says what the fault would change: bring the fault up to date."""


def plant(fault: Fault, folder: Path) -> Path:
    """A copy of src with the fault in it."""
    src = folder / "src"
    shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in fault.edits:
        path = src / "tarry" / file
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise NotPlanted(f"{fault.name}: {file} has {text.count(old)} times: {old}")
        path.write_text(text.replace(old, new), encoding="utf-8")
    return src


def hunt(fault: Fault, limit: int = LIMIT) -> tuple[int, str] | None:
    """After how many seeds it was found, and by what; None: not within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        src = plant(fault, Path(folder))
        command = [sys.executable, "-c", PLAY, str(src), str(limit)]
        environment = os.environ | {"PYTHONPATH": str(src), "PYTHONWARNINGS": "ignore"}
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if told.returncode:
        raise RuntimeError(told.stderr)
    if not told.stdout:
        return None
    count, what = told.stdout.strip().split("|", 1)
    return int(count), what


def main() -> int:
    missed = 0
    for fault in FAULTS:
        found = hunt(fault)
        missed += found is None
        print(f"{fault.name}: " + ("not found" if found is None else f"{found[0]} seeds, by {found[1]}"), flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())

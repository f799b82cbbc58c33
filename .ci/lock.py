"""Writes the lock files: requirements/{core,dev,bench}.txt, one resolution for all platforms, with hashes.

uv.lock is not kept: it records the address of a registry for every file, and whoever installs from a mirror
would be sent past it. What is written here names versions and hashes only.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORM = ("--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet")
GROUPS = {"core": (), "dev": ("--group", "dev"), "bench": ("--group", "bench")}


def lock(name: str, groups: tuple[str, ...], options: list[str]) -> None:
    uv = Path(sys.executable).with_name("uv")
    target = ROOT / "requirements" / f"{name}.txt"
    command = [uv, "pip", "compile", "pyproject.toml", *groups, *FORM, *options, "-o", target]
    subprocess.run(command, cwd=ROOT, check=True)
    print(target.relative_to(ROOT))


if __name__ == "__main__":
    for name, groups in GROUPS.items():
        lock(name, groups, sys.argv[1:])

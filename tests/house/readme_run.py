"""README as a stranger meets it: the built wheel in a new environment, its blocks word for word.

A worker and the commands run as processes in an empty folder; what they print has to be what README shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    text = (ROOT / "README.md").read_text()
    module = re.search(r"`(\w+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL)
    consoles = re.findall(r"```console\n(\$.*?)```", text, re.DOTALL)
    assert module, "README has lost its module"
    assert len(consoles) == 2, "README has lost its terminals"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        binaries = install(home)
        shop = home / "shop"
        shop.mkdir()
        (shop / module[1]).write_text(module[2])
        return compare(shop, binaries, consoles[0], consoles[1])


def install(home: Path) -> Path:
    """The wheel, built from this tree, in an environment that has nothing else of it."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(home)]
    subprocess.run([*build, str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    wheel = next(home.glob("tarry-*.whl"))
    pip = [str(home / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements" / "core.txt")], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    return home / "venv" / "bin"


def compare(shop: Path, binaries: Path, worker: str, session: str) -> int:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TARRY_", "PYTHON"))}
    env["PATH"] = f"{binaries}:{env['PATH']}"
    command = worker.removeprefix("$ ").split()
    with subprocess.Popen(command, cwd=shop, env=env) as running:
        try:
            return 0 if all(step(shop, env, line) for line in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]) else 1
        finally:
            running.terminate()


def step(shop: Path, env: dict[str, str], block: str) -> bool:
    """One command and what README says that it prints."""
    command, _, wanted = block.partition("\n")
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        env[name] = value
        return True
    told = subprocess.run(
        ["bash", "-c", command], cwd=shop, env=env, stdout=subprocess.PIPE, text=True, check=False, timeout=60
    )
    same = told.stdout.strip() == wanted.strip()
    print(f"{'ok' if same else 'DIFFERS'}  {command}")
    if not same:
        print(f"README says:\n{wanted}\nit printed:\n{told.stdout}")
    return same


if __name__ == "__main__":
    sys.exit(main())

"""Runs tests under each Python that Tarry supports and this machine has, in environments kept in .venvs.

    python .ci/pythons.py [--skip-own] [--within SECONDS] [TESTS …]

Interpreters are looked for on PATH and in pyenv; one that is not there is named and left out. Every one found
must pass within SECONDS: a version that hangs fails. The oldest is what `make test` runs on.
"""

import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
LOCK = ROOT / "requirements" / "dev.txt"


def find(version: str) -> str | None:
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    kept = sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python"), reverse=True)
    on_path = shutil.which(f"python{version}")
    return next((path for path in [on_path, *kept] if path and answers(path, version)), None)


def answers(path: str, version: str) -> bool:
    """Whether this is the version it is called: pyenv leaves shims on PATH for versions that are off."""
    ask = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == version


def environment(version: str, interpreter: str) -> Path:
    """The interpreter of an environment like .venv, made anew only when what goes into it has changed."""
    venv = ROOT / ".venvs" / version
    python, ready = venv / "bin" / "python", venv / ".ready"
    made_from = max(path.stat().st_mtime for path in (LOCK, ROOT / "pyproject.toml"))
    if not ready.exists() or ready.stat().st_mtime < made_from:
        uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
        into = ["--python", str(python)]
        subprocess.run([*uv, "venv", "--clear", "--python", interpreter, str(venv)], check=True)
        subprocess.run([*uv, "pip", "install", *into, "--require-hashes", "-r", str(LOCK)], check=True)
        own = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        subprocess.run([*uv, "pip", "install", *into, *own], check=True)
        ready.touch()
    return python


def passes(python: Path, tests: list[str], within_s: float) -> bool:
    command = [str(python), "-m", "pytest", "-n", "2", "-q", "-m", "not long", *tests]
    running = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return running.wait(within_s) == 0
    except subprocess.TimeoutExpired:
        print(f"not done within {within_s:.0f} s", flush=True)
        return False
    finally:
        if running.poll() is None:  # its workers with it: they may hang too
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-own", action="store_true", help="leave out the version that runs this")
    parser.add_argument("--within", type=float, default=3600, metavar="SECONDS")
    parser.add_argument("tests", nargs="*", default=["tests"])
    given = parser.parse_args()
    own = f"{sys.version_info[0]}.{sys.version_info[1]}" if given.skip_own else None
    tests = [path for path in given.tests if (ROOT / path).exists()]
    if not tests:
        parser.error(f"none of these is there: {' '.join(given.tests)}")
    failed: list[str] = []
    for version in (v for v in SUPPORTED if v != own):
        interpreter = find(version)
        print(f"Python {version}: {interpreter or 'not on this machine'}", flush=True)
        if interpreter and not passes(environment(version, interpreter), tests, given.within):
            failed.append(version)
    print(f"failed under Python {', '.join(failed)}" if failed else "passed under each", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

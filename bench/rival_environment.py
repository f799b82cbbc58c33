"""A rival's own environment, made on first use: what it depends on never meets what Tarry depends on.

`.bench-venv` holds requirements/bench.txt with every hash checked. DBOS asks for SQLite 3.42; where the
interpreter's own is older, rival_sqlite.txt brings a newer one.
"""

import sqlite3
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".bench-venv"
PACKAGES = ROOT / "requirements" / "bench.txt"
SQLITE = ROOT / "bench" / "rival_sqlite.txt"
OLDEST_SQLITE = (3, 42)


@cache
def rival_python() -> Path:
    """The interpreter of that environment, with what it needs installed."""
    python = ENVIRONMENT / "bin" / "python"
    wanted = [PACKAGES, *([SQLITE] if sqlite3.sqlite_version_info < OLDEST_SQLITE else [])]
    stamp, digest = ENVIRONMENT / ".ready", digest_of(wanted)
    if not stamp.exists() or stamp.read_text("ascii") != digest:
        install(python, wanted)
        stamp.write_text(digest, "ascii")
    return python


def digest_of(files: list[Path]) -> str:
    return sha256(b"".join([sys.version.encode(), *(file.read_bytes() for file in files)])).hexdigest()


def install(python: Path, files: list[Path]) -> None:
    print(f"making {ENVIRONMENT.name} for the rival …", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
    listed = [part for file in files for part in ("-r", str(file))]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--require-hashes", *listed], check=True)

"""The outside world: it honours idempotency keys, and remembers every attempt."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    key: str
    attempts: int
    effects: int


class Ledger:
    """A file that whoever does something appends to, one write a line, so that no kill can tear it. The world
    applies a key once; `tried` counts how often it was asked."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tried(self, key: str) -> None:
        self._write(f"tried\t{key}")

    def apply(self, key: str) -> None:
        if f"done\t{key}" not in self._lines():
            self._write(f"done\t{key}")

    def entries(self) -> list[Entry]:
        lines = Counter(self._lines())
        keys = sorted({line.partition("\t")[2] for line in lines})
        return [Entry(key, lines[f"tried\t{key}"], lines[f"done\t{key}"]) for key in keys]

    def _lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def _write(self, line: str) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

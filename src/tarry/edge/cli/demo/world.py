"""The outside world: a warehouse that honours idempotency keys, and a post office that cannot.

It is a file that whoever asks for something appends to, one write a line, so that no kill can tear it. It
remembers every request (`asked`) beside what came of it (`done`), and may be told to fall silent once: before or
after it has done what it was asked for. Whoever dies then has an effect on their hands that nobody recorded.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

BEFORE = "silent before"
AFTER = "silent after"


class Entry(NamedTuple):
    """A step, by its key: how often its body ran, and how often something came of it."""

    key: str
    attempts: int
    effects: int


class World:
    def __init__(self, path: Path) -> None:
        self._path = path

    # --- what steps ask for ---

    async def reserve(self, key: str) -> str:
        """Does it once per key, however often it is asked."""
        return await self._ask(key, once=True)

    async def post(self, key: str) -> str:
        """Paper has no idempotency key: asked twice, it is sent twice."""
        return await self._ask(key, once=False)

    async def _ask(self, key: str, *, once: bool) -> str:
        self._write("asked", key)
        first = self._lines()["asked", key] == 1
        if first and self._lines()[BEFORE, key]:
            await asyncio.Event().wait()
        if not (once and self._lines()["done", key]):
            self._write("done", key)
        if first and self._lines()[AFTER, key]:
            await asyncio.Event().wait()
        return key

    # --- what the story arranges and looks at ---

    def silence(self, key: str, when: str) -> None:
        """The first request under this key gets no answer."""
        self._write(when, key)

    def asked(self, key: str) -> int:
        return self._lines()["asked", key]

    def done(self, key: str) -> int:
        return self._lines()["done", key]

    def entries(self) -> list[Entry]:
        lines = self._lines()
        keys = sorted({key for what, key in lines if what in ("asked", "done")})
        return [Entry(key, lines["asked", key], lines["done", key]) for key in keys]

    def _lines(self) -> Counter[tuple[str, str]]:
        rows = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        split = (row.partition("\t") for row in rows)
        return Counter((what, key) for what, _, key in split)

    def _write(self, what: str, key: str) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{what}\t{key}\n".encode())
        finally:
            os.close(file)

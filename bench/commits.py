"""How many transactions a SQLite file has seen, read from outside while its owners work.

With a write-ahead log the count is in the index beside it (`iChange`, at byte 8 of the -shm file), else in
the header of the file itself (the change counter, at byte 24). Reading takes no lock and touches no page: the
watched process is not disturbed. The reader must not have the database open: closing a file drops its
process's locks on it.
"""

import sys
from pathlib import Path
from typing import Literal


def commits(store: Path) -> int:
    """Transactions so far; only differences mean anything, and they wrap at 2**32."""
    index = store.with_name(f"{store.name}-shm")
    if index.exists() and index.stat().st_size:
        return number(index, 8, sys.byteorder)
    return number(store, 24, "big")


def number(path: Path, at: int, order: Literal["little", "big"]) -> int:
    with path.open("rb") as file:
        file.seek(at)
        return int.from_bytes(file.read(4), order)

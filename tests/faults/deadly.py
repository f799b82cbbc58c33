"""A store that kills its own process at a commit: before the commit takes effect, or just after."""

from __future__ import annotations

import os
import signal
from typing import Any


class DeadlyStore:
    """The store that it wraps, in every other respect. `at` counts commits from 1; 0: never."""

    def __init__(self, store: Any, at: int, side: str) -> None:
        self._store = store
        self._at = at
        self._side = side
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def begin(self, *, wait: bool = True) -> Any:
        tx = self._store.begin(wait=wait)
        return None if tx is None else _DeadlyTransaction(tx, self)

    def reached(self, side: str) -> None:
        if side == "before":
            self.commits += 1
        if self.commits == self._at and side == self._side:
            os.kill(os.getpid(), signal.SIGKILL)


class _DeadlyTransaction:
    def __init__(self, tx: Any, store: DeadlyStore) -> None:
        self._tx = tx
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def __enter__(self) -> _DeadlyTransaction:
        self._tx.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tx.__exit__(*error)

    def commit(self, batch: str = "") -> None:
        self._store.reached("before")
        self._tx.commit(batch)
        self._store.reached("after")

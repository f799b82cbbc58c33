"""What a fork does to open stores: it waits until none of them is busy, and the child lets go of its
copies.

A server that forks after loading its code would otherwise share handles between processes, whose locks
neither would see. Python calls the hooks below for every fork of its own.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_open: WeakSet[Forkable] = WeakSet()


def watch(store: Forkable) -> None:
    _open.add(store)


def _before() -> None:
    for store in list(_open):
        store.before_fork()


def _in_parent() -> None:
    for store in list(_open):
        store.after_fork_in_parent()


def _in_child() -> None:
    for store in list(_open):
        store.after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)

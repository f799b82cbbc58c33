"""Wake-ups: how who waits hears of a commit (rule 6.4).

In one process at once; across processes by a datagram to each worker's socket, whose address is in its row.
A datagram may be lost, and says nothing: the worker looks at the store, and a slow poll of `change()` is the
net under it. Who is woken peeks by a read before it claims, or claims would wake each other for ever.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from tarry.clock import new_id
from tarry.store.fold import Notes
from tarry.store.protocol import Store

READY = b"\0"
DATAGRAM_BYTES = 2_048


class Wakeups:
    """A process's side: its own listeners, and the sockets of the others. `committed` is called by the writer,
    on whatever thread has committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: list[Callable[[Notes], None]] = []
        self._own: set[str] = set()
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def listen(self, listener: Callable[[Notes], None], worker: str | None = None) -> None:
        """`listener` must not block; `worker`: the id of a worker in this process, which needs no datagram."""
        self._listeners.append(listener)
        if worker is not None:
            self._own.add(worker)

    def forget(self, listener: Callable[[Notes], None], worker: str | None = None) -> None:
        self._listeners.remove(listener)
        self._own.discard(worker or "")

    def committed(self, notes: Notes) -> None:
        for listener in list(self._listeners):
            listener(notes)
        if notes.ready or notes.nudges:
            self._tell_others(notes)

    def _tell_others(self, notes: Notes) -> None:
        others = {w: a for w, a in self._store.addresses().items() if w not in self._own}
        if notes.ready:
            for address in others.values():
                self._send(address, READY)
        for run_id, worker in notes.nudges:
            if worker in others:
                self._send(others[worker], run_id.encode())

    def _send(self, address: str, data: bytes) -> None:
        try:
            with self._lock:
                if self._socket is None:
                    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                    self._socket.setblocking(False)
                self._socket.sendto(data, address)
        except OSError:
            pass  # its worker is gone, or busy with others of its kind: the poll is the net

    def close(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None


class Mailbox:
    """A worker's own socket, in a short per-user folder: a path beside the store's file may be too long to bind.
    `address` is None where no socket can be made; the poll alone wakes the worker then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, heard: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._heard = heard
        self._socket = _bound()
        self.address = None if self._socket is None else str(self._socket.getsockname())
        if self._socket is not None:
            loop.add_reader(self._socket, self._read)

    def _read(self) -> None:
        assert self._socket is not None
        heard: set[bytes] = set()
        try:
            while len(heard) < DATAGRAM_BYTES:
                heard.add(self._socket.recv(DATAGRAM_BYTES))
        except OSError:
            pass  # drained
        for data in heard:
            self._heard(data)

    def close(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            Path(self.address or "").unlink(missing_ok=True)
            self._socket = None


def _bound() -> socket.socket | None:
    try:
        folder = Path(tempfile.gettempdir()) / f"tarry-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
            return None
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.bind(str(folder / new_id("w")))
    except (OSError, AttributeError):
        return None
    return made

"""The turnstile: processes that share a file write one after another, in a line that the kernel keeps.

SQLite's own way to wait for a writer is to look again after a while, and who looks at the right moment
wins: beside two busy writers a third one waits for seconds. Here the next in line sleeps in the kernel and
is woken by the unlock. The lock goes with the process, however that ends.

A lock that blocks cannot be given up after a time. So a thread of its own stands in line; where the caller
loses patience, the thread stays, for the next caller, and steps out again if there is none.
"""

from __future__ import annotations

import fcntl
import os
import threading


class Turnstile:
    """One process's place at it. `enter` and `leave` come from one thread at a time: the caller sees to
    that."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._state = threading.Condition()
        self._inside = False
        self._in_line = False
        self._wanted = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def enter(self, patience_s: float) -> bool:
        """Whether this process may write now; False where it did not come to its turn in time."""
        with self._state:
            if not self._in_line:
                if self._try():
                    return True
                if patience_s <= 0:
                    return False
                self._send_to_line()
            self._wanted = True
            self._state.wait_for(lambda: self._inside, patience_s)
            self._wanted = False
            return self._inside

    def leave(self) -> None:
        with self._state:
            self._inside = False
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Where the thread stands in line, it closes the file when its turn comes."""
        with self._state:
            if not self._closed and not self._in_line:
                os.close(self._file)
            self._closed = True
            self._state.notify_all()

    def forget(self) -> None:
        """In a forked child: lets go of the parent's file without touching its lock."""
        os.close(self._file)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._inside = True
        return True

    def _send_to_line(self) -> None:
        self._in_line = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._stand_in_line, name="tarry-turnstile", daemon=True)
            self._thread.start()
        self._state.notify_all()

    def _stand_in_line(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._in_line or self._closed)
                if not self._in_line:
                    return
            fcntl.flock(self._file, fcntl.LOCK_EX)
            with self._state:
                self._in_line = False
                if self._closed:
                    os.close(self._file)
                    return
                self._inside = self._wanted
                if self._wanted:
                    self._state.notify_all()
                else:
                    fcntl.flock(self._file, fcntl.LOCK_UN)


class Ungated:
    """For a database of one process: whoever passes its gate is alone."""

    def enter(self, patience_s: float) -> bool:
        return True

    def leave(self) -> None: ...
    def close(self) -> None: ...
    def forget(self) -> None: ...

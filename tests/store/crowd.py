"""What other processes do in the tests: `python -m tests.store.crowd NAME PATH ARGUMENTS`.

They say on standard output how far they are, and wait on standard input: nobody has to guess how long.
"""

import os
import signal
import sys
import threading
from typing import Any

import apsw

from tarry.clock import SystemClock
from tarry.store.protocol import RunFilter
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tarry.store.sqlite_open import Tuning
from tests.store import town

SMALL_LOG = Tuning(wal_pages=50, wal_bytes_kept=1 << 20)


def opened(path: str, **more: Any) -> SqliteStore:
    return SqliteStore(path, SystemClock(), Zlib(), **more)


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


def hold(path: str) -> None:
    """Takes the turn, says so, and keeps it until it is told to go on or dies."""
    store = opened(path)
    tx = store.begin()
    assert tx is not None
    with tx:
        say("inside")
        sys.stdin.readline()
    store.close()


def stranger(path: str) -> None:
    """A shell that knows nothing of turnstiles holds SQLite's own lock."""
    raw = apsw.Connection(path)
    raw.execute("begin immediate")
    say("inside")
    sys.stdin.readline()
    raw.execute("rollback")


def deliver(path: str, mine: str, threads: str, each: str) -> None:
    """Signals to 20 runs from many threads, every fifth one a repetition of what all processes send."""
    store = opened(path)
    failed: list[Exception] = []

    def work(thread: int) -> None:
        for n in range(int(each)):
            key = f"all-{n}" if n % 5 == 0 else f"{mine}-{thread}-{n}"
            try:
                town.commit(store, town.message(f"run-{n % 20}", key))
            except Exception as error:
                failed.append(error)

    crew = [threading.Thread(target=work, args=(n,)) for n in range(int(threads))]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    store.close()
    say(failed)


def number(path: str, mine: str) -> None:
    """Commits for ever, and says each number after its commit."""
    store = opened(path)
    for n in range(1_000_000):
        town.commit(store, town.message("a", f"{mine}-{n}", mine, b'"' + b"x" * 500 + b'"'))
        say(n)


def look(path: str) -> None:
    """Reads list after list until it is told to stop."""
    store = opened(path)
    say("reading")
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    while not stop.is_set():
        cursor = None
        while (page := store.runs(RunFilter(), cursor, 3)).next_cursor and not stop.is_set():
            cursor = page.next_cursor
        store.arrivals("a", None, 1000)
    store.close()


def bulk(path: str) -> None:
    """A busy writer: batch after batch, until it is told to stop."""
    store = opened(path)
    say("writing")
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    n = 0
    while not stop.is_set():
        town.commit(store, *(town.message("a", f"{os.getpid()}-{n}-{i}", f"of-{os.getpid()}") for i in range(200)))
        n += 1
    store.close()
    say(n)


def fork(path: str) -> None:
    """Forks while other threads write and read; parent and child both go on, each with handles of its own."""
    store = opened(path)
    stop = threading.Event()

    def busy(name: str) -> None:
        n = 0
        while not stop.is_set():
            town.commit(store, town.message("a", f"{name}-{n}", "busy"))
            store.runs(RunFilter(), None, 10)
            n += 1

    crew = [threading.Thread(target=busy, args=(f"t{n}",)) for n in range(3)]
    for one in crew:
        one.start()
    for child in range(15):
        store.run("a")
        mine = store._links._all()
        if (pid := os.fork()) == 0:
            signal.alarm(20)
            for n in range(10):
                town.commit(store, town.message("a", f"child-{child}-{n}", "forked"))
            own = store.run("a") is not None and not set(mine) & set(store._links._all())
            os._exit(0 if own else 1)
        for n in range(10):
            town.commit(store, town.message("a", f"parent-{child}-{n}", "forked"))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stop.set()
    for one in crew:
        one.join()
    town.commit(store, town.message("a", "last", "forked"))
    say(len([row for row in pages(store) if row.name == "forked"]))
    say(store._links.writer().pragma("integrity_check"))
    store.close()


def pages(store: SqliteStore) -> list[Any]:
    rows: list[Any] = []
    cursor = None
    while True:
        page = store.arrivals("a", cursor, 1000)
        rows += page.rows
        cursor = page.next_cursor
        if cursor is None:
            return rows


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

"""What the machine allows: the rows and commits of each load through apsw, as few as durability leaves.

No engine on SQLite can be faster than this on the same machine. As many callers as wait at once share one
commit; a run's next write follows only after the one before it is durable. Writers of several processes queue
for a file lock before they begin, and poke each other with a datagram: SQLite's own way to wait would starve
one of them.
"""

import fcntl
import json
import os
import signal
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from bench.host import serve
from bench.pace import Pace, instant, pace
from bench.roles import Role, Sender, Span, Worker

SCHEMA = """
CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, state TEXT NOT NULL, result BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entry
    (run TEXT, number INTEGER, value BLOB NOT NULL, PRIMARY KEY (run, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mail
    (number INTEGER PRIMARY KEY, run TEXT, key TEXT, payload BLOB NOT NULL, UNIQUE (run, key));
CREATE TABLE IF NOT EXISTS worker (port INTEGER PRIMARY KEY) WITHOUT ROWID;
"""
START = "INSERT INTO run (id, state) VALUES (?, ?)"
MOVE = "UPDATE run SET state = ? WHERE id = ?"
END = "UPDATE run SET state = 'succeeded', result = ? WHERE id = ?"
RECORD = "INSERT INTO entry (run, number, value) VALUES (?, ?, ?)"
POST = "INSERT INTO mail (run, key, payload) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
POSTED = "SELECT payload FROM mail WHERE run = ? AND key = ?"
ARRIVED = "SELECT number, run, payload FROM mail WHERE number > ? ORDER BY number LIMIT 500"
LARGEST_GROUP = 500
NET_S = 0.1

Row = Sequence[Any]


class File:
    """A connection that writes in groups: one transaction, one commit, one sync."""

    def __init__(self, store: Path) -> None:
        self.connection = apsw.Connection(str(store))
        self.connection.execute("PRAGMA journal_mode = WAL").fetchall()
        self.connection.execute("PRAGMA synchronous = FULL").fetchall()
        self.turnstile = os.open(store.with_suffix(".lock"), os.O_CREAT | os.O_RDWR)
        with self.writing():
            self.connection.execute(SCHEMA).fetchall()

    @contextmanager
    def writing(self) -> Generator[None, None, None]:
        fcntl.flock(self.turnstile, fcntl.LOCK_EX)
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self.connection.execute("COMMIT")
        finally:
            fcntl.flock(self.turnstile, fcntl.LOCK_UN)

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        with self.writing():
            self.connection.executemany(sql, rows)

    def read(self, sql: str, *bound: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, bound).fetchall()


def payload(number: int) -> bytes:
    return json.dumps({"k": number}).encode()


def groups(count: int, at_once: int) -> Iterator[range]:
    size = min(at_once, LARGEST_GROUP)
    for first in range(0, count, size):
        yield range(first, min(count, first + size))


class RawRole(Role):
    """What both processes have: the file, and a socket."""

    async def open(self) -> None:
        self.file = File(self.store)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


class RawWorker(RawRole, Worker):
    """Keeps in memory how far it has read its mail, and nothing else."""

    async def open(self) -> None:
        await super().open()
        self.read_to = 0
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(NET_S)
        self.file.write("INSERT INTO worker VALUES (?)", [[self.socket.getsockname()[1]]])

    async def about(self) -> dict[str, str]:
        pragmas = {name: str(self.file.read(f"PRAGMA {name}")[0][0]) for name in ("journal_mode", "synchronous")}
        return {"apsw": apsw.apsw_version(), "SQLite": apsw.sqlite_lib_version(), **pragmas}

    def mail(self) -> list[tuple[Any, ...]]:
        """What has come since; blocks until there is something."""
        while not (rows := self.file.read(ARRIVED, self.read_to)):
            try:
                self.socket.recv(1)
            except TimeoutError:
                continue
        self.read_to = rows[-1][0]
        return rows

    async def finish_runs(self, runs: int, at_once: int) -> Span:
        began = instant()
        for group in groups(runs, at_once):
            self.file.write(START, [(f"w1-{i}", "running") for i in group])
            self.file.write(RECORD, [(f"w1-{i}", 1, json.dumps(i + 1).encode()) for i in group])
            self.file.write(END, [(json.dumps(i + 1).encode(), f"w1-{i}") for i in group])
        ended = instant()
        assert self.file.read("SELECT count(*) FROM run WHERE state = 'succeeded'") == [(runs,)]
        return began, ended

    async def bring_to_wait(self, runs: int, at_once: int) -> Span:
        began = instant()
        for group in groups(runs, at_once):
            self.file.write(START, [(f"run-{i}", "running") for i in group])
            self.file.write(MOVE, [("waiting", f"run-{i}") for i in group])
        return began, instant()

    async def all_resumed(self, runs: int) -> float:
        for ended in self.endings(runs):
            self.file.write(END, ended)
        return instant()

    def endings(self, runs: int) -> Iterator[list[Row]]:
        seen = 0
        while seen < runs:
            rows = self.mail()
            assert all(f"run-{json.loads(body)['k']}" == run for _, run, body in rows)
            seen += len(rows)
            yield [(body, run) for _, run, body in rows]

    async def bring_one(self, run: int) -> None:
        self.file.write(START, [(f"run-{run}", "waiting")])

    async def one_resumed(self, run: int) -> float:
        ((_, _, body),) = self.mail()
        assert json.loads(body) == {"k": run}
        at = instant()
        self.file.write(END, [(body, f"run-{run}")])
        return at

    async def open_channel(self, messages: int, held: bool) -> None:
        self.messages = messages
        self.file.write(START, [("channel", "waiting")])

    async def channel_ended(self) -> Pace:
        began, taken = instant(), list[float]()
        while len(taken) < self.messages:
            for _, _, body in self.mail():
                assert json.loads(body) == {"k": len(taken)}
                taken.append(instant())
                self.file.write("UPDATE run SET result = ? WHERE id = 'channel'", [[body]])
        self.file.write(MOVE, [("succeeded", "channel")])
        return pace(began, taken)

    async def kept(self) -> int:
        return self.file.read("SELECT count(*) FROM mail WHERE run = 'channel'")[0][0]

    async def take_steps(self, steps: int, crash_after: int | None) -> Pace:
        began, taken = instant(), list[float]()
        self.file.write(START, [("steps", "running")])
        for number in range(steps):
            self.file.write(RECORD, [("steps", number, json.dumps(number + 1).encode())])
            taken.append(instant())
            if number == crash_after:
                os.kill(os.getpid(), signal.SIGKILL)
        self.file.write(MOVE, [("succeeded", "steps")])
        return pace(began, taken)

    async def recovered(self, steps: int, crash_after: int) -> float:
        rows = self.file.read("SELECT number, value FROM entry WHERE run = 'steps' ORDER BY number")
        assert [json.loads(value) for _, value in rows] == list(range(1, crash_after + 2))
        return instant()


class RawSender(RawRole, Sender):
    """Posts mail in groups and pokes the worker after each."""

    async def open(self) -> None:
        await super().open()
        self.worker = ("127.0.0.1", self.file.read("SELECT port FROM worker")[0][0])

    def post(self, rows: Sequence[Row]) -> None:
        self.file.write(POST, rows)
        self.socket.sendto(b"!", self.worker)

    async def signal_each(self, runs: int, at_once: int) -> Span:
        began = instant()
        for group in groups(runs, at_once):
            self.post([(f"run-{i}", f"k{i}", payload(i)) for i in group])
        return began, instant()

    async def signal_one(self, run: int) -> float:
        began = instant()
        self.post([(f"run-{run}", f"k{run}", payload(run))])
        return began

    async def send_all(self, messages: int, at_once: int) -> Span:
        began = instant()
        for group in groups(messages, at_once):
            self.post([("channel", f"k{i}", payload(i)) for i in group])
        return began, instant()

    async def send_same(self, sends: int, at_once: int) -> Span:
        began = instant()
        for group in groups(sends, at_once):
            self.post([("channel", "k0", payload(0)) for _ in group])
            assert all(self.file.read(POSTED, "channel", "k0") == [(payload(0),)] for _ in group)
        return began, instant()


if __name__ == "__main__":
    serve(RawWorker, RawSender)

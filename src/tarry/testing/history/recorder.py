"""Writing a history down so that kill -9 cannot spoil it, and reading many files back as one.

Each process appends to a file of its own; an effect ledger may be shared. A line is one write to a file
opened with O_APPEND: two processes never mix, and a kill leaves whole lines. A write that was cut
nevertheless stays the last thing in its line, because every record starts a line of its own; it is
counted, not guessed at.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from tarry.testing.history.events import (
    Acked,
    Done,
    Effect,
    Ended,
    Event,
    Fail,
    Healed,
    History,
    Info,
    Invoke,
    Line,
    Ok,
    Outcome,
    Pass,
    Received,
)

_TYPES: dict[str, type[Event]] = {
    cls.__name__.lower(): cls
    for cls in (Invoke, Ok, Fail, Info, Outcome, Effect, Done, Received, Acked, Pass, Ended, Healed)
}


def machine_clock() -> tuple[int, int]:
    """Wall and monotonic nanoseconds."""
    return time.time_ns(), time.monotonic_ns()


class Recorder:
    """Appends events to a file. `clock` gives wall and monotonic nanoseconds; a simulation passes its own."""

    def __init__(
        self,
        path: str | Path,
        process: str | None = None,
        *,
        clock: Callable[[], tuple[int, int]] = machine_clock,
    ) -> None:
        self.process = process or f"{os.getpid()}.{time.monotonic_ns()}"
        self._clock = clock
        self._ops = itertools.count(1)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: Event) -> None:
        wall_ns, mono_ns = self._clock()
        record = {
            "event": type(event).__name__.lower(),
            "process": self.process,
            "wall_ns": wall_ns,
            "mono_ns": mono_ns,
            "data": asdict(event),
        }
        line = f"\n{json.dumps(record, separators=(',', ':'))}\n".encode()
        if os.write(self._file, line) != len(line):
            raise OSError("The history is cut short: the disk took a part of a line. Free some space and run again.")

    def invoke(
        self,
        run: str,
        name: str,
        payload: str,
        *,
        kind: str = "signal",
        key: str | None = None,
        actor: str | None = None,
    ) -> int:
        """Writes that a delivery is about to be made; the number that comes back goes into its answer."""
        op = next(self._ops)
        self.write(Invoke(op, run, kind, name, payload, key, actor))
        return op

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(paths: Iterable[str | Path]) -> History:
    """The files merged by the monotonic clock; the lines of one file keep their order."""
    files: list[list[Line]] = []
    torn = 0
    for path in paths:
        lines, cut = _read_file(Path(path))
        files.append(lines)
        torn += cut
    return History(tuple(heapq.merge(*files, key=lambda line: line.mono_ns)), torn)


def _read_file(path: Path) -> tuple[list[Line], int]:
    lines: list[Line] = []
    torn = 0
    for raw in path.read_bytes().split(b"\n"):
        if not raw:
            continue
        try:
            record = json.loads(raw)
        except ValueError:
            torn += 1
        else:
            lines.append(_line(record))
    return lines, torn


def _line(record: dict[str, Any]) -> Line:
    data = {name: _frozen(value) for name, value in record["data"].items()}
    event = _TYPES[record["event"]](**data)
    return Line(record["process"], record["wall_ns"], record["mono_ns"], event)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in cast("list[Any]", value)) if isinstance(value, list) else value

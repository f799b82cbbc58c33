"""What a pass has to write with its next command, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tarry.core.commands import Ack, Close, Part, Record
from tarry.engine.calls import Call
from tarry.model import Arrival, WaitId


class Outbox:
    """`documents` are interned with the write; `durable` are told once it is committed."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._documents: dict[str, bytes] = {}
        self._durable: list[asyncio.Future[None]] = []

    def put(self, part: Part) -> None:
        self._parts.append(part)

    def document(self, digest: str, text: bytes | None) -> None:
        if text is not None:
            self._documents[digest] = text

    def when_durable(self, future: asyncio.Future[None]) -> None:
        self._durable.append(future)

    def ack(self, arrival: Arrival, state: bytes | None, drop: str | None) -> None:
        """An ack; entries of the fold's earlier rounds that are not written yet need not be."""
        if drop is not None:
            self._parts = [part for part in self._parts if not _of_round(part, drop)]
        self._parts.append(Ack(arrival.name, arrival.no, len(arrival.payload), state, drop))

    def open(self, calls: Iterable[Call]) -> None:
        self._parts.extend(call.opening() for call in calls)

    def close_unmet(self, on_file: Iterable[WaitId], waiting: Iterable[WaitId]) -> None:
        """At a pause: waits on file that this pass did not meet are abandoned."""
        placed = {part.wait for part in self._parts if isinstance(part, Record)}
        unmet = [wait for wait in on_file if wait not in placed.union(waiting)]
        if unmet:
            self._parts.append(Close(tuple(unmet)))

    def take(self) -> tuple[tuple[Part, ...], dict[str, bytes], list[asyncio.Future[None]]]:
        taken = tuple(self._parts), self._documents, self._durable
        self._parts, self._documents, self._durable = [], {}, []
        return taken

    def clear(self) -> None:
        self._parts = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def fail(self, error: BaseException) -> None:
        """Nothing will be written any more."""
        for future in self._durable:
            if not future.done():
                future.set_exception(error)


def _of_round(part: Part, prefix: str) -> bool:
    return isinstance(part, Record) and part.wait is None and part.entry.scope.startswith(prefix)

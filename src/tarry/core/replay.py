"""The order in which a pass gets its outcomes, live and replayed alike (rule 3.2).

Every outcome has a number. What has its place in the journal comes first, in the order of entries; what is on
file without a place comes after, in the order in which it arrived. Outcomes are given back lowest number
first, one at a time, the body running to quiescence between, and each only after it is durable. The numbers
of entries are handed out in the order in which the pass takes outcomes in, so a replay meets them in the same
order: given back in the order of calls instead, almost every random tree of branches interleaves differently.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

from tarry.model import Entry, EntryId, EntryKind

C = TypeVar("C")

_PLACED, _ARRIVED = 0, 1


class Replay(Generic[C]):
    """The journal's entries by name, and the queue of outcomes for calls of type C."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[EntryId, Entry] = {}
        self._by_step: dict[tuple[str, str], list[Entry]] = {}
        self._last = 0
        for entry in entries:
            self._entries[entry.id] = entry
            self._last = max(self._last, entry.no)
            if entry.kind in _OF_STEPS:
                self._by_step.setdefault((entry.scope, entry.name), []).append(entry)
        self._durable = self._last
        self._queue: list[tuple[int, int, int, C]] = []
        self._calls = 0

    def recorded(self, entry_id: EntryId) -> Entry | None:
        return self._entries.get(entry_id)

    def attempts(self, scope: str, name: str, kind: EntryKind) -> list[Entry]:
        """A step's attempts, intents or resolutions on file, oldest first."""
        return [entry for entry in self._by_step.get((scope, name), ()) if entry.kind is kind]

    def next_number(self) -> int:
        """The number of the next entry that this pass writes."""
        self._last += 1
        return self._last

    @property
    def last(self) -> int:
        return self._last

    def durable(self, number: int) -> None:
        """Entries up to this number have been committed."""
        self._durable = max(self._durable, number)

    def placed(self, number: int, call: C) -> None:
        """The call's outcome is entry `number`."""
        self._push(_PLACED, number, call)

    def arrived(self, number: int, call: C) -> None:
        """The call's outcome is on file without a place."""
        self._push(_ARRIVED, number, call)

    def _push(self, rank: int, number: int, call: C) -> None:
        self._calls += 1
        heapq.heappush(self._queue, (rank, number, self._calls, call))

    def next(self, *, placed_only: bool = False) -> C | None:
        """The call to give its outcome to now; None: nothing is on file, or the next one is not durable yet.
        `placed_only`: the run is being cancelled, so that nothing new is taken in."""
        if not self._queue:
            return None
        rank, number, _, call = self._queue[0]
        if (rank == _PLACED and number > self._durable) or (rank == _ARRIVED and placed_only):
            return None
        heapq.heappop(self._queue)
        return call

    def queued(self, *, placed_only: bool = False) -> bool:
        """Whether an outcome waits for its turn, or to become durable."""
        return bool(self._queue) and not (placed_only and self._queue[0][0] == _ARRIVED)

    def forget(self, call: C) -> None:
        """The call was given up by the body: its outcome, if queued, is nobody's."""
        kept = [row for row in self._queue if row[3] is not call]
        if len(kept) != len(self._queue):
            heapq.heapify(kept)
            self._queue = kept


_OF_STEPS = (EntryKind.ATTEMPT, EntryKind.INTENT, EntryKind.RESOLVE)

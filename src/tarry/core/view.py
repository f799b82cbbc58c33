"""One run as on file, as far as a command named it; and what a decision wants written.

A store loads a `View` for each run of a batch, by the `Needs` of its commands. A decision reads the view and
returns rows; `View.put` lays them over it, so that the next command of the batch sees them. Reading what was
not loaded raises, on every store alike: a decision cannot depend on what SQL would not have fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tarry.core.commands import Want
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Audit,
    Entry,
    KeyId,
    Letter,
    NameId,
    Outgoing,
    RunRecord,
    Slot,
    Wait,
    WaitId,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Needs:
    """What to load beside the run's row and its waits, for all commands on one run together. With `entries`
    (by number) comes the last number of the journal."""

    keys: frozenset[KeyId] = frozenset()
    names: frozenset[NameId] = frozenset()
    wants: tuple[Want, ...] = ()
    entries: frozenset[int] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.keys | other.keys,
            self.names | other.names,
            self.wants + other.wants,
            self.entries | other.entries,
        )


NOTHING = Needs()


# --- what a decision wants written, beside whole rows -------------------------------------------------


@dataclass(frozen=True)
class DropWait:
    run_id: str
    wait: WaitId


@dataclass(frozen=True)
class DropArrival:
    """An arrival whose key was freed and is taken anew."""

    run_id: str
    kind: ArrivalKind
    name: str
    no: int
    key: str


@dataclass(frozen=True)
class DropEntries:
    """The entries of a run's journal under a scope, or the one of this number."""

    run_id: str
    scope: str | None = None
    no: int | None = None


@dataclass(frozen=True)
class Sweep:
    """At a run's end: its buffered arrivals become `stale` and go to the dead letters, and its waits go."""

    run_id: str
    reason: str
    at_ms: int
    until_ms: int
    unread: bool


Write = (
    RunRecord | Wait | Arrival | Slot | Entry | Letter | Audit | Outgoing | DropWait | DropArrival | DropEntries | Sweep
)


@dataclass(frozen=True)
class Decision:
    """What a command came to: its result, the rows to write, and whether the run's worker must hear of it.

    A result that is an exception is raised at the caller, after the rows are saved."""

    result: Any
    writes: tuple[Write, ...] = ()


class Loaded(dict[K, V], Generic[K, V]):
    """A mapping whose missing keys are a fault of the loader, not an absence."""

    def __missing__(self, key: K) -> V:
        raise AssertionError(f"decided on {key!r}, which the command's needs do not name")


@dataclass
class View:
    """`schema(digest)` gives an interned JSON document: content-addressed, hence as pure as a constant."""

    run: RunRecord | None
    schema: Callable[[str], bytes]
    gone: bool = False
    waits: dict[WaitId, Wait] = field(default_factory=dict[WaitId, Wait])
    keys: Loaded[KeyId, Arrival | None] = field(default_factory=Loaded[KeyId, "Arrival | None"])
    live: Loaded[NameId, list[Arrival]] = field(default_factory=Loaded[NameId, "list[Arrival]"])
    slots: Loaded[NameId, Slot] = field(default_factory=Loaded[NameId, Slot])
    pages: dict[Want, list[Arrival]] = field(default_factory=dict[Want, "list[Arrival]"])
    settled: dict[int, Arrival] = field(default_factory=dict[int, Arrival])
    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    last_entry: int = 0

    def put(self, writes: tuple[Write, ...]) -> None:
        """Lays a decision's rows over what was loaded."""
        for row in writes:
            handler = _PUT.get(type(row))
            if handler is not None:
                handler(self, row)


def _put_run(view: View, row: RunRecord) -> None:
    view.run = row


def _put_wait(view: View, row: Wait) -> None:
    view.waits[row.id] = row


def _put_arrival(view: View, row: Arrival) -> None:
    name = NameId(row.kind, row.name)
    view.keys[KeyId(row.kind, row.name, row.key)] = row
    view.settled[row.no] = row
    if row.kind is ArrivalKind.SIGNAL and name in view.live:
        others = [other for other in view.live[name] if other.no != row.no]
        view.live[name] = [*others, row] if row.status in LIVE else others
    for want, page in view.pages.items():
        if row.kind is ArrivalKind.CHANNEL and want.channel == row.name and row.no > want.after:
            _put_message(page, row, want.limit)


def _put_message(page: list[Arrival], row: Arrival, limit: int) -> None:
    at = next((at for at, known in enumerate(page) if known.no == row.no), None)
    if at is not None:
        page[at] = row
    elif len(page) < limit:
        page.append(row)


def _put_slot(view: View, row: Slot) -> None:
    view.slots[NameId(row.kind, row.name)] = row


def _drop_wait(view: View, row: DropWait) -> None:
    view.waits.pop(row.wait, None)


def _drop_arrival(view: View, row: DropArrival) -> None:
    view.keys[KeyId(row.kind, row.name, row.key)] = None
    view.settled.pop(row.no, None)
    for page in view.pages.values():
        page[:] = [message for message in page if message.no != row.no]


def _put_entry(view: View, row: Entry) -> None:
    view.entries[row.no] = row
    view.last_entry = max(view.last_entry, row.no)


def _sweep(view: View, row: Sweep) -> None:
    view.waits.clear()
    for name, arrivals in view.live.items():
        view.live[name] = [a for a in arrivals if a.status is not ArrivalStatus.BUFFERED]


LIVE = (ArrivalStatus.DELIVERED, ArrivalStatus.BUFFERED)

_PUT: Mapping[type, Callable[[View, Any], None]] = {
    RunRecord: _put_run,
    Wait: _put_wait,
    Arrival: _put_arrival,
    Slot: _put_slot,
    Entry: _put_entry,
    DropWait: _drop_wait,
    DropArrival: _drop_arrival,
    Sweep: _sweep,
}

"""A second opinion: what each delivery should be answered, from dictionaries and the rules alone.

It shares no code with the core. It follows the commits in their order, believes the store in nothing but
whether a worker's write was let through, and says of each delivery which receipt is the true one (rule 4.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarry.core.commands import (
    Advance,
    Advanced,
    Cancel,
    Close,
    CloseChannel,
    Deliver,
    Finish,
    Open,
    Opening,
    Record,
    Refuse,
    Start,
    Started,
)
from tarry.errors import UnknownSignal
from tarry.model import CancelReceipt, Receipt, Status, Wait

NUMBERS = ("a", "b", "d", "x1", "x2")
LATE = ("d",)
CANCELS = ("cancelling", "cancelled")
KNOWN = ("a", "b", "c", "d", "x1", "x2", "x3")

Name = tuple[str, str]


@dataclass
class Parcel:
    kind: str
    name: str
    payload: Any
    actor: str | None
    number: int = 0
    state: str = "buffered"


@dataclass
class OpenWait:
    wait: Wait
    deadline_ms: int | None


@dataclass
class RunModel:
    strict: bool
    keys: dict[tuple[str, str, str], Parcel] = field(default_factory=dict[tuple[str, str, str], Parcel])
    winners: dict[str, Parcel] = field(default_factory=dict[str, Parcel])
    shut: dict[Name, str] = field(default_factory=dict[Name, str])
    waits: dict[Any, OpenWait] = field(default_factory=dict[Any, OpenWait])
    lost: dict[Any, OpenWait] = field(default_factory=dict[Any, OpenWait])
    won: dict[Any, tuple[OpenWait, int]] = field(default_factory=dict[Any, tuple[OpenWait, int]])
    over: str | None = None

    # --- what closes and answers waits ---

    def close(self, wait: Wait, reason: str) -> None:
        if wait.kind == "signal" and wait.name not in LATE:
            self.shut["signal", wait.name] = reason

    def settle(self, entry: OpenWait, number: int) -> None:
        del self.waits[entry.wait.id]
        self.won[entry.wait.id] = entry, number
        for other in [o for o in self.waits.values() if entry.wait.group and o.wait.group == entry.wait.group]:
            del self.waits[other.wait.id]
            self.lost[other.wait.id] = other
            self.close(other.wait, "lost_race")

    def fire(self, now_ms: int) -> None:
        due = [entry for entry in self.waits.values() if entry.deadline_ms is not None and entry.deadline_ms <= now_ms]
        for entry in sorted(due, key=lambda entry: (entry.deadline_ms or 0, entry.wait.id)):
            if entry.wait.id in self.waits:
                self.settle(entry, 0)
                if entry.wait.kind == "signal":
                    self.close(entry.wait, "timeout")

    def answer(self, opened: Sequence[OpenWait]) -> None:
        """What is on file answers a wait that opens: the oldest of it."""
        found = [(parcel.number, entry.wait.member, entry, parcel) for entry in opened for parcel in self.fits(entry)]
        if not found:
            return
        _, _, entry, parcel = min(found, key=lambda row: row[:2])
        self.settle(entry, parcel.number)
        if parcel.kind == "signal":
            self.win(parcel)

    def fits(self, entry: OpenWait) -> Iterator[Parcel]:
        wait = entry.wait
        if wait.kind == "signal" and wait.name in self.winners:
            yield self.winners[wait.name]
        elif wait.kind == "signal" or (wait.kind == "channel" and wait.group is not None):
            held = [p for p in self.keys.values() if (p.kind, p.name, p.state) == (wait.kind, wait.name, "buffered")]
            for parcel in sorted(held, key=lambda parcel: parcel.number):
                if wait.kind == "channel" and parcel.number <= wait.cursor:
                    continue
                if wait.kind == "channel" or typed(parcel.name, parcel.payload):
                    yield parcel
                    return
                parcel.state = "invalid"

    def win(self, parcel: Parcel) -> None:
        parcel.state = "delivered"
        self.winners[parcel.name] = parcel
        for other in self.keys.values():
            if (other.kind, other.name, other.state) == ("signal", parcel.name, "buffered"):
                other.state = "already_settled"

    # --- deliveries ---

    def deliver(self, command: Deliver, now_ms: int) -> tuple[str, Parcel]:
        parcel = Parcel(command.kind, command.name, json.loads(command.payload), command.actor)
        return self._status(parcel, command, now_ms), parcel

    def _status(self, parcel: Parcel, command: Deliver, now_ms: int) -> str:
        known = self.keys.get((command.kind, command.name, command.key))
        if known is not None:
            equal = (known.payload, known.actor) == (parcel.payload, parcel.actor)
            if known.state != "invalid":
                return "duplicate" if equal else "conflict"
            if equal:
                return "invalid"
        if self.over is not None:
            return f"stale: {self.over}"
        if self.strict and parcel.name not in KNOWN:
            return "unknown"
        self.fire(now_ms)
        return self._open_status(parcel, command)

    def _open_status(self, parcel: Parcel, command: Deliver) -> str:
        if parcel.kind == "signal" and parcel.name in self.winners:
            return "already_settled"
        waits = [e for e in self.waits.values() if (e.wait.kind, e.wait.name) == (parcel.kind, parcel.name)]
        shut = self.shut.get((parcel.kind, parcel.name))
        if not waits and shut is not None and not (self.strict and parcel.name in LATE):
            return f"stale: {shut}"
        if (self.strict or waits) and not typed(parcel.name, parcel.payload):
            return "invalid"
        if waits:
            return "delivered"
        return "not_waiting" if command.require_wait else "buffered"

    def take(self, parcel: Parcel, key: str, status: str) -> None:
        """An accepted delivery takes its key, and answers what is open."""
        self.keys[parcel.kind, parcel.name, key] = parcel
        signal = parcel.kind == "signal"
        if status == "delivered":
            for entry in [e for e in self.waits.values() if (e.wait.kind, e.wait.name) == (parcel.kind, parcel.name)]:
                if (signal or entry.wait.group is not None) and entry.wait.id in self.waits:
                    self.settle(entry, parcel.number)
            if signal:
                parcel.state = "delivered"
                self.winners[parcel.name] = parcel
        elif signal and self.strict and parcel.name in NUMBERS:
            self.winners[parcel.name] = parcel

    # --- what the owner writes ---

    def write(self, command: Advance, now_ms: int) -> None:
        for part in command.parts:
            if self.over is not None:
                break
            if isinstance(part, Record) and part.wait is not None:
                self._placed(part.wait)
            elif isinstance(part, Open):
                self.open(part.waits, now_ms)
            elif isinstance(part, Close):
                self._give_up(part.waits)
            elif isinstance(part, Refuse):
                self._refuse(part)
        self.fire(now_ms)
        if isinstance(command.end, Finish):
            self.over = "cancel" if command.end.status is Status.CANCELLED else self.over or "ended"

    def open(self, openings: Sequence[Opening], now_ms: int) -> None:
        opened = [OpenWait(o.wait, o.until_ms if o.timeout_ms is None else now_ms + o.timeout_ms) for o in openings]
        for entry in opened:
            self.waits[entry.wait.id] = entry
        self.answer(opened)

    def _placed(self, wait: Any) -> None:
        """The owner takes an outcome in: a wait that is still open here is a reader's, or was fired meanwhile."""
        if wait in self.waits:
            entry = self.waits[wait]
            self.settle(entry, 0)
            if entry.wait.kind == "signal":
                self.close(entry.wait, "timeout")
        entry = self.won.pop(wait, None)
        if entry is not None and entry[0].wait.group is not None:
            group = entry[0].wait.group
            self.lost = {id: other for id, other in self.lost.items() if other.wait.group != group}

    def _give_up(self, waits: Sequence[Any]) -> None:
        for id in waits:
            entry = self.waits.pop(id, None) or self.lost.pop(id, None)
            won = self.won.pop(id, None)
            entry = entry or (won[0] if won else None)
            if entry is not None:
                self.close(entry.wait, "abandoned")

    def _refuse(self, part: Refuse) -> None:
        parcel = self.keys.get((part.key.kind, part.key.name, part.key.key))
        if parcel is not None and parcel.number == part.arrival:
            parcel.state = "invalid"
            if self.winners.get(parcel.name) is parcel:
                del self.winners[parcel.name]
        again = [entry for entry, number in self.won.values() if number == part.arrival]
        groups = {entry.wait.group for entry in again} - {None}
        again += [entry for entry in self.lost.values() if entry.wait.group in groups]
        for entry in again:
            self.won.pop(entry.wait.id, None)
            self.lost.pop(entry.wait.id, None)
            self.waits[entry.wait.id] = entry
        opened: list[OpenWait] = []
        for wait in part.waits:
            if wait.id in self.waits:
                self.waits[wait.id] = OpenWait(wait, self.waits[wait.id].deadline_ms)
                opened.append(self.waits[wait.id])
        self.answer(opened)


def typed(name: str, payload: Any) -> bool:
    """Whether the schema lets it pass; that a type wants even numbers is not in its schema."""
    return name not in NUMBERS or isinstance(payload, int)


class Model:
    """`blind`: a batch landed of which nobody knows the results; from there on it has no opinion."""

    def __init__(self) -> None:
        self.blind = False
        self.checked = 0
        self._runs: dict[str, RunModel] = {}

    def follow(self, item: Any, result: Any, now_ms: int) -> str | None:
        """One committed command; what is wrong with its answer, if it is a delivery's."""
        if self.blind:
            return None
        if isinstance(item, Start) and isinstance(result, Started) and result.created:
            self._runs[item.run_id] = RunModel(item.workflow == "strict")
        run = self._runs.get(getattr(item, "run_id", ""))
        if run is None:
            return None
        if isinstance(item, Deliver):
            return self._judge(run, item, result, now_ms)
        if isinstance(item, Advance) and isinstance(result, Advanced):
            run.write(item, now_ms)
        elif isinstance(item, Cancel) and isinstance(result, CancelReceipt) and result.status in CANCELS:
            run.over = "cancel"
            run.waits.clear()
        elif isinstance(item, CloseChannel) and result is True:
            run.shut["channel", item.name] = "closed"
        return None

    def _judge(self, run: RunModel, command: Deliver, result: Any, now_ms: int) -> str | None:
        expected, parcel = run.deliver(command, now_ms)
        told = _told(result)
        if told in ("buffered", "delivered"):
            parcel.number = result.number
            run.take(parcel, command.key, told)
        self.checked += 1
        if told == expected:
            return None
        return f"model: {command} was answered {told!r}, and the rules say {expected!r}"


def _told(result: Any) -> str:
    if isinstance(result, UnknownSignal):
        return "unknown"
    assert isinstance(result, Receipt), result
    return f"stale: {result.reason}" if result.status == "stale" else result.status.value

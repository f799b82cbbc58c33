"""A history told per name and per run: what the rules look at.

Names of different runs, and runs, are independent of each other, so each is judged alone and the whole
check is about linear in the length of the history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from tarry.testing.history.delivery import KEPT, Delivery, Identity, deliveries, identity
from tarry.testing.history.events import (
    CHANNEL,
    SIGNAL,
    Acked,
    Done,
    Effect,
    Ended,
    Healed,
    History,
    Outcome,
    Pass,
    Received,
)
from tarry.testing.history.final import ArrivalRow, EntryRow, Final, HeadRow, LetterRow, RunRow, WaitRow
from tarry.testing.history.report import Harm, Violation

E = TypeVar("E")
SHOWN = 20


@dataclass(frozen=True)
class Seen(Generic[E]):
    """An event, and when it was written."""

    at_ns: int
    event: E

    def __str__(self) -> str:
        return f"{self.event} at {self.at_ns}"


def plain(outcome: str) -> str:
    """An outcome in the words of who takes it in: the store's `ok` is a payload, a cancel closes."""
    return {"ok": "payload", "cancelled": "closed"}.get(outcome, outcome)


def shown(evidence: Sequence[object]) -> tuple[str, ...]:
    """A hundred thousand repetitions show no more than twenty."""
    lines = [line for line in evidence if line is not None]
    rest = (f"and {len(lines) - SHOWN} more",) if len(lines) > SHOWN else ()
    return (*map(str, lines[:SHOWN]), *rest)


@dataclass
class NameStory:
    """All that is known of one signal, vote or channel of one run."""

    run: str
    kind: str
    name: str
    deliveries: list[Delivery] = field(default_factory=list[Delivery])
    outcomes: list[Seen[Outcome]] = field(default_factory=list[Seen[Outcome]])
    received: list[Seen[Received]] = field(default_factory=list[Seen[Received]])
    acked: list[Seen[Acked]] = field(default_factory=list[Seen[Acked]])
    arrivals: list[ArrivalRow] = field(default_factory=list[ArrivalRow])
    entries: list[EntryRow] = field(default_factory=list[EntryRow])
    waits: list[WaitRow] = field(default_factory=list[WaitRow])
    letters: list[LetterRow] = field(default_factory=list[LetterRow])
    head: int = 0
    row: RunRow | None = None
    missing: bool = False

    def breaks(self, rule: str, harm: Harm, text: str, *evidence: object) -> Violation:
        return Violation(rule, self.run, self.name, harm, text, shown(evidence))

    @cached_property
    def payloads(self) -> list[Seen[Outcome]]:
        return [taken for taken in self.outcomes if taken.event.outcome == "payload"]

    @cached_property
    def standing(self) -> list[Delivery]:
        """What was accepted and not withdrawn because its type refused it (rule 4.6)."""
        return [d for d in self.deliveries if d.accepted and not self.withdrawn(d)]

    def withdrawn(self, delivery: Delivery) -> bool:
        row = self.row_of(delivery)
        if row is not None and row.status == "invalid" and delivery.equals(row):
            return True
        return ("invalid", delivery.ask.payload, delivery.ask.key) in self._letters

    def row_of(self, delivery: Delivery) -> ArrivalRow | None:
        """What the store keeps under the delivery's key; without one, of the same payload and actor."""
        return self._rows.get(delivery.identity)

    @cached_property
    def winner(self) -> ArrivalRow | None:
        """The arrival that settles the latch: the delivered one, else the first of those still buffered."""
        kept = [row for row in self.arrivals if row.status in KEPT]
        return min(kept, key=lambda row: (row.status != "delivered", row.no), default=None)

    @cached_property
    def groups(self) -> dict[Identity, list[Delivery]]:
        groups: dict[Identity, list[Delivery]] = defaultdict(list)
        for delivery in self.deliveries:
            groups[delivery.identity].append(delivery)
        return groups

    @cached_property
    def _rows(self) -> dict[Identity, ArrivalRow]:
        return {identity(row): row for row in self.arrivals}

    @cached_property
    def _letters(self) -> set[tuple[str, str, str | None]]:
        return {(letter.reason, letter.payload, letter.key) for letter in self.letters}


@dataclass
class RunStory:
    """All that is known of one run."""

    run: str
    passes: list[Seen[Pass]] = field(default_factory=list[Seen[Pass]])
    effects: list[Seen[Effect | Done]] = field(default_factory=list[Seen[Effect | Done]])
    ended: list[Ended] = field(default_factory=list[Ended])
    entries: list[EntryRow] = field(default_factory=list[EntryRow])
    waits: list[WaitRow] = field(default_factory=list[WaitRow])
    row: RunRow | None = None
    gone: bool = False
    names: list[NameStory] = field(default_factory=list[NameStory])

    def breaks(self, rule: str, harm: Harm, text: str, *evidence: object, name: str = "") -> Violation:
        return Violation(rule, self.run, name, harm, text, shown(evidence))


@dataclass
class Story:
    """The whole history, the dump, and the two told per name and per run."""

    history: History
    final: Final | None
    names: dict[tuple[str, bool, str], NameStory]
    runs: dict[str, RunStory]
    healed_ns: int
    end_ns: int


def tell(history: History, final: Final | None) -> Story:
    """Joins invocations with their answers, and the history with the dump."""
    start = history.lines[0].mono_ns if history.lines else 0
    end = history.lines[-1].mono_ns if history.lines else 0
    story = Story(history, final, {}, {}, start, end)
    for delivery in deliveries(history):
        _name(story, delivery.ask.run, delivery.ask.kind, delivery.ask.name).deliveries.append(delivery)
    _add_lines(story)
    if final is not None:
        _add_final(story, final)
    for name in story.names.values():
        _run(story, name.run).names.append(name)
    for run in story.runs.values():
        run.gone = final is not None and run.row is None
    return story


def _name(story: Story, run: str, kind: str, name: str) -> NameStory:
    """A vote is a signal of which many are answered: it has the signal's rows."""
    key = (run, kind == CHANNEL, name)
    if key not in story.names:
        story.names[key] = NameStory(run, kind, name)
    return story.names[key]


def _run(story: Story, run: str) -> RunStory:
    return story.runs.setdefault(run, RunStory(run))


def _add_lines(story: Story) -> None:
    for line in story.history.lines:
        match line.event:
            case Outcome() as event:
                _name(story, event.run, SIGNAL, event.name).outcomes.append(Seen(line.mono_ns, event))
            case Received() as event:
                _name(story, event.run, CHANNEL, event.channel).received.append(Seen(line.mono_ns, event))
            case Acked() as event:
                _name(story, event.run, CHANNEL, event.channel).acked.append(Seen(line.mono_ns, event))
            case Effect() | Done() as event:
                _run(story, event.run).effects.append(Seen(line.mono_ns, event))
            case Pass() as event:
                _run(story, event.run).passes.append(Seen(line.mono_ns, event))
            case Ended() as event:
                _run(story, event.run).ended.append(event)
            case Healed():
                story.healed_ns = line.mono_ns
            case _:
                continue


def _add_final(story: Story, final: Final) -> None:
    if final.taken_ns is not None:
        story.end_ns = final.taken_ns
    _add_rows(story, final)
    for row in final.runs:
        _run(story, row.id).row = row
    rows = {row.id: row for row in final.runs}
    for name in story.names.values():
        name.row = rows.get(name.run)
        name.missing = name.row is None and name.run not in final.pruned


def _add_rows(story: Story, final: Final) -> None:
    for row in (*final.arrivals, *final.entries, *final.waits, *final.heads, *final.letters):
        match row:
            case ArrivalRow():
                _name(story, row.run, row.kind, row.name).arrivals.append(row)
            case EntryRow():
                _run(story, row.run).entries.append(row)
                if row.kind == "wait":
                    _name(story, row.run, SIGNAL, row.name).entries.append(row)
            case WaitRow():
                _run(story, row.run).waits.append(row)
                if row.kind in (SIGNAL, CHANNEL):
                    _name(story, row.run, row.kind, row.name).waits.append(row)
            case HeadRow():
                _name(story, row.run, CHANNEL, row.channel).head = row.acked
            case LetterRow():
                for channel in (False, True):  # a letter does not say which of the two it was
                    if (row.run, channel, row.name) in story.names:
                        story.names[row.run, channel, row.name].letters.append(row)

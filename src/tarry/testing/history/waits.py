"""Rules H1 and H7: a wait has one outcome, and times out at its deadline.

A wait is (scope, name, round). Its outcome is decided once, in a transaction of the store; every pass, on
whatever worker, takes in that one. The deadline is an instant that was fixed when the wait was opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from tarry.testing.history.events import SIGNAL, Outcome
from tarry.testing.history.final import EntryRow, WaitRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import NameStory, plain


def h1(story: NameStory) -> Iterator[Violation]:
    """A wait has at most one outcome, in the journal and in every pass, and a latch at most one payload."""
    told: dict[tuple[str, int], dict[tuple[str, str | None], str]] = defaultdict(dict)
    for taken in story.outcomes:
        outcome = taken.event
        told[outcome.scope, outcome.round].setdefault((plain(outcome.outcome), outcome.payload), str(taken))
    counted: dict[tuple[str, int], int] = defaultdict(int)
    for row in (*story.entries, *story.waits):
        wait = (row.scope, row.round)
        counted[wait] += isinstance(row, EntryRow)
        if row.outcome is not None:
            told[wait].setdefault(_on_file(story, row, row.outcome, told[wait]), str(row))
    for wait, outcomes in told.items():
        if len(outcomes) > 1 or counted[wait] > 1:
            text = f"the wait (scope={wait[0]!r}, round={wait[1]}) has more than one outcome"
            yield story.breaks("H1", "applied twice", text, *outcomes.values())
    first = {taken.event.payload: taken for taken in reversed(story.payloads)}
    if story.kind == SIGNAL and len(first) > 1 and all(len(outcomes) == 1 for outcomes in told.values()):
        yield story.breaks("H1", "applied twice", "one latch gave two payloads", *first.values())


def _on_file(
    story: NameStory, row: EntryRow | WaitRow, outcome: str, told: dict[tuple[str, str | None], str]
) -> tuple[str, str | None]:
    """What a row says. Where the dump does not give its payload, it says what the passes say."""
    arrived = next((arrival.payload for arrival in story.arrivals if arrival.no == row.arrival), None)
    payload = row.payload if arrived is None and isinstance(row, EntryRow) else arrived
    word = plain(outcome)
    unsaid = word == "payload" and payload is None
    return next((seen for seen in told if unsaid and seen[0] == word), (word, payload))


def h7(story: NameStory) -> Iterator[Violation]:
    """A wait times out at its deadline, not before and not without one; and the deadline never moves."""
    for taken in story.outcomes:
        told = taken.event
        if told.outcome == "timeout" and _left_ms(told) > 0:
            yield story.breaks("H7", "wrong", "timed out before its deadline", taken)
        if told.outcome == "payload" and _left_ms(told) <= 0:
            yield story.breaks("H7", "wrong", "settled by a payload past its deadline", taken)
    yield from _moved(story)
    timed_out = [row for row in (*story.entries, *story.waits) if row.outcome == "timeout"]
    timed_out += [taken for taken in story.outcomes if taken.event.outcome == "timeout"]
    for delivery in story.deliveries:
        told = delivery.answer
        if told and (told.status, told.reason) == ("stale", "timeout") and story.row and not timed_out:
            yield story.breaks("H7", "wrong", "told of a timeout that never was", delivery)


def _left_ms(told: Outcome) -> float:
    """How far off the deadline was when the wait was settled; where the instant is not known, it fits."""
    if told.deadline_ms is None:
        return inf
    if told.decided_at_ms is None:
        return 0 if told.outcome == "timeout" else inf
    return told.deadline_ms - told.decided_at_ms


def _moved(story: NameStory) -> Iterator[Violation]:
    deadlines: dict[tuple[str, int], set[int]] = defaultdict(set)
    for row in (*(taken.event for taken in story.outcomes), *story.waits):
        if row.deadline_ms is not None:
            deadlines[row.scope, row.round].add(row.deadline_ms)
    for wait, seen in deadlines.items():
        if len(seen) > 1:
            text = f"the deadline of the wait (scope={wait[0]!r}, round={wait[1]}) moved"
            yield story.breaks("H7", "wrong", text, *sorted(seen))

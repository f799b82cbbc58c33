"""Rule H9: after the faults, what was accepted comes through within a lease, a poll and a second.

Safety alone does not see a lost wake-up: a run that sleeps for ever contradicts nothing. So every wait
that was settled has to be taken in in time, and at the end no run may be found asleep beside what would
wake it. What was accepted too shortly before the dump to be judged is counted as undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tarry.testing.history.delivery import KEPT, Delivery
from tarry.testing.history.events import CHANNEL
from tarry.testing.history.final import RunRow, WaitRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import NameStory, RunStory, Story


@dataclass(frozen=True)
class Bound:
    """Since when there are no faults, how late a resume may be, and when the looking ended."""

    healed_ns: int
    end_ns: int
    late_ns: int
    now_ms: int | None

    @classmethod
    def of(cls, story: Story, lease_s: float, poll_s: float) -> Bound:
        late_ns = int((lease_s + poll_s + 1) * 1_000_000_000)
        return cls(story.healed_ns, story.end_ns, late_ns, story.final.now_ms if story.final else None)

    def due_ns(self, delivery: Delivery) -> float:
        return max(delivery.answered_ns, self.healed_ns) + self.late_ns

    def overdue(self, at_ms: int | None) -> bool:
        """Whether something that was due at this instant of the store has had its time, without faults."""
        quiet = self.end_ns - self.healed_ns >= self.late_ns
        return quiet and at_ms is not None and self.now_ms is not None and self.now_ms - at_ms > self.late_ns / 1e6


def undecided(story: NameStory, bound: Bound) -> int:
    return sum(d.status == "delivered" and bound.due_ns(d) > bound.end_ns for d in story.standing)


def h9(run: RunStory, bound: Bound) -> Iterator[Violation]:
    for story in run.names:
        yield from _resumed(run, story, bound)
    if run.row is not None:
        yield from _asleep(run, run.row, bound)


def _resumed(run: RunStory, story: NameStory, bound: Bound) -> Iterator[Violation]:
    """`delivered` says that a wait was open: the run was asleep, and now has something to do."""
    if _visibly_stopped(run):
        return
    taken = _taken(story)
    for delivery in story.standing:
        due_ns = bound.due_ns(delivery)
        if delivery.status != "delivered" or due_ns > bound.end_ns:
            continue
        taken_ns = taken.get(delivery.ask.key if story.kind == CHANNEL else None, inf)
        if taken_ns > due_ns:
            late = "never" if taken_ns == inf else f"{(taken_ns - due_ns) / 1e9:.3f} s too late"
            yield story.breaks("H9", "stuck", f"delivered, and taken in {late}", delivery)


def _visibly_stopped(run: RunStory) -> bool:
    """A run that has ended, is ending, or is blocked with a reason that operators see does not sleep unseen."""
    return run.gone or bool(run.ended) or (run.row is not None and (run.row.closing or run.row.status == "blocked"))


def _taken(story: NameStory) -> dict[str | None, int]:
    """When what was delivered was first taken in: a message by its key, a latch's payload whatever the key."""
    first: dict[str | None, int] = {}
    for taken in story.payloads:
        first.setdefault(None, taken.at_ns)
    for received in story.received:
        first.setdefault(received.event.key, received.at_ns)
    return first


def _asleep(run: RunStory, row: RunRow, bound: Bound) -> Iterator[Violation]:
    if row.status == "ready" and bound.overdue(row.due_ms if row.due_ms is not None else row.changed_ms):
        yield run.breaks("H9", "stuck", "ready, and nobody claims it", row)
    if row.status != "waiting":
        return
    for wait in run.waits:
        if bound.overdue(wait.deadline_ms) and wait.outcome is None:
            yield run.breaks("H9", "stuck", "asleep past its deadline", wait, name=wait.name)
        if wait.outcome is not None and bound.overdue(row.changed_ms):
            yield run.breaks("H9", "stuck", "asleep beside a wait that is settled", wait, name=wait.name)
    for story in run.names:
        yield from _unread(story, bound)


def _unread(story: NameStory, bound: Bound) -> Iterator[Violation]:
    open_waits: list[WaitRow] = [wait for wait in story.waits if wait.outcome is None]
    for arrival in story.arrivals:
        fresh = arrival.status in KEPT and arrival.no > story.head
        if open_waits and fresh and bound.overdue(arrival.at_ms):
            yield story.breaks("H9", "stuck", "asleep beside what it waits for", open_waits[0], arrival)
            return

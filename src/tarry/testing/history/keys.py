"""One key, one application: what the answers to all deliveries under one key have to agree on.

A key is a write-once register. One delivery takes it; whoever comes later hears `duplicate` (equal) or
`conflict` (unequal), and never another word; who hears another word came earlier. As every delivery is
an interval, that is a comparison of two numbers: the latest invocation among the answers that found the
key free, and the earliest end among the answers that found it taken.

A delivery without an answer may be the one that took the key. Then some such delivery must fit all
answers at once, wherever its instant is put: unknown is allowed, undecided is not (rule H5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tarry.testing.history.delivery import FREE, TAKEN, Delivery
from tarry.testing.history.events import CHANNEL
from tarry.testing.history.final import ArrivalRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import NameStory


@dataclass(frozen=True)
class Group:
    """The deliveries under one key (without keys: of one event), by what their answers say."""

    story: NameStory
    row: ArrivalRow | None
    takers: list[Delivery]
    unknown: list[Delivery]
    taken: list[Delivery]
    free: list[Delivery]
    freed: bool

    @property
    def taken_by_ns(self) -> float:
        """The instant by which somebody had taken the key."""
        return min((d.answered_ns for d in (*self.takers, *self.taken)), default=inf)

    @property
    def free_until_ns(self) -> float:
        """The instant until which nobody had."""
        return max((d.invoked_ns for d in self.free), default=-inf)


def groups(story: NameStory) -> Iterator[Group]:
    standing = {d.label for d in story.standing}
    for deliveries in story.groups.values():
        yield Group(
            story,
            story.row_of(deliveries[0]),
            [d for d in deliveries if d.label in standing],
            [d for d in deliveries if d.unknown],
            [d for d in deliveries if d.status in TAKEN],
            [d for d in deliveries if d.status in FREE],
            any(story.withdrawn(d) for d in deliveries if d.may_have_taken),
        )


def once(group: Group, rule: str) -> Iterator[Violation]:
    """Rules H4 and H10: a key is accepted once, and who comes later is told so, and what is kept."""
    if len(group.takers) > 1:
        yield group.story.breaks(rule, "applied twice", "one key was accepted more than once", *group.takers)
    if group.freed:
        return
    if group.takers:
        yield from _after(group, rule)
    elif group.taken and not group.unknown and group.row is None:
        text = "told that it is a repetition, of what nobody delivered"
        yield group.story.breaks(rule, "lost", text, *group.taken)


def _after(group: Group, rule: str) -> Iterator[Violation]:
    """With the taker known, each later answer is either true or false."""
    taker = group.takers[0]
    for delivery in group.taken:
        if not _fits(delivery, taker):
            text = f"{delivery.status} does not fit what had taken the key"
            yield group.story.breaks(rule, "wrong", text, taker, delivery)
    early = [d for d in group.taken if d.answered_ns < taker.invoked_ns]
    if early and not group.unknown:
        yield group.story.breaks(rule, "wrong", "called a repetition before the first", *early, taker)
    if group.free_until_ns > group.taken_by_ns:
        late = [d for d in group.free if d.invoked_ns > group.taken_by_ns]
        yield group.story.breaks(rule, "wrong", "found the key free after it was taken", taker, *late)


def consistent(group: Group, rule: str) -> Iterator[Violation]:
    """Rule H5: what became of a delivery that nobody heard of is one thing, in every later answer."""
    if not group.unknown or not group.taken or group.freed:
        return
    if group.takers:
        first = min(group.taken, key=lambda d: d.answered_ns)
        if first.answered_ns < group.takers[0].invoked_ns:
            text = "a retry was accepted after another had been told that the unknown delivery was"
            yield group.story.breaks(rule, "applied twice", text, *group.unknown, first, *group.takers)
    elif group.row is None and group.story.row is not None and group.story.kind != CHANNEL:
        yield group.story.breaks(rule, "lost", "told that it was kept; the store keeps nothing", *group.taken)
    elif not any(_explains(group, unknown) for unknown in group.unknown):
        evidence = [*group.unknown, *group.taken, *group.free]
        yield group.story.breaks(rule, "wrong", "no fate of the unknown one explains all answers", *evidence)


def _explains(group: Group, unknown: Delivery) -> bool:
    if group.row is not None and not unknown.equals(group.row):
        return False
    timely = unknown.invoked_ns <= group.taken_by_ns and group.free_until_ns <= group.taken_by_ns
    return timely and all(_fits(delivery, unknown) for delivery in group.taken)


def _fits(delivery: Delivery, taker: Delivery) -> bool:
    """A duplicate equals what took the key and a conflict does not; both are told what is kept."""
    equal = delivery.equals(taker)
    retained = delivery.answer.retained if delivery.answer else None
    told = retained is None or retained == taker.ask.payload
    return told and equal == (delivery.status == "duplicate")

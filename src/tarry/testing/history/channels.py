"""Rule H10: a channel is read in the order of commits, without a gap, and not again after the ack.

A plain loop reads its channel from the beginning in every pass; a fold begins at the first message that
is not acked. So a pass starts at one of the two, and from there on takes message after message. An ack
is durable only with the run's next write: what a pass read as acked when it began is proof of it, what
an earlier pass merely said is not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tarry.testing.history import keys
from tarry.testing.history.events import CHANNEL, Pass, Received
from tarry.testing.history.report import Violation
from tarry.testing.history.story import NameStory, RunStory


def h10(run: RunStory, story: NameStory) -> Iterator[Violation]:
    if story.kind != CHANNEL:
        return
    for group in keys.groups(story):
        yield from keys.once(group, "H10")
    yield from _numbers(story)
    yield from _commits(story)
    yield from _reads(run, story)
    yield from _heads(run, story)


def _numbers(story: NameStory) -> Iterator[Violation]:
    """A key has one number and a number one key, in every pass and in the store."""
    numbers: dict[str | None, int] = {row.key: row.no for row in story.arrivals if row.key is not None}
    owners = {number: key for key, number in numbers.items()}
    for seen in story.received:
        message = seen.event
        number = numbers.setdefault(message.key, message.number)
        owner = owners.setdefault(message.number, message.key)
        if (number, owner) != (message.number, message.key):
            text = f"number {message.number} was that of {owner}, and key {message.key} had {number}"
            yield story.breaks("H10", "applied twice", text, seen)


def _commits(story: NameStory) -> Iterator[Violation]:
    """A message whose send began after another was answered has the higher number."""
    rows = {row.key: row.no for row in story.arrivals}
    sent = [(d, d.answer.number or rows.get(d.ask.key)) for d in story.standing if d.answer]
    answered = sorted(((d.answered_ns, no) for d, no in sent if no is not None), key=lambda row: row[0])
    highest, at = -1, 0
    for delivery, number in sorted(sent, key=lambda row: row[0].invoked_ns):
        while at < len(answered) and answered[at][0] < delivery.invoked_ns:
            highest = max(highest, answered[at][1])
            at += 1
        if number is not None and number < highest:
            text = f"its number {number} is below {highest}, which was answered before it was sent"
            yield story.breaks("H10", "wrong", text, delivery)


def _reads(run: RunStory, story: NameStory) -> Iterator[Violation]:
    order = _order(story)
    passes: dict[str, list[Received]] = defaultdict(list)
    for seen in story.received:
        passes[seen.event.pass_id].append(seen.event)
    begun = {seen.event.pass_id: seen.event for seen in run.passes}
    for pass_id, messages in passes.items():
        yield from _start(story, order, messages[0], begun.get(pass_id))
        for before, after in pairwise(messages):
            if after.number <= before.number:
                yield story.breaks("H10", "applied twice", "handed out again in one pass", before, after)
            elif bisect_left(order, after.number) > bisect_left(order, before.number) + 1:
                yield story.breaks("H10", "lost", "a message between the two was left out", before, after)


def _order(story: NameStory) -> list[int]:
    """All numbers of the channel that are known of."""
    told = {d.answer.number for d in story.standing if d.answer and d.answer.number is not None}
    read = {seen.event.number for seen in story.received}
    return sorted(told | read | {row.no for row in story.arrivals if row.status != "invalid"})


def _start(story: NameStory, order: list[int], first: Received, begun: Pass | None) -> Iterator[Violation]:
    at = bisect_left(order, first.number)
    head = dict(begun.heads).get(story.name) if begun else None
    acked = {seen.event.number for seen in story.acked}
    if head is not None and first.number <= head and (at > 0 or first.fold):
        yield story.breaks("H10", "applied twice", f"handed out again; acked up to {head}", first)
    elif at > 0 and order[at - 1] not in acked and order[at - 1] != head:
        yield story.breaks("H10", "lost", f"begins behind message {order[at - 1]}, which nobody acked", first)


def _heads(run: RunStory, story: NameStory) -> Iterator[Violation]:
    """How far a channel is acked never falls, and at the run's end it is as far as was acked."""
    highest = 0
    for begun in sorted((seen.event for seen in run.passes), key=lambda p: p.epoch):
        head = dict(begun.heads).get(story.name, highest)
        if head < highest:
            yield story.breaks("H10", "lost", f"acked up to {highest}, and later only to {head}", begun)
        highest = max(highest, head)
    if run.row is None:
        return
    if run.row.status == "succeeded":
        highest = max([highest, *(seen.event.number for seen in story.acked)])
    if story.head < highest:
        yield story.breaks("H10", "lost", f"acked up to {highest}; the store says {story.head}", run.row)

"""Rules H11 and H12: every pass reads one journal, and a run's row, its waits and its owner agree."""

from __future__ import annotations

from collections.abc import Iterator

from tarry.testing.history.final import RunRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import RunStory


def h11(story: RunStory) -> Iterator[Violation]:
    """The journal only grows. Only what belonged to earlier rounds of a fold may go (rule 5.3)."""
    known: dict[int, str] = {entry.no: entry.digest for entry in story.entries if entry.digest is not None}
    on_file = {entry.no for entry in story.entries}
    folds = any(entry.kind == "fold" for entry in story.entries)
    before: set[int] = set()
    for begun in sorted((seen.event for seen in story.passes), key=lambda p: p.epoch):
        numbers = {number for number, _ in begun.read}
        for number, digest in begun.read:
            if known.setdefault(number, digest) != digest:
                text = f"entry {number} is {digest} here and {known[number]} elsewhere"
                yield story.breaks("H11", "applied twice", text, begun)
        whole = set(range(min(numbers), max(numbers) + 1)) if numbers else set[int]()
        left_out = (before | whole) - numbers
        if left_out and not (folds and left_out.isdisjoint(on_file)):
            yield story.breaks("H11", "lost", f"does not read entries {sorted(left_out)}", begun)
        before |= numbers
    lost = before - on_file
    if story.row is not None and lost and not folds:
        yield story.breaks("H11", "lost", f"entries {sorted(lost)} were read and are gone", story.row)


def h12(story: RunStory) -> Iterator[Violation]:
    """A run is running or parked, never both, and what it waits for is on file exactly while it may wait."""
    for ended in story.ended:
        told = (ended.status, ended.result)
        first = (story.ended[0].status, story.ended[0].result)
        if told != first:
            yield story.breaks("H12", "wrong", "it ended in two ways", story.ended[0], ended)
        elif story.row and told != (
            story.row.status,
            ended.result if story.row.result is None else story.row.result,
        ):
            yield story.breaks("H12", "wrong", "it was told to have ended otherwise", ended, story.row)
    if story.row is None:
        if story.waits:
            yield story.breaks("H12", "wrong", "waits of a run that is not there", *story.waits)
        return
    yield from _owned(story, story.row)
    yield from _waiting(story, story.row)


def _owned(story: RunStory, row: RunRow) -> Iterator[Violation]:
    if (row.status == "running") != (row.worker is not None):
        yield story.breaks("H12", "wrong", "a run has an owner exactly while it is running", row)
    claimed = max((seen.event.epoch for seen in story.passes), default=row.epoch)
    if claimed > row.epoch:
        text = f"a pass ran under epoch {claimed}, which is still to come"
        yield story.breaks("H12", "wrong", text, row)


def _waiting(story: RunStory, row: RunRow) -> Iterator[Violation]:
    opened = [wait for wait in story.waits if wait.outcome is None]
    if row.ended and story.waits:
        yield story.breaks("H12", "wrong", "it has ended and still waits", row, *story.waits)
    if row.status != "waiting":
        return
    if not story.waits:
        yield story.breaks("H12", "stuck", "it waits for nothing: it would sleep for ever", row)
    deadlines = [wait.deadline_ms for wait in opened if wait.deadline_ms is not None]
    if deadlines and (row.due_ms is None or row.due_ms > min(deadlines)):
        yield story.breaks("H12", "stuck", "nobody will look at it at its deadline", row, *opened)

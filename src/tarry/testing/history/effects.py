"""Rule H8: a step on record was done, under one key, and was not done again after it was recorded.

Tarry cannot keep a process that was stopped in the middle of a step from acting when it wakes up. What
it gives the outside world to refuse it by is the fencing token: the run's epoch, which rises with each
claim. So the checker plays the outside world: an effect with a lower token than one already seen for the
run is refused and does not count. Of the rest, a second effect of a step needs a reason: another
attempt, or a claim that did not yet find the step on record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from itertools import pairwise

from tarry.testing.history.events import Done, Effect, Pass
from tarry.testing.history.final import EntryRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import RunStory, Seen

StepId = tuple[str, str]


def h8(story: RunStory, ledgered: Set[str]) -> Iterator[Violation]:
    """`ledgered` are the names of the steps that write to the ledger, in any run."""
    steps: dict[StepId, list[Seen[Effect]]] = defaultdict(list)
    for seen in unfenced(story):
        steps[seen.event.scope, seen.event.step].append(seen)
    recorded = {(e.scope, e.name): e for e in story.entries if e.kind == "step" and e.outcome == "ok"}
    found = _found(story)
    for step, effects in steps.items():
        yield from _once(story, effects)
        if step in recorded and recorded[step].no in found:
            yield from _again(story, effects, recorded[step], found[recorded[step].no])
    yield from _done(story, recorded, ledgered)
    yield from _keys(story)
    yield from _tokens(story)


def unfenced(story: RunStory) -> list[Seen[Effect]]:
    """The effects that a world which checks tokens lets pass."""
    passed: list[Seen[Effect]] = []
    for seen in story.effects:
        effect = seen.event
        if isinstance(effect, Effect) and (not passed or effect.epoch >= passed[-1].event.epoch):
            passed.append(Seen(seen.at_ns, effect))
    return passed


def _found(story: RunStory) -> dict[int, Seen[Pass]]:
    """For each entry, the first pass that found it on record."""
    found: dict[int, Seen[Pass]] = {}
    for begun in sorted(story.passes, key=lambda seen: (seen.event.epoch, seen.at_ns)):
        for number, _ in begun.event.read:
            found.setdefault(number, begun)
    return found


def _once(story: RunStory, effects: list[Seen[Effect]]) -> Iterator[Violation]:
    """One execution per claim and attempt; of an AT_MOST_ONCE step one per attempt, whatever the claim."""
    first: dict[tuple[int, int], Seen[Effect]] = {}
    for seen in effects:
        effect = seen.event
        execution = (0 if effect.once else effect.epoch, effect.attempt)
        if execution in first:
            yield story.breaks("H8", "applied twice", "done twice", first[execution], seen, name=effect.step)
        first[execution] = seen


def _again(story: RunStory, effects: list[Seen[Effect]], entry: EntryRow, found: Seen[Pass]) -> Iterator[Violation]:
    """A pass that found the step on record answers from there, and so do all later ones."""
    since = (found.event.epoch, found.at_ns)
    late = [seen for seen in effects if (seen.event.epoch, seen.at_ns) > since]
    if late:
        text = "done again after it was on record"
        yield story.breaks("H8", "applied twice", text, found, *late, name=entry.name)


def _done(story: RunStory, recorded: dict[StepId, EntryRow], ledgered: Set[str]) -> Iterator[Violation]:
    done = {(seen.event.scope, seen.event.step) for seen in story.effects if isinstance(seen.event, Done)}
    for step, entry in recorded.items():
        if entry.name in ledgered and step not in done:
            yield story.breaks("H8", "lost", "on record, and never done", entry, name=entry.name)


def _keys(story: RunStory) -> Iterator[Violation]:
    """The key is the same text at every attempt, and no two steps share one."""
    keys: dict[StepId, str] = {}
    steps: dict[str, StepId] = {}
    for seen in story.effects:
        effect = seen.event
        step = (effect.scope, effect.step)
        if keys.setdefault(step, effect.key) != effect.key:
            text = f"its key was {keys[step]} before"
            yield story.breaks("H8", "wrong", text, seen, name=effect.step)
        elif steps.setdefault(effect.key, step) != step:
            text = f"its key is that of {steps[effect.key]}"
            yield story.breaks("H8", "wrong", text, seen, name=effect.step)


def _tokens(story: RunStory) -> Iterator[Violation]:
    """A token has one owner, for ever, and the journal is written under tokens that never fall."""
    owners: dict[tuple[str, int], str] = {}
    claims = [("worker", seen.event.epoch, seen.event.worker) for seen in story.passes]
    claims += [("pid", e.epoch, str(e.pid)) for seen in story.effects if isinstance(e := seen.event, Effect)]
    for kind, epoch, owner in claims:
        if owners.setdefault((kind, epoch), owner) != owner:
            text = f"epoch {epoch} has two owners: {kind} {owners[kind, epoch]} and {owner}"
            yield story.breaks("H8", "wrong", text)
    written = sorted((e for e in story.entries if e.epoch is not None), key=lambda entry: entry.no)
    for before, after in pairwise(written):
        if (after.epoch or 0) < (before.epoch or 0):
            yield story.breaks("H8", "wrong", "an entry was written under an old epoch", before, after)

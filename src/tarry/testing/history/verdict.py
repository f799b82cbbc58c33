"""The check: every rule, over every name and every run.

    H1  one outcome, never changed          H7  a timeout at its deadline, which never moves
    H2  nothing from nowhere                H8  effects once on record, under one key, never again
    H3  accepted is kept and applied        H9  after the faults: resumed in time
    H4  one acceptance per key and latch    H10 channels: in order, no gap, no repetition
    H5  unknown, but one thing for all      H11 every pass reads the same journal
    H6  order in real time                  H12 a run's row, waits and owner agree

Each rule looks at one name or one run, so the check is about linear in the length of the history. That H1 to
H7 say what they should is itself tested: on small histories they agree with a search over all orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tarry.testing.history import channels, effects, liveness, runs, signals, waits
from tarry.testing.history.events import Effect, Fail, History
from tarry.testing.history.final import Final
from tarry.testing.history.report import Report, Violation
from tarry.testing.history.story import NameStory, Story, tell

OF_A_NAME = (waits.h1, signals.h2, signals.h3, signals.h4, signals.h5, signals.h6, waits.h7)
OF_A_RUN = (runs.h11, runs.h12)


def check(history: History, final: Final | None, *, lease_s: float, poll_s: float) -> Report:
    """Judges a history and the dump after it. Without a dump, a history is judged by itself alone."""
    story = tell(history, final)
    bound = liveness.Bound.of(story, lease_s, poll_s)
    violations = tuple(_violations(story, bound))
    return Report(violations, _counts(story, bound))


def invariants(final: Final) -> tuple[Violation, ...]:
    """Rule H12 alone, which must hold after every commit: for dumps in the middle of a campaign."""
    story = tell(History(()), final)
    return tuple(violation for run in story.runs.values() for violation in runs.h12(run))


def _violations(story: Story, bound: liveness.Bound) -> Iterator[Violation]:
    ledgered = {e.step for run in story.runs.values() for seen in run.effects if isinstance(e := seen.event, Effect)}
    for name in story.names.values():
        for rule in OF_A_NAME:
            yield from rule(name)
    for run in story.runs.values():
        yield from effects.h8(run, ledgered)
        yield from liveness.h9(run, bound)
        for name in run.names:
            yield from channels.h10(run, name)
        for rule in OF_A_RUN:
            yield from rule(run)


def _counts(story: Story, bound: liveness.Bound) -> Counter[str]:
    """How much was looked at: a campaign that reached no timeout has shown nothing about timeouts."""
    counts = Counter[str](runs=len(story.runs), names=len(story.names), torn=story.history.torn)
    for name in story.names.values():
        _count_name(counts, name)
        counts["undecided"] += liveness.undecided(name, bound)
    for run in story.runs.values():
        tried = sum(isinstance(seen.event, Effect) for seen in run.effects)
        counts.update(passes=len(run.passes), effects=tried, ended=len(run.ended))
        counts["fenced"] += tried - len(effects.unfenced(run))
    counts["quiet_s"] = (bound.end_ns - bound.healed_ns) // 1_000_000_000
    counts["failed"] = sum(isinstance(line.event, Fail) for line in story.history.lines)
    return counts


def _count_name(counts: Counter[str], name: NameStory) -> None:
    counts["deliveries"] += len(name.deliveries)
    counts.update(delivery.status or "unknown" for delivery in name.deliveries)
    counts.update(f"outcome {taken.event.outcome}" for taken in name.outcomes)
    counts.update(received=len(name.received), acked=len(name.acked))

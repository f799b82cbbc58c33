"""The count at the end: what had to happen beside what did. It reads what the demo's people saw, not the engine.

An effect under a key that nobody expected is one too many: a step whose key changed between attempts would leave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tarry.edge.cli.demo.world import Entry


@dataclass(frozen=True)
class Delivery:
    """What was sent, and the receipts of all its copies. `wanted` are the statuses that may come, in any order;
    whether the first of several was `delivered` or `buffered` depends on who was faster, and is one thing here."""

    run: str
    what: str
    receipts: tuple[dict[str, Any], ...]
    wanted: tuple[str, ...]

    @property
    def statuses(self) -> tuple[str, ...]:
        return tuple(sorted(receipt["status"] for receipt in self.receipts))

    @property
    def right(self) -> bool:
        return _accepted(self.statuses) == _accepted(self.wanted)


def _accepted(statuses: Iterable[str]) -> list[str]:
    return sorted("accepted" if status in ("delivered", "buffered") else status for status in statuses)


@dataclass(frozen=True)
class Count:
    """`lost` and `twice` are effects and results; `wrong` are receipts; `repeated` is what the kills cost."""

    lost: tuple[str, ...]
    twice: tuple[str, ...]
    wrong: tuple[str, ...]
    repeated: int

    @property
    def good(self) -> bool:
        return not (self.lost or self.twice or self.wrong)


def count(
    expected: Iterable[str],
    entries: Iterable[Entry],
    results: Mapping[str, tuple[str, str | None]],
    deliveries: Iterable[Delivery],
) -> Count:
    """`expected` are the keys of effects; `results` says of each run what it had to return and what it did."""
    found = {entry.key: entry for entry in entries}
    effects = Counter({key: entry.effects for key, entry in found.items()})
    wanted = Counter(expected)
    lost = [*(wanted - effects), *(run for run, (want, got) in results.items() if want != got)]
    return Count(
        tuple(sorted(lost)),
        tuple(sorted(effects - wanted)),
        tuple(f"{sent.run}: {sent.what}" for sent in deliveries if not sent.right),
        sum(entry.attempts - 1 for entry in found.values()),
    )

"""Many seeds on all cores: what broke, and what was reached.

Each seed is a schedule of its own, so cores share nothing. A campaign fails if a seed breaks, and also if a
rare state was never reached: then it has shown nothing about that state.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tarry.testing.sim.rare import SOMETIMES
from tarry.testing.sim.schedule import play

CHUNK = 50


@dataclass
class Tally:
    """`broken` by seed; `digest` over the traces of all seeds in order."""

    schedules: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    digest: str = ""

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.counts.update(other.counts)
        self.broken.update(other.broken)
        self.digest = hashlib.blake2b((self.digest + other.digest).encode(), digest_size=16).hexdigest()

    @property
    def missed(self) -> list[str]:
        """The rare states that no schedule reached."""
        return [state for state in SOMETIMES if not self.counts[state]]


def tally(seeds: Sequence[int]) -> Tally:
    """Plays the seeds here, one after the other."""
    logging.disable(logging.CRITICAL)  # what the engine reports of injected faults is not news
    told = Tally()
    digest = hashlib.blake2b(digest_size=16)
    for seed in seeds:
        verdict = play(seed)
        told.schedules += 1
        told.counts.update(verdict.counts)
        digest.update(verdict.digest.encode())
        if verdict.broken:
            told.broken[seed] = verdict.broken
    told.digest = digest.hexdigest()
    return told


def chunks(seeds: Sequence[int]) -> list[Sequence[int]]:
    return [seeds[i : i + CHUNK] for i in range(0, len(seeds), CHUNK)]


def run(seeds: Sequence[int], processes: int) -> Iterator[Tally]:
    """The tallies of consecutive chunks, in order, as they come in."""
    if processes == 1:
        yield from map(tally, chunks(seeds))
        return
    with multiprocessing.get_context("forkserver").Pool(processes) as pool:
        yield from pool.imap(tally, chunks(seeds))

"""What goes wrong, how often, and that it stops.

A schedule has two phases. In the first, each seam asks here whether it is to fail now; after `heal` nothing
fails any more, and whatever was accepted has to come through.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from tarry.errors import CommitUnknown, StoreBusy, StoreError

INSTANTS_S = (0.0, 0.0, 0.001, 0.001, 0.002, 0.005, 0.02, 0.1)


@dataclass(frozen=True)
class Rates:
    """Chances per occasion. A schedule has some kinds of fault and not others: all at once hide each other."""

    busy: float = 0.0
    lost: float = 0.0
    unknown: float = 0.0
    unread: float = 0.0
    slow: float = 0.0
    mute: float = 0.0
    kill: float = 0.0
    pause: float = 0.0

    @classmethod
    def drawn(cls, chance: Random) -> Rates:
        def rate(high: float) -> float:
            return chance.random() * high if chance.random() < 0.5 else 0.0

        return cls(
            busy=rate(0.15),
            lost=rate(0.15),
            unknown=rate(0.2),
            unread=rate(0.1),
            slow=rate(0.5),
            mute=rate(1.0),
            kill=rate(1.0),
            pause=rate(1.0),
        )


class Faults:
    def __init__(self, chance: Random, counts: Counter[str]) -> None:
        self.chance = chance
        self.counts = counts
        self.rates = Rates.drawn(chance)
        self.closed = False

    def heal(self) -> None:
        self.rates = Rates()

    def _strikes(self, kind: str, rate: float) -> bool:
        if rate <= 0 or self.chance.random() >= rate:
            return False
        self.counts[kind] += 1
        return True

    def on_begin(self) -> None:
        if self.closed:
            raise StoreError(reason="the schedule is over")
        if self._strikes("busy", self.rates.busy):
            raise StoreBusy(waited_s=5)

    def before_commit(self) -> None:
        if self._strikes("lost before", self.rates.lost):
            raise StoreError(reason="the connection broke")
        if self._strikes("unknown, not landed", self.rates.unknown / 2):
            raise CommitUnknown

    def after_commit(self) -> None:
        if self._strikes("unknown, landed", self.rates.unknown / 2):
            raise CommitUnknown

    def on_look_up(self) -> None:
        if self._strikes("look-up failed", self.rates.unread):
            raise StoreError(reason="still no connection")

    def mute(self) -> bool:
        """Whether a datagram is lost."""
        return self._strikes("datagram lost", self.rates.mute)

    def latency_s(self) -> float:
        """How long a commit takes; most take no time at all."""
        if self._strikes("slow", self.rates.slow):
            return self.chance.choice((0.05, 0.3, 1.0, 4.0))
        return self.chance.choice(INSTANTS_S)

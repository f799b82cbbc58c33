"""When a failed step is tried again (rule 3.4b). Pure: the jitter comes from the names, so that a replay computes
the same instant as the first pass did.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

from tarry.core.durations import duration_ms

Duration = timedelta | int | float | str


@dataclass(frozen=True)
class Retry:
    """At most `attempts` in all; the first delay is `first`, each next one `factor` times longer, up to `max`;
    each is shortened by a random part of up to `jitter` (0 to 1)."""

    attempts: int = 5
    first: Duration = 1
    factor: float = 2.0
    max: Duration = "5m"
    jitter: float = 0.25

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.factor < 1 or not 0 <= self.jitter <= 1:
            raise ValueError("Retry needs attempts >= 1, factor >= 1 and 0 <= jitter <= 1")
        for delay in (self.first, self.max):
            duration_ms(delay)

    def delay_ms(self, attempt: int, seed: str) -> int | None:
        """How long after the failure of attempt number `attempt` (from 1) the next one starts; None: give up."""
        if attempt >= self.attempts:
            return None
        longest = duration_ms(self.max)
        try:
            delay = min(duration_ms(self.first) * self.factor ** (attempt - 1), longest)
        except OverflowError:
            delay = longest
        return max(1, round(delay * (1 - self.jitter * _fraction(f"{seed}:{attempt}"))))


ONCE = Retry(attempts=1)


def policy(retries: int | Retry | None) -> Retry:
    """`retries=3` means: after a failure, up to three more times."""
    if retries is None:
        return ONCE
    return Retry(attempts=retries + 1) if isinstance(retries, int) else retries


def _fraction(seed: str) -> float:
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()) / 2**64

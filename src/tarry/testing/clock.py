"""A clock that moves only when it is told to."""

from __future__ import annotations

from datetime import datetime, timedelta

from tarry.core.durations import duration_ms, from_ms
from tarry.core.retry import Duration


class ManualClock:
    """A store's clock (`tarry.store.protocol.Clock`): both its clocks advance together, unless one is set apart to
    show that leases do not go by the wall clock."""

    def __init__(self, now_ms: int = 1_800_000_000_000, boot: str = "boot-1") -> None:
        self.boot = boot
        self._now_ms = now_ms
        self._lease_ms = 1_000_000

    def now_ms(self) -> int:
        return self._now_ms

    def lease_ms(self) -> int:
        return self._lease_ms

    @property
    def now(self) -> datetime:
        return from_ms(self._now_ms)

    def advance(self, duration: Duration) -> None:
        """Time passes: on both clocks."""
        self._now_ms += duration_ms(duration)
        self._lease_ms += duration_ms(duration)

    def jump(self, by: timedelta) -> None:
        """Somebody sets the wall clock, forward or back; leases do not notice (rule 6.5)."""
        self._now_ms += round(by.total_seconds() * 1000)

    def reboot(self, boot: str) -> None:
        self.boot = boot
        self._lease_ms = 1_000

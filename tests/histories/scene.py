"""A history written by hand: a few deliveries, what a body took in, and the dump, with short defaults.

Times are in milliseconds since the beginning, for the processes' clock and for the store's alike.
"""

import itertools
from typing import Any

from tarry.testing.history import (
    ArrivalRow,
    EntryRow,
    Event,
    Final,
    HeadRow,
    History,
    Invoke,
    LetterRow,
    Line,
    Ok,
    Outcome,
    Report,
    RunRow,
    WaitRow,
    check,
)

RUN, NAME = "r", "paid"
MS = 1_000_000


class Scene:
    """`rules` are the rules that the checker sees broken, with the dump as it was put together."""

    def __init__(self, *, dumped: bool = True) -> None:
        self.lines: list[Line] = []
        self.dumped = dumped
        self.runs: list[RunRow] = []
        self.rows: list[Any] = []
        self.pruned: frozenset[str] = frozenset()
        self.end = 100_000
        self._ops = itertools.count(1)

    def at(self, ms: int, event: Event, process: str = "p") -> "Scene":
        self.lines.append(Line(process, ms * MS, ms * MS, event))
        return self

    def deliver(
        self, asked: int, answered: int | None, key: str | None, payload: str, status: str | None, **more: Any
    ) -> "Scene":
        """A delivery, with its answer; without a status, nobody heard of it again."""
        op = next(self._ops)
        kind, name, actor = more.pop("kind", "signal"), more.pop("name", NAME), more.pop("actor", None)
        self.at(asked, Invoke(op, RUN, kind, name, payload, key, actor), f"p{op}")
        if answered is not None and status is not None:
            self.at(answered, Ok(op, status, **more), f"p{op}")
        return self

    def take(self, ms: int, outcome: str, payload: str | None = None, **more: Any) -> "Scene":
        return self.at(ms, Outcome(RUN, NAME, outcome, payload, **more), "body")

    def run(self, status: str = "succeeded", **more: Any) -> "Scene":
        self.runs.append(RunRow(RUN, status, **more))
        return self

    def arrival(self, no: int, key: str | None, payload: str, status: str = "delivered", **more: Any) -> "Scene":
        kind, name = more.pop("kind", "signal"), more.pop("name", NAME)
        self.rows.append(ArrivalRow(RUN, no, kind, name, key, payload, status=status, **more))
        return self

    def entry(self, no: int, kind: str, name: str, outcome: str = "ok", **more: Any) -> "Scene":
        self.rows.append(EntryRow(RUN, no, kind, name, outcome, **more))
        return self

    def wait(self, kind: str = "signal", name: str = NAME, **more: Any) -> "Scene":
        self.rows.append(WaitRow(RUN, kind, name, **more))
        return self

    def head(self, channel: str, acked: int) -> "Scene":
        self.rows.append(HeadRow(RUN, channel, acked))
        return self

    def letter(self, payload: str, reason: str, key: str | None) -> "Scene":
        self.rows.append(LetterRow(RUN, NAME, payload, reason, key))
        return self

    def history(self) -> History:
        return History(tuple(sorted(self.lines, key=lambda line: line.mono_ns)))

    def final(self) -> Final | None:
        if not self.dumped:
            return None

        def of(cls: type[Any]) -> tuple[Any, ...]:
            return tuple(row for row in self.rows if isinstance(row, cls))

        return Final(
            tuple(self.runs),
            of(WaitRow),
            of(EntryRow),
            of(ArrivalRow),
            of(HeadRow),
            of(LetterRow),
            self.pruned,
            now_ms=self.end,
            taken_ns=self.end * MS,
        )

    def report(self) -> Report:
        return check(self.history(), self.final(), lease_s=10, poll_s=1)

    @property
    def rules(self) -> list[str]:
        return sorted({violation.rule for violation in self.report().violations})


def settled() -> Scene:
    """One delivery that settles the latch, taken in, with the run at its end."""
    scene = Scene().deliver(1, 3, "a", "1", "delivered", number=1).arrival(1, "a", "1", at_ms=2)
    return scene.run().entry(1, "wait", NAME, arrival=1)

"""One attempt to deliver: an interval with an answer at its end, or with none.

It took effect, if it did, at one instant between its invocation and its answer. One that was never answered
may take effect at any later instant, or never; nobody knows, so nothing may depend on it being known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tarry.testing.history.events import Fail, History, Invoke, Ok
from tarry.testing.history.final import ArrivalRow

ACCEPTED = frozenset({"delivered", "buffered", "counted"})
TAKEN = frozenset({"duplicate", "conflict"})
FREE = frozenset({"already_settled", "not_waiting", "stale", "invalid", "refused"})
KEPT = frozenset({"delivered", "buffered"})

Identity = tuple[str | None, str | None, str | None]


def identity(event: Invoke | ArrivalRow) -> Identity:
    """What makes two deliveries one event: the key, or without one the payload and the actor."""
    return (event.key, None, None) if event.key is not None else (None, event.payload, event.actor)


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver, with its answer; without one, its interval never ends."""

    label: str
    ask: Invoke
    invoked_ns: int
    answered_ns: float = inf
    answer: Ok | None = None

    @property
    def status(self) -> str | None:
        return self.answer.status if self.answer else None

    @property
    def unknown(self) -> bool:
        return self.answer is None

    @property
    def accepted(self) -> bool:
        return self.status in ACCEPTED

    @property
    def may_have_taken(self) -> bool:
        """Whether it may be the one that took its key."""
        return self.unknown or self.accepted

    @property
    def identity(self) -> Identity:
        return identity(self.ask)

    def equals(self, other: Delivery | ArrivalRow) -> bool:
        """Equal in payload and actor: a repetition. Unequal under one key: a conflict."""
        told = other.ask if isinstance(other, Delivery) else other
        return (self.ask.payload, self.ask.actor) == (told.payload, told.actor)

    def __str__(self) -> str:
        answer = self.answer
        status = "unknown" if answer is None else answer.status + (f": {answer.reason}" if answer.reason else "")
        kept = f", retained {answer.retained}" if answer and answer.retained is not None else ""
        ask = self.ask
        return (
            f"{self.label} {ask.name} key={ask.key} payload={ask.payload} actor={ask.actor} "
            f"[{self.invoked_ns}, {self.answered_ns}] -> {status}{kept}"
        )


def deliveries(history: History) -> Iterator[Delivery]:
    asked: dict[tuple[str, int], Delivery] = {}
    for line in history.lines:
        event = line.event
        if isinstance(event, Invoke):
            label = f"{line.process}#{event.op}"
            asked[line.process, event.op] = Delivery(label, event, line.mono_ns)
        elif isinstance(event, Ok):
            open_end = asked[line.process, event.op]
            closed = Delivery(open_end.label, open_end.ask, open_end.invoked_ns, line.mono_ns, event)
            asked[line.process, event.op] = closed
        elif isinstance(event, Fail):
            del asked[line.process, event.op]
    yield from asked.values()

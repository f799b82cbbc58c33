"""The same question by brute force: is there an order of events that a correct latch could have seen?

Wing and Gong's search, with Lowe's memory of what was tried: from all operations that may come next,
take one, ask the sequential specification whether its answer is right there, go on, and back up.
Exponential, so for small histories only; but it knows nothing of the rules, only what a latch is. The
checker is tested against it.

The specification: a latch is open, settled or closed by a timeout. It covers a name with one wait: one
round and no race, no withdrawal, no run that ends before the wait does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tarry.testing.history.delivery import Delivery, Identity, identity
from tarry.testing.history.events import History
from tarry.testing.history.final import ArrivalRow, Final
from tarry.testing.history.story import NameStory, tell


@dataclass(frozen=True)
class State:
    """Open, closed by the timeout, or settled by this event. What was buffered may not have been checked
    against a type yet; then a delivery that insists on an open wait hears `not_waiting` (rule 4.3)."""

    phase: str = "open"
    identity: Identity = (None, None, None)
    payload: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class Read:
    """Somebody saw the latch: a body that took the outcome in, or the dump at the end."""

    invoked_ns: float
    answered_ns: float
    phases: tuple[str, ...]
    payload: str | None = None
    row: ArrivalRow | None = None

    def fits(self, state: State) -> bool:
        row = self.row
        kept = row is None or State(state.phase, identity(row), row.payload, row.actor) == state
        return state.phase in self.phases and kept and self.payload in (None, state.payload)


@dataclass(frozen=True)
class Expire:
    """The timeout. It is seen in its effects, and strikes at any time."""

    invoked_ns: float = -inf
    answered_ns: float = inf


Op = Delivery | Read | Expire
SETTLED = ("delivered", "buffered")


def linearizable(history: History, final: Final, run: str, name: str) -> bool:
    """Whether some order explains all that was seen of this signal."""
    ops = _ops(tell(history, final).names[run, False, name])
    needed = sum(1 << at for at, op in enumerate(ops) if op.answered_ns < inf)
    tried: set[tuple[int, State]] = set()
    stack = [((1 << len(ops)) - 1, State())]
    while stack:
        left, state = stack.pop()
        if not left & needed:
            return True
        if (left, state) in tried:
            continue
        tried.add((left, state))
        first_end = min(op.answered_ns for at, op in enumerate(ops) if left >> at & 1)
        for at, op in enumerate(ops):
            if left >> at & 1 and op.invoked_ns <= first_end:
                stack.extend((left & ~(1 << at), after) for after in _step(state, op))
    return False


def _step(state: State, op: Op) -> Iterator[State]:
    """The states in which a latch may be after answering so; none, if it could not have."""
    if isinstance(op, Expire):
        yield State("closed") if state.phase == "open" else state
    elif isinstance(op, Read):
        if op.fits(state):
            yield state
    elif op.unknown:
        yield from (_settle(op, phase) for phase in SETTLED if state.phase == "open")
    elif op.status in SETTLED:
        yield from (_settle(op, phase) for phase in (op.status,) if state.phase == "open")
    elif _true(state, op):
        yield state


def _settle(op: Delivery, phase: str) -> State:
    return State(phase, op.identity, op.ask.payload, op.ask.actor)


def _true(state: State, op: Delivery) -> bool:
    """Whether an answer that changes nothing is the right one in this state."""
    retained = op.answer.retained if op.answer else None
    told = retained is None or retained == state.payload
    known = state.phase in SETTLED and state.identity == op.identity
    equal = (state.payload, state.actor) == (op.ask.payload, op.ask.actor)
    right = {
        "duplicate": known and equal and told,
        "conflict": known and not equal and told,
        "already_settled": state.phase in SETTLED and not known and told,
        "not_waiting": state.phase in ("open", "closed") or (state.phase == "buffered" and not known),
        "invalid": state.phase in ("open", "closed"),
        "stale": state.phase == "closed",
    }
    return right[op.status or ""]


def _ops(story: NameStory) -> list[Op]:
    """The deliveries, the timeout, what bodies took in, and the store at the end."""
    rows = (*story.waits, *story.entries)
    ops: list[Op] = list(story.deliveries)
    if "timeout" in {row.outcome for row in rows} | {taken.event.outcome for taken in story.outcomes}:
        ops.append(Expire())
    for taken in story.outcomes:
        settled = taken.event.outcome == "payload"
        phases = SETTLED if settled else ("closed",)
        ops.append(Read(taken.at_ns, taken.at_ns, phases, taken.event.payload))
    seen = [at for op in ops for at in (op.invoked_ns, op.answered_ns) if abs(at) < inf]
    end_ns = 1 + max(seen, default=0)
    return [*ops, _dump(story, end_ns)]


def _dump(story: NameStory, end_ns: float) -> Read:
    """The store at the end, seen in one look. Two arrivals fit no state."""
    phases = set(SETTLED) if story.arrivals else {"open", "closed"}
    for row in (*story.waits, *story.entries):
        if row.outcome is not None:
            phases &= set(SETTLED) if row.outcome == "ok" else {"closed"}
    if len(story.arrivals) > 1:
        phases.clear()
    return Read(end_ns, end_ns, tuple(phases), row=next(iter(story.arrivals), None))

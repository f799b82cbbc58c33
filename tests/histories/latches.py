"""Random small histories of one latch: true ones, made by a latch that is right, and the same ones spoilt.

The latch commits one delivery after another; each commit lies somewhere inside its delivery's interval, so that
intervals overlap in every way. What it kept is the dump.
"""

from dataclasses import dataclass, field, replace
from random import Random

from tarry.testing.history import (
    ArrivalRow,
    EntryRow,
    Final,
    History,
    Invoke,
    Line,
    Ok,
    Outcome,
    RunRow,
    WaitRow,
)

RUN, NAME = "r", "paid"
KEYS = ("a", "a", "b", "b", "c", None)
PAYLOADS = ("1", "1", "2", "3")
ACTORS = (None, None, "ann")
ANSWERS = ("delivered", "buffered", "duplicate", "conflict", "already_settled", "not_waiting", "invalid", "stale")


@dataclass(frozen=True)
class Try:
    """A delivery and its interval; without an answer nobody heard what became of it."""

    ask: Invoke
    invoked: int
    answered: int
    answer: Ok | None


@dataclass(frozen=True)
class Sample:
    """A history before it is written as lines, so that it can be spoilt in one place."""

    tries: tuple[Try, ...]
    outcomes: tuple[tuple[int, Outcome], ...]
    final: Final

    def history(self) -> History:
        lines: list[tuple[int, int, Line]] = []
        for tried in self.tries:
            process = f"p{tried.ask.op}"
            lines.append((tried.invoked, 0, Line(process, tried.invoked, tried.invoked, tried.ask)))
            if tried.answer is not None:
                lines.append((tried.answered, 1, Line(process, tried.answered, tried.answered, tried.answer)))
        lines += [(at, 2, Line("body", at, at, outcome)) for at, outcome in self.outcomes]
        return History(tuple(line for _, _, line in sorted(lines, key=lambda row: row[:2])))


@dataclass
class Latch:
    """A right latch with one wait and a type at the door, which refuses the payload 3."""

    early: bool
    opened: bool = False
    closed: bool = False
    winner: Invoke | None = None
    how: str = ""
    settled_ms: int = 0
    arrivals: list[ArrivalRow] = field(default_factory=list)

    def answer(self, ask: Invoke, now: int) -> Ok:
        winner = self.winner
        if winner is not None:
            return Ok(ask.op, _word(ask, winner), retained=winner.payload, number=1)
        if self.closed:
            return Ok(ask.op, "stale", "timeout")
        if ask.payload == "3":
            return Ok(ask.op, "invalid", "invalid")
        if not self.opened and not self.early:
            return Ok(ask.op, "not_waiting", "not_waiting")
        self.how = "delivered" if self.opened else "buffered"
        self.winner, self.settled_ms = ask, now
        self.arrivals.append(ArrivalRow(RUN, 1, "signal", NAME, ask.key, ask.payload, ask.actor, self.how, at_ms=now))
        return Ok(ask.op, self.how, number=1)

    def open(self, now: int) -> None:
        self.opened = True
        if self.winner is not None:
            self.settled_ms = now
            self.arrivals = [replace(row, status="delivered") for row in self.arrivals]

    def close(self, now: int) -> None:
        if self.opened and self.winner is None:
            self.closed, self.settled_ms = True, now

    @property
    def outcome(self) -> str | None:
        if not self.opened:
            return None
        return "ok" if self.winner is not None else "timeout" if self.closed else None


def _word(ask: Invoke, winner: Invoke) -> str:
    equal = (ask.payload, ask.actor) == (winner.payload, winner.actor)
    if ask.key is None and winner.key is None and equal:
        return "duplicate"
    if ask.key is None or ask.key != winner.key:
        return "already_settled"
    return "duplicate" if equal else "conflict"


def true_sample(chance: Random, size: int) -> Sample:
    """What a right latch may show: at most `size` deliveries, some of them unheard of or never made."""
    latch = Latch(early=chance.random() < 0.7)
    now, tries = 1_000, list[Try]()
    opens, closes = chance.randrange(size + 2), chance.randrange(2 * size + 2)
    for op in range(1, size + 1):
        now += chance.randrange(1, 20)
        if op > opens and not latch.opened:
            latch.open(now)
        if op > closes:
            latch.close(now)
        now += chance.randrange(1, 20)
        tries.append(_try(chance, latch, op, now))
    outcomes = _outcomes(chance, latch, now)
    return Sample(tuple(tries), outcomes, _dump(chance, latch, bool(outcomes)))


def _try(chance: Random, latch: Latch, op: int, now: int) -> Try:
    key, payload, actor = chance.choice(KEYS), chance.choice(PAYLOADS), chance.choice(ACTORS)
    ask = Invoke(op, RUN, "signal", NAME, payload, key, actor)
    heard = chance.random() < 0.75
    answer = latch.answer(ask, now) if heard or chance.random() < 0.5 else None
    return Try(ask, now - chance.randrange(40), now + chance.randrange(40), answer if heard else None)


def _outcomes(chance: Random, latch: Latch, now: int) -> tuple[tuple[int, Outcome], ...]:
    """What passes took in: at any instant after it was settled."""
    if latch.outcome is None:
        return ()
    payload = latch.winner.payload if latch.winner else None
    told = Outcome(
        RUN,
        NAME,
        "payload" if latch.winner else "timeout",
        payload,
        deadline_ms=latch.settled_ms if latch.closed else 10_000,
        decided_at_ms=latch.settled_ms,
    )
    at = [chance.randrange(latch.settled_ms, now + 60) for _ in range(chance.randrange(3))]
    return tuple((moment, replace(told, pass_id=f"{n}")) for n, moment in enumerate(at))


def _dump(chance: Random, latch: Latch, taken: bool) -> Final:
    entries: tuple[EntryRow, ...] = ()
    waits: tuple[WaitRow, ...] = ()
    number = 1 if latch.winner is not None else None
    if taken and chance.random() < 0.7:
        entries = (EntryRow(RUN, 1, "wait", NAME, latch.outcome or "", arrival=number),)
    elif latch.opened:
        waits = (WaitRow(RUN, "signal", NAME, outcome=latch.outcome, arrival=number),)
    run = RunRow(RUN, "succeeded" if entries else "waiting")
    return Final(runs=(run,), waits=waits, entries=entries, arrivals=tuple(latch.arrivals))


def spoil(chance: Random, sample: Sample) -> Sample:
    """Changes one thing that was seen. The result may be true nevertheless."""
    ways = [_spoil_answer, _spoil_answer, _spoil_ask, _spoil_times, _spoil_dump]
    if sample.outcomes:
        ways += [_spoil_outcome, _spoil_outcome]
    return chance.choice(ways)(chance, sample)


def _spoil_answer(chance: Random, sample: Sample) -> Sample:
    at = chance.randrange(len(sample.tries))
    tried = sample.tries[at]
    retained = chance.choice([None, *PAYLOADS])
    reason = None
    word = chance.choice(ANSWERS)
    if word == "stale":
        reason = "timeout"
    if tried.answer is not None and chance.random() < 0.3:
        word, reason = tried.answer.status, tried.answer.reason
    if word in ("delivered", "buffered", "not_waiting", "invalid", "stale"):
        retained = None
    answer = None if chance.random() < 0.1 else Ok(tried.ask.op, word, reason, retained)
    return _with_try(sample, at, replace(tried, answer=answer))


def _spoil_ask(chance: Random, sample: Sample) -> Sample:
    at = chance.randrange(len(sample.tries))
    tried = sample.tries[at]
    what = chance.choice(["key", "payload", "actor"])
    value = chance.choice({"key": KEYS, "payload": PAYLOADS, "actor": ACTORS}[what])
    ask = tried.ask
    ask = Invoke(
        ask.op,
        ask.run,
        ask.kind,
        ask.name,
        value if what == "payload" and value is not None else ask.payload,
        value if what == "key" else ask.key,
        value if what == "actor" else ask.actor,
    )
    return _with_try(sample, at, replace(tried, ask=ask))


def _spoil_times(chance: Random, sample: Sample) -> Sample:
    at = chance.randrange(len(sample.tries))
    tried = sample.tries[at]
    shift = chance.randrange(-150, 150)
    moved = replace(tried, invoked=tried.invoked + shift, answered=tried.answered + shift)
    return _with_try(sample, at, moved)


def _spoil_dump(chance: Random, sample: Sample) -> Sample:
    final = sample.final
    if not final.arrivals:
        return _spoil_answer(chance, sample)
    row = final.arrivals[0]
    changed = chance.choice(
        [(), (replace(row, payload=chance.choice(PAYLOADS)),), (replace(row, key=chance.choice(KEYS)),)]
    )
    return replace(sample, final=replace(final, arrivals=changed))


def _spoil_outcome(chance: Random, sample: Sample) -> Sample:
    at = chance.randrange(len(sample.outcomes))
    moment, told = sample.outcomes[at]
    if chance.random() < 0.4:
        moment += chance.randrange(-150, 0)
    elif chance.random() < 0.5:
        told = replace(told, outcome="payload", payload=chance.choice(PAYLOADS), deadline_ms=10_000)
    else:
        told = replace(told, outcome="timeout", payload=None, deadline_ms=told.decided_at_ms)
    outcomes = (*sample.outcomes[:at], (moment, told), *sample.outcomes[at + 1 :])
    return replace(sample, outcomes=outcomes)


def _with_try(sample: Sample, at: int, tried: Try) -> Sample:
    return replace(sample, tries=(*sample.tries[:at], tried, *sample.tries[at + 1 :]))

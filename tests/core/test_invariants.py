"""Whatever is asked of a run, in whatever order and batches, some things always hold."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tarry.core.accepts import Declared
from tarry.core.commands import (
    Ack,
    Advance,
    Block,
    Cancel,
    Claim,
    Close,
    CloseChannel,
    Command,
    Finish,
    Open,
    Opening,
    Park,
    Part,
    Reap,
    Refuse,
    Release,
    Retry,
    Want,
)
from tarry.core.states import CLAIMABLE, over
from tarry.model import (
    Arrival,
    ArrivalKind,
    ArrivalStatus,
    Blocked,
    FieldError,
    KeyId,
    Outcome,
    RunRecord,
    Status,
    Wait,
    WaitId,
    WaitKind,
)
from tarry.testing.conformance_driver import Driver, message, place, record, signal, start, wait
from tests.core.desk import DOCUMENTS, INT_ID, declare, desk

NAMES = ["a", "b"]
WRONG = (FieldError("$", "no"),)
PAYLOADS = [b"1", b"2", b'"no"']

ENDS = [
    Finish(Status.SUCCEEDED, b"1"),
    Finish(Status.FAILED, error=b"{}"),
    Block(Blocked.DEADLOCK, "stuck"),
    Release(50),
    Release(50, again=True),
]

Op = tuple[Any, ...]

names = st.sampled_from(NAMES)
sent = st.tuples(st.sampled_from(["signal", "message"]), names, st.sampled_from(PAYLOADS), st.sampled_from("xyz"))
waits = st.tuples(
    st.just("open"), names, st.sampled_from(["signal", "channel", "timer"]), st.integers(0, 2), st.booleans()
)
races = st.tuples(st.just("race"), st.integers(0, 2))
common = st.one_of(
    sent,
    waits,
    st.tuples(st.just("twice"), names),
    races,
    st.tuples(st.sampled_from(["place", "refuse", "close", "drop message"]), st.integers(0, 3)),
    st.tuples(st.just("ack"), names),
    st.tuples(st.sampled_from(["record", "park", "look"])),
    st.tuples(st.just("later"), st.integers(1, 200)),
)
rare = st.one_of(
    st.tuples(st.sampled_from(["claim", "reap", "retry"])),
    st.tuples(st.just("end"), st.sampled_from(ENDS)),
    st.tuples(st.just("cancel"), st.booleans()),
    st.tuples(st.just("close channel"), names),
)
ops = st.integers(0, 11).flatmap(lambda chance: rare if chance == 0 else common)
stories = st.lists(st.lists(ops, min_size=1, max_size=4), max_size=25)


@dataclass
class Teller:
    """Turns what is told into commands, by what is on file."""

    driver: Driver
    entry: int = 0

    def command(self, op: Op) -> Command | None:
        match op:
            case ("signal", name, payload, key):
                return signal(name, payload, key)
            case ("message", name, payload, key):
                return message(name, payload, key)
            case ("cancel", force):
                return Cancel("r", force=force)
            case ("close channel", name):
                return CloseChannel("r", name)
            case ("claim",):
                return Claim("r", "w1", self.driver.run().accepts)
            case ("reap",):
                return Reap("r", "w1")
            case ("retry",):
                return Retry("r")
            case _:
                return self.turn(op)

    def turn(self, op: Op) -> Command | None:
        advance = self.driver.advance
        reads = [Want(name, 0) for name in NAMES]
        match op:
            case ("open", name, kind, round, typed):
                opened = wait(name, WaitKind(kind), round=round, schema=INT_ID if typed else None)
                return advance("r", Open((Opening(opened, timeout_ms=100),)), wants=reads)
            case ("twice", name):
                pair = [Open((Opening(wait(name, scope=scope, schema=INT_ID)),)) for scope in ("s/", "t/")]
                return advance("r", *pair, wants=reads)
            case ("race", round):
                of = {"scope": f":g:{round}/", "group": f":g:{round}/"}
                members = [
                    wait("a", round=0, member=0, **of),
                    wait("b", WaitKind.CHANNEL, round=1, member=1, **of),
                    wait("t", WaitKind.TIMER, round=2, member=2, **of),
                    wait("a", round=3, member=3, **of),
                ]
                return advance("r", Open(tuple(Opening(m, timeout_ms=150) for m in members)), wants=reads)
            case ("record",):
                return advance("r", record(self.next_entry()))
            case ("park",):
                return advance("r", end=Park(), wants=reads)
            case ("look",):
                return advance("r", wants=reads)
            case ("end", end):
                return advance("r", end=end)
            case (what, at):
                return self.of_something(what, at)
        raise AssertionError(op)

    def of_something(self, what: str, at: Any) -> Command | None:
        """What only makes sense with something on file: an unread message, a wait."""
        if what in {"ack", "drop message"}:
            messages = self.unread(at if what == "ack" else NAMES[at % 2])
            return self.driver.advance("r", self.of_message(what, messages[0])) if messages else None
        on_file = self.on_file()
        part = self.of_wait(what, on_file[at % len(on_file)]) if on_file else None
        return None if part is None else self.driver.advance("r", part)

    def of_message(self, what: str, oldest: Arrival) -> Part:
        if what == "ack":
            return Ack(oldest.name, oldest.no, len(oldest.payload))
        return Refuse(oldest.no, KeyId(oldest.kind, oldest.name, oldest.key), WRONG)

    def of_wait(self, what: str, chosen: Wait) -> Part | None:
        if what == "close":
            return Close((chosen.id,))
        if chosen.outcome in (None, Outcome.CLOSED):
            return None
        if what == "place":
            assert chosen.outcome is not None
            return place(self.next_entry(), chosen, chosen.outcome, chosen.arrival)
        return self.refusal(chosen)

    def refusal(self, settled: Wait) -> Refuse | None:
        arrival = next((a for a in self.driver.arrivals() if a.no == settled.arrival), None)
        if arrival is None:
            return None
        return Refuse(arrival.no, KeyId(arrival.kind, arrival.name, arrival.key), WRONG)

    def on_file(self) -> list[Wait]:
        return list(self.driver.store.tables.waits.values())  # type: ignore[attr-defined]

    def unread(self, channel: str) -> list[Arrival]:
        acked = self.driver.store.acked("r", channel)
        arrivals = [a for a in self.driver.arrivals() if a.kind is ArrivalKind.CHANNEL and a.name == channel]
        return [a for a in arrivals if a.no > acked and a.status is ArrivalStatus.BUFFERED]

    def next_entry(self) -> int:
        self.entry += 1
        return self.entry


def joined(commands: list[Command]) -> list[Command]:
    """What one turn after another wrote, as one turn that writes all of it."""
    told: list[Command] = []
    for command in commands:
        last = told[-1] if told else None
        if isinstance(command, Advance) and isinstance(last, Advance) and last.end is None:
            wants = tuple(dict.fromkeys(last.wants + command.wants))
            told[-1] = replace(command, parts=last.parts + command.parts, wants=wants)
        else:
            told.append(command)
    return told


def check(teller: Teller, was: RunRecord, commands: list[Command]) -> None:
    driver = teller.driver
    run, arrivals = driver.run(), driver.arrivals()
    winners = Counter(a.name for a in arrivals if a.settles)
    assert all(count == 1 for count in winners.values()), "one winner a name"
    taken = Counter(a.name for a in arrivals if a.status is ArrivalStatus.DELIVERED)
    assert all(count == 1 for count in taken.values()), "one delivered payload a name"
    keys = Counter((a.kind, a.name, a.key) for a in arrivals)
    assert all(count == 1 for count in keys.values()), "one delivery a key"
    check_counters(driver, run, arrivals)
    assert (run.worker is not None) == (run.status is Status.RUNNING)
    assert (run.blocked is not None) == (run.status is Status.BLOCKED)
    assert run.due_ms is None or run.status in CLAIMABLE
    assert run.status is not Status.READY or run.due_ms is not None
    assert run.epoch >= was.epoch
    assert run.arrivals >= was.arrivals
    assert not ((run.cancelling or run.expiring or over(run)) and teller.on_file())
    if over(was) and not any(isinstance(command, Retry) for command in commands):
        assert run == was


def check_counters(driver: Driver, run: RunRecord, arrivals: list[Arrival]) -> None:
    def unread(arrival: Arrival) -> bool:
        signal = arrival.kind is ArrivalKind.SIGNAL
        return arrival.status is ArrivalStatus.BUFFERED and (
            signal or arrival.no > driver.store.acked("r", arrival.name)
        )

    waiting = [arrival for arrival in arrivals if unread(arrival)]
    assert run.buffered == len(waiting)
    assert run.buffered_bytes == sum(len(arrival.payload) for arrival in waiting)


def check_outcomes(before: dict[WaitId, Wait], teller: Teller, commands: list[Command]) -> None:
    """An outcome changes only where a type refused it."""
    parts = [part for command in commands if isinstance(command, Advance) for part in command.parts]
    if any(isinstance(part, Refuse) for part in parts):
        return
    opened = {opening.wait.id for part in parts if isinstance(part, Open) for opening in part.waits}
    for now in teller.on_file():
        old = before.get(now.id)
        if old is not None and old.outcome is not None and now.id not in opened:
            assert (now.outcome, now.arrival, now.number) == (old.outcome, old.arrival, old.number)


def check_groups(teller: Teller) -> None:
    """Of a race all members are open, or one has an outcome and the rest are closed."""
    groups: dict[str, list[Wait]] = {}
    for member in teller.on_file():
        if member.group is not None:
            groups.setdefault(member.group, []).append(member)
    for members in groups.values():
        outcomes = [member.outcome for member in members]
        settled = [outcome for outcome in outcomes if outcome not in (None, Outcome.CLOSED)]
        assert outcomes.count(None) == len(outcomes) or len(settled) <= 1
        assert not (settled and None in outcomes)


def check_pause(driver: Driver, teller: Teller) -> None:
    """Nothing that could be taken in lies beside a paused run."""
    if driver.run().status is Status.WAITING:
        assert all(paused.outcome is None for paused in teller.on_file())


@settings(max_examples=200)
@given(stories, st.booleans(), st.booleans())
def test_whatever_is_asked_of_a_run(story: list[list[Op]], declared: bool, join: bool):
    """SPEC 1, 4.4, 4.8, 4.9, 13."""
    driver = desk()
    driver.batch(documents=DOCUMENTS)
    both = {"a": Declared(schema=INT_ID), "b": Declared(late=True)}
    accepts = declare(driver, **both) if declared else None
    driver.do(start(accepts=None, deadline_ms=driver.clock.now_ms() + 1500))
    driver.claim(accepts=accepts)
    teller = Teller(driver)
    for at, told in enumerate(story):
        if at % 3:
            driver.claim(accepts=accepts)
        for op in told:
            if op[0] == "later":
                driver.clock.advance(op[1] / 1000)
        commands = [command for op in told if op[0] != "later" and (command := teller.command(op)) is not None]
        if join:
            commands = joined(commands)
        was, waits_before = driver.run(), {w.id: w for w in teller.on_file()}
        driver.batch(*commands)
        check(teller, was, commands)
        check_outcomes(waits_before, teller, commands)
        check_groups(teller)
        check_pause(driver, teller)

"""Waits, timers and `first`: one call over one or several boundaries, of which one wins (rules 4.1-4.13, 6.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tarry.core import scopes
from tarry.core.commands import Open, Opening, Record, Refuse
from tarry.core.names import check_name
from tarry.engine.calls import Call
from tarry.engine.channels import Message
from tarry.engine.frame import Frame
from tarry.engine.names import Channel, Name, Signal
from tarry.errors import NotRetrySafe, Undecodable, WaitTimeout
from tarry.model import (
    Arrival,
    ArrivalKind,
    Entry,
    EntryId,
    EntryKind,
    KeyId,
    Outcome,
    Safety,
    Wait,
    WaitId,
    WaitKind,
)


@dataclass(frozen=True)
class Member:
    """One boundary: a signal, a channel's next message, or a timer; with its deadline, relative or absolute."""

    kind: WaitKind
    name: str
    source: Name[Any] | None = None
    timeout_ms: int | None = None
    until_ms: int | None = None

    def wait(self, run_id: str, scope: str, round: int, group: str | None, number: int) -> Wait:
        source = self.source
        schema = source.codec.schema_digest if source is not None and source.codec.schema is not None else None
        early, late = (source.early, source.late) if source is not None else (True, False)
        return Wait(
            run_id,
            self.kind,
            scope,
            self.name,
            round,
            group=group,
            member=number,
            schema=schema,
            early=early,
            late=late,
        )


class WaitCall(Call):
    """The outcome of one member alone, or, in a group, (index, value) of the member that won."""

    def __init__(self, frame: Frame, members: Sequence[Member], group: str | None = None) -> None:
        first = members[0]
        timer = first.kind is WaitKind.TIMER
        kind = EntryKind.TIMER if timer else EntryKind.WAIT
        name = first.name
        if group is not None:
            kind, name = EntryKind.FIRST, check_name("name", group)
        turn = frame.turn
        round = 0 if kind is EntryKind.TIMER else turn.calls.next_round(kind, frame.scope, name)
        entry_id = EntryId(kind, frame.scope, name, round)
        super().__init__(frame, entry_id, f"{kind.value} {name!r}")
        self.members = members
        self._group = group
        scope = frame.scope if group is None else scopes.of_group(frame.scope, name, round)
        mark = None if group is None else scope
        rounds = [round] * len(members) if group is None else list(range(len(members)))
        self._specs = [m.wait(turn.run.id, scope, rounds[i], mark, i) for i, m in enumerate(members)]
        self._entry: Entry | None = None
        self._won: Wait | None = None

    def meet(self) -> None:
        if self.id.kind is EntryKind.TIMER:
            self.turn.calls.use_name(self.id, "timer")
        self._check_safe()
        self._entry = self.turn.replay.recorded(self.id)
        if self._entry is not None:
            self.turn.replay.placed(self._entry.no, self)
            return
        for wait in self.waits():
            on_file = self.turn.on_file.waits.get(wait)
            if on_file is not None:
                self.settled(on_file)

    def _check_safe(self) -> None:
        step = self.frame.step
        while step is not None:
            if step.safety is Safety.AT_MOST_ONCE:
                raise NotRetrySafe(call=self.text, step=step.name)
            step = step.frame.step

    def waits(self) -> tuple[WaitId, ...]:
        return tuple(spec.id for spec in self._specs)

    def settled(self, wait: Wait) -> None:
        if self._won is None and wait.outcome not in (None, Outcome.CLOSED):
            self._won = wait
            assert wait.number is not None
            self.turn.replay.arrived(wait.number, self)

    def opening(self) -> Open:
        """What to put on file: the waits, with the cursor that this pass has reached in a channel."""
        rows: list[Opening] = []
        for member, wait in zip(self.members, self._waits_now(), strict=True):
            rows.append(Opening(wait, member.timeout_ms, member.until_ms))
            if member.source is not None and wait.schema is not None:
                self.turn.outbox.document(wait.schema, member.source.codec.schema)
        return Open(tuple(rows))

    def _waits_now(self) -> Iterator[Wait]:
        """The waits as they open now."""
        for spec in self._specs:
            channel = spec.kind is WaitKind.CHANNEL
            yield replace(spec, cursor=self.turn.inbox(spec.name).cursor) if channel else spec

    # --- giving the outcome back ---

    def give(self) -> None:
        if self._entry is not None:
            self._give_recorded(self._entry)
        else:
            assert self._won is not None
            self._give_new(self._won)

    def _give_recorded(self, entry: Entry) -> None:
        index = json.loads(entry.value)["index"] if entry.value is not None else 0
        arrival = None if entry.arrival is None else self.turn.on_file.arrival(entry.arrival)
        try:
            self._answer(index, entry.outcome, arrival)
        except Undecodable as error:
            self.turn.block_undecodable(error)

    def _give_new(self, won: Wait) -> None:
        arrival = None if won.arrival is None else self.turn.on_file.arrival(won.arrival)
        value = json.dumps({"index": won.member}).encode() if self._group is not None else None
        try:
            place = self._decoded(won.member, won.outcome, arrival)
        except Undecodable as error:
            assert arrival is not None
            self._refuse(arrival, error)
            return
        assert won.outcome is not None
        kind, scope, name, round = self.id
        number = self.turn.replay.next_number()
        entry = Entry(self.turn.run.id, number, kind, scope, name, round, won.outcome, value, None, won.arrival)
        self.turn.put(Record(entry, wait=won.id))
        self._conclude(won.member, won.outcome, place)

    def _refuse(self, arrival: Arrival, error: Undecodable) -> None:
        """The type refuses what the schema let pass: the sender's receipt changes, the wait opens again."""
        self._won = None
        key = KeyId(arrival.kind, arrival.name, arrival.key)
        if arrival.kind is ArrivalKind.CHANNEL:
            self.turn.inbox(arrival.name).refuse_number(arrival)
        errors = tuple(error.fields["field_errors"])
        self.turn.put(Refuse(arrival.no, key, errors, tuple(self._waits_now())))
        self.turn.on_file.forget(self.waits())

    def _answer(self, index: int, outcome: Outcome, arrival: Arrival | None) -> None:
        self._conclude(index, outcome, self._decoded(index, outcome, arrival))

    def _decoded(self, index: int, outcome: Outcome | None, arrival: Arrival | None) -> Any:
        member = self.members[index]
        if outcome is not Outcome.OK or arrival is None or member.source is None:
            return None
        if arrival.kind is ArrivalKind.CHANNEL:
            return self.turn.message(member.source, arrival)
        return member.source.codec.decode(arrival.payload)

    def _conclude(self, index: int, outcome: Outcome, value: Any) -> None:
        name = self.members[index].name
        if isinstance(value, Message):
            self.turn.inbox(name).take_number(value.arrival)
        if outcome is Outcome.TIMEOUT:
            self.reject(WaitTimeout(name=name))
        elif self._group is not None:
            self.resolve((index, value))
        else:
            self.resolve(value)


def signal_member(signal: Signal[Any], timeout_ms: int | None, until_ms: int | None) -> Member:
    return Member(WaitKind.SIGNAL, signal.name, signal, timeout_ms, until_ms)


def channel_member(channel: Channel[Any]) -> Member:
    return Member(WaitKind.CHANNEL, channel.name, channel)


def timer_member(name: str, timeout_ms: int | None, until_ms: int | None) -> Member:
    return Member(WaitKind.TIMER, check_name("timer", name), None, timeout_ms, until_ms)

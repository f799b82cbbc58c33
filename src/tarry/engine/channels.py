"""Reading a channel: receive, the loop, and the fold whose state commits with each ack (rule 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tarry.core import scopes
from tarry.core.codec import Typed, typed
from tarry.core.commands import Open, Opening, Record, Refuse
from tarry.core.inbox import Inbox
from tarry.core.names import check_name
from tarry.core.retry import policy
from tarry.engine.calls import Call
from tarry.engine.durable import Durable
from tarry.engine.frame import Frame, current
from tarry.engine.names import Channel
from tarry.engine.steps import Acking, StepCall, StepOptions
from tarry.errors import ChannelClosed, Parked, Undecodable
from tarry.model import (
    Arrival,
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

if TYPE_CHECKING:
    from tarry.engine.resume import Pass

P = TypeVar("P")
S = TypeVar("S")

HANDLE = StepOptions(Safety.IDEMPOTENT, policy(None), (), None, None, True, False, ())


class ReceiveCall(Call):
    """The n-th receive of a pass: what its n-th receive returned before, or the next message. A fold's receives
    leave no entries: its acked message says where it stands."""

    def __init__(self, frame: Frame, channel: Channel[Any], *, journaled: bool) -> None:
        turn = frame.turn
        round = turn.calls.next_round(EntryKind.RECEIVE, frame.scope, channel.name) if journaled else 0
        entry_id = EntryId(EntryKind.RECEIVE, frame.scope, channel.name, round)
        super().__init__(frame, entry_id, f"run.receive({channel.name!r})")
        self._channel = channel
        self._journaled = journaled
        self._entry: Entry | None = None
        self._queued = False
        self._again: Arrival | None = None
        self.inbox: Inbox = turn.inbox(channel.name)

    def meet(self) -> None:
        if self.frame.step is not None:
            self.inbox.skip_acked()  # what steps have acked is not in the journal as received: it is done
            if oldest := self.inbox.oldest_unacked():
                self._again = oldest  # a step that runs again gets the same message (rule 5.2)
                self.turn.replay.arrived(oldest.no, self)
                return
        self.inbox.check_acked()
        if self._journaled:
            self._entry = self.turn.replay.recorded(self.id)
        if self._entry is not None:
            self.turn.replay.placed(self._entry.no, self)
        else:
            self.look()

    def look(self) -> None:
        """Queues for the next message, if one is known; one call at a time, the oldest first."""
        if self._queued or self._entry is not None or self.turn.calls.receivers(self.inbox)[0] is not self:
            return
        message = self.inbox.peek()
        if message is not None or self.inbox.closed:
            self._queued = True
            self.turn.replay.arrived(message.no if message else self.inbox.cursor, self)

    def waits(self) -> tuple[WaitId, ...]:
        return (self._spec().id,)

    def _spec(self) -> Wait:
        codec = self._channel.codec
        return Wait(
            self.turn.run.id,
            WaitKind.CHANNEL,
            self.id.scope,
            self.id.name,
            self.id.round,
            schema=codec.schema_digest if codec.schema is not None else None,
            cursor=self.inbox.cursor,
        )

    def opening(self) -> Open:
        spec = self._spec()
        if spec.schema is not None:
            self.turn.outbox.document(spec.schema, self._channel.codec.schema)
        return Open((Opening(spec),))

    def give(self) -> None:
        self._queued = False
        if self._entry is not None and self._entry.outcome is Outcome.CLOSED:
            self._end()
        elif self._again is not None:
            self.resolve(self.turn.message(self._channel, self._again))
        elif self.inbox.peek() is None:
            self._give_end()
        else:
            self._give_message()

    def _give_end(self) -> None:
        if not self.inbox.closed:
            return  # the message was refused meanwhile: the call waits on
        self._place(Outcome.CLOSED, None)
        self._end()

    def _end(self) -> None:
        self.reject(ChannelClosed(channel=self._channel.name))

    def _give_message(self) -> None:
        arrival = self.inbox.peek()
        assert arrival is not None
        try:
            message = self.turn.message(self._channel, arrival)
        except Undecodable as error:
            self._refuse(arrival, error)
            return
        self._place(Outcome.OK, arrival.no)
        self.inbox.take()
        self.resolve(message)
        self.turn.look_again(self.inbox)

    def _refuse(self, arrival: Arrival, error: Undecodable) -> None:
        if self._entry is not None:
            self.turn.block_undecodable(error)
            return
        self.inbox.drop()
        key = KeyId(arrival.kind, arrival.name, arrival.key)
        self.turn.put(Refuse(arrival.no, key, tuple(error.fields["field_errors"])))
        self.look()

    def _place(self, outcome: Outcome, arrival: int | None) -> None:
        wait = self._spec().id
        if self._entry is not None:
            return
        if not self._journaled:
            self.turn.close((wait,))
            return
        kind, scope, name, round = self.id
        number = self.turn.replay.next_number()
        entry = Entry(self.turn.run.id, number, kind, scope, name, round, outcome, None, None, arrival)
        self.turn.put(Record(entry, wait=wait))


class Message(Generic[P]):
    """One message of a channel, to be acknowledged before the next one is received."""

    def __init__(self, turn: Pass, arrival: Arrival, payload: P) -> None:
        self.payload = payload
        self.key = arrival.key
        self.actor = arrival.actor
        self.number = arrival.no
        self.arrival = arrival
        self.turn = turn
        self.options = HANDLE

    async def ack(self) -> None:
        """Done with it. Written with the run's next commit; until then a crash hands the same message out
        again (rule 5.4)."""
        self.turn.check_open()
        self.turn.ack(self.arrival)

    def handle(self, name: str, fn: Callable[..., Any], *args: Any) -> Durable[Any]:
        """A step, keyed by the message, and the ack in one commit; in a fold `fn` returns the new state (rule
        5.4)."""
        title = f"{check_name('step', name)}:{self.key}"
        return Durable(
            self.turn,
            f"message.handle({name!r})",
            lambda frame: self.turn.begin(StepCall(frame, title, fn, args, self.options, ack=self.acking())),
        )

    def acking(self) -> Acking:
        return _PlainAck(self)


class FoldMessage(Message[P], Generic[P, S]):
    """A message of `run.fold`: its ack carries the fold's new state."""

    def __init__(self, fold: Fold[P, S], message: Message[P]) -> None:
        super().__init__(message.turn, message.arrival, message.payload)
        self.fold = fold
        self.over = False
        self.options = fold.options

    async def ack(self, state: S | None = None) -> None:
        """Done with it: the new state (None: the old one) commits together with the ack (rule 5.3)."""
        self.turn.check_open()
        data = self.fold.encode(self.fold.state if state is None else state)
        self.fold.commit(self.arrival, data)
        self.fold.state = self.fold.decode(data)
        self.over = True

    def acking(self) -> Acking:
        return _FoldAck(self)


class _PlainAck:
    recorded = True

    def __init__(self, message: Message[Any]) -> None:
        self._message = message

    def commit(self, value: bytes) -> None:
        self._message.turn.ack(self._message.arrival)

    def given(self, value: Any) -> None: ...


class _FoldAck:
    recorded = False

    def __init__(self, message: FoldMessage[Any, Any]) -> None:
        self._message = message

    def commit(self, value: bytes) -> None:
        self._message.fold.commit(self._message.arrival, value)

    def given(self, value: Any) -> None:
        self._message.fold.state = value
        self._message.over = True


class Messages(Generic[P]):
    """`async for message in run.messages(channel)`: ends when the channel is closed and read."""

    def __init__(self, channel: Channel[P], receive: Callable[[Channel[P]], Durable[Any]]) -> None:
        self._channel = channel
        self._receive = receive

    def __aiter__(self) -> AsyncIterator[Message[P]]:
        return self

    async def __anext__(self) -> Message[P]:
        try:
            return await self._receive(self._channel)
        except ChannelClosed:
            raise StopAsyncIteration from None


class Fold(Generic[P, S]):
    """A running total over a channel, at constant cost for ever (rule 5.3). `state` is right at every moment:
    the initial one, or the last acked."""

    def __init__(self, frame: Frame, channel: Channel[P], initial: S, state_type: Any) -> None:
        self._turn = frame.turn
        self._frame = frame
        self._channel = channel
        self._codec: Typed = typed(state_type)
        self._inbox = self._turn.inbox(channel.name)
        self._turn.calls.use_fold(channel.name)
        self._inbox.skip_acked()
        on_file = self._inbox.slot.state
        self.options = StepOptions(Safety.IDEMPOTENT, policy(None), (), None, state_type, True, False, ())
        self.state: S = initial if on_file is None else self._restored(on_file)

    def _restored(self, data: bytes) -> S:
        try:
            return self._codec.decode(data)
        except Undecodable as error:
            self._turn.block_undecodable(error)
            raise Parked from None

    def __aiter__(self) -> AsyncIterator[FoldMessage[P, S]]:
        return self

    async def __anext__(self) -> FoldMessage[P, S]:
        current.set(self._frame)
        try:
            received: Message[P] = await Durable(self._turn, f"run.fold({self._channel.name!r})", self._receive)
        except ChannelClosed:
            raise StopAsyncIteration from None
        scope = scopes.of_message(self._frame.scope, self._channel.name, received.key)
        message = FoldMessage(self, received)
        current.set(replace(self._frame, scope=scope, round=message, outer=self._frame))
        return message

    def _receive(self, frame: Frame) -> Any:
        return self._turn.begin(ReceiveCall(self._frame, self._channel, journaled=False))

    def encode(self, state: S) -> bytes:
        return self._codec.encode(state)

    def decode(self, data: bytes) -> S:
        """What a replay will see of it, so that the first pass sees the same."""
        return self._codec.decode(data)

    def commit(self, arrival: Arrival, state: bytes) -> None:
        """Queues the ack with the new state; what earlier rounds journaled goes with it."""
        prefix = scopes.of_fold(self._frame.scope, self._channel.name)
        self._turn.ack(arrival, state, prefix)

"""One pass over one run, from its claim until it lets go: run the body, give outcomes back, write, repeat.

    pump the body to quiescence → give back the next outcome → … → nothing more on file:
    write what the pass has to say in one command → learn what is new → …

The body is always run from the top and answers from the journal; live and replayed outcomes go through the
same queue (`core.replay`), so there is one way to resume. A pass has one write in flight at a time. It ends by
a pause, by the run's end, by a block, or when its lease is lost; then the latch is set first, so that whatever
the body still does records nothing (rule 3.8).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

from tarry.core.codec import decode_args
from tarry.core.commands import (
    Ack,
    Advance,
    Advanced,
    Close,
    End,
    Open,
    Park,
    Part,
    Record,
    Release,
    Want,
)
from tarry.core.inbox import Inbox
from tarry.core.journal import Journal
from tarry.core.replay import Replay
from tarry.engine import ending
from tarry.engine.calls import Call
from tarry.engine.channels import Message, ReceiveCall
from tarry.engine.context import Run
from tarry.engine.frame import Frame, current
from tarry.engine.loop import RunLoop
from tarry.engine.names import Name
from tarry.engine.steps import StepCall
from tarry.engine.waits import WaitCall
from tarry.engine.workflow import Workflow
from tarry.errors import (
    BadArguments,
    LeaseLost,
    LimitExceeded,
    NameReused,
    NotDurable,
    Parked,
    RunCancelled,
    RunExpired,
    Undecodable,
    WrongThread,
)
from tarry.model import (
    Arrival,
    ArrivalKind,
    Blocked,
    Entry,
    EntryId,
    EntryKind,
    Slot,
    Wait,
    WaitId,
)

LOG = logging.getLogger("tarry.engine")

REJECTIONS = 100
RETRY_WRITE_S = 0.5
FRUITLESS = 25
FAULT_DELAY_MS = 1_000


class Host(Protocol):
    """What a pass needs of its worker."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def id(self) -> str: ...
    def submit(self, command: Advance, done: Any, documents: Mapping[str, bytes]) -> None: ...
    def spawn(self, coro: Any) -> asyncio.Task[None]: ...
    async def call(self, fn: Any, *args: Any) -> Any: ...
    async def sleep(self, delay_s: float) -> None: ...
    def later(self, delay_s: float, fn: Any) -> asyncio.TimerHandle: ...
    def now_ms(self) -> int: ...
    def over(self, turn: Pass) -> None: ...


class Pass:
    def __init__(self, host: Host, workflow: Workflow, journal: Journal) -> None:
        self.host = host
        self.workflow = workflow
        self.run = journal.run
        self.ended = False
        self.cancelling = self.run.cancelling or self.run.expiring
        self.replay: Replay[Call] = Replay(journal.entries)
        self.on_file: dict[WaitId, Wait] = {wait.id: wait for wait in journal.waits}
        self.on_end: list[Any] = []
        self._journal = journal
        self._arrivals = dict(journal.arrivals)
        self._inboxes: dict[str, Inbox] = {}
        self._folds: set[str] = set()
        self._context = contextvars.copy_context()
        self.loop = RunLoop(self._context, self._refused)
        self._pending: dict[Call, None] = {}
        self._waiting: dict[WaitId, Call] = {}
        self._used: set[EntryId] = set()
        self._rounds: dict[tuple[EntryKind, str, str], int] = defaultdict(int)
        self._parts: list[Part] = []
        self._documents: dict[str, bytes] = {}
        self._on_durable: list[asyncio.Future[None]] = []
        self._to_open: dict[Call, None] = {}
        self._body: asyncio.Task[Any] | None = None
        self._block: End | None = None
        self._hooks: asyncio.Task[None] | None = None
        self._writing = self._turning = self._leaving = False
        self._rejected = self._fruitless = self.written_ms = 0
        self._timer: asyncio.TimerHandle | None = None

    # --- the worker's side ---

    def start(self) -> None:
        try:
            args = decode_args(self.workflow.body, self.run.input)
        except (Undecodable, BadArguments) as error:
            self._block = ending.undecodable(error)
            self._write()
            return
        self._context.run(current.set, Frame(self))
        self._set_timer(self.now_ms())
        run = Run(self)
        self._body = self.loop.spawn(_called(self.workflow.body, run, args), name=self.run.id)
        self.turn()

    def nudge(self) -> None:
        """Something about this run was written by somebody else: look."""
        if not self.ended:
            self._write(look=True)

    def lose(self) -> None:
        """The run is another worker's by now: nothing more is written."""
        self._drop()

    def give_up(self, end: End) -> None:
        """Lets go without waiting for what is in flight (a shutdown)."""
        self._leaving = True
        self._block = end
        self._write()

    @property
    def executing(self) -> list[StepCall]:
        return [call for call in self._pending if isinstance(call, StepCall) and call.executing]

    # --- the turn ---

    def turn(self) -> None:
        """Runs the body as far as what is on file takes it, then writes."""
        if self._turning or self.ended:
            return
        self._turning = True
        try:
            self._run_on()
        except Exception as error:  # a fault of the engine: it counts for nothing and is never journaled (rule 3.9)
            self._fault(error)
        finally:
            self._turning = False
        self._write()

    def changed(self) -> None:
        """A step has an outcome to write, or something to give: at the next turn of the worker's loop."""
        if not self.ended:
            self.host.loop.call_soon(self.turn)

    def _run_on(self) -> None:
        assert self._body is not None
        while self._block is None:
            try:
                self.loop.pump()
            except NotDurable as error:
                self._refused(error)
            if self._body.done():
                return
            call = self.replay.next(placed_only=self.cancelling)
            if call is not None:
                self._fruitless = 0
                call.give()
            elif not (self.cancelling and self._reject_one()):
                return

    def _reject_one(self) -> bool:
        """The run is being cancelled, and this code waits for something that will not come (rule 3.12)."""
        for call in self._pending:
            if not call.executing and not call.future.done() and not self._recorded(call):
                self._rejected += 1
                if self._rejected > REJECTIONS:
                    return False
                call.reject(self._cancel_error())
                return True
        return False

    def _recorded(self, call: Call) -> bool:
        return isinstance(call, StepCall) and call.recorded

    def _cancel_error(self) -> BaseException:
        if self.run.expiring and not self.run.cancelling:
            return RunExpired(run_id=self.run.id)
        by = f" by {self.run.cancel_actor}" if self.run.cancel_actor else ""
        return RunCancelled(run_id=self.run.id, by=by)

    def _fault(self, error: Exception) -> None:
        LOG.error("run %s: a fault of the engine; it is tried again", self.run.id, exc_info=error)
        self._leaving = True
        self._block = Release(delay_ms=FAULT_DELAY_MS)

    # --- what calls use ---

    def begin(self, call: Call) -> asyncio.Future[Any]:
        """Meets a call, unless the pass is over, in which case nothing is recorded any more."""
        self.check_open()
        if self._block is not None:
            self._pending[call] = None
            return call.future
        self._pending[call] = None
        call.future.add_done_callback(lambda future: self._given_up(call, future))
        try:
            call.meet()
        except BaseException:
            self._pending.pop(call, None)
            raise
        if call in self._pending and not call.executing:
            self.attach(call)
        if call.frame.step is not None:
            self.changed()
        return call.future

    def check_open(self) -> None:
        if self.ended:
            raise Parked
        frame = current.get()
        if frame is None or frame.turn is not self:
            raise WrongThread(call="a durable call of another run")

    def new_future(self, frame: Frame) -> asyncio.Future[Any]:
        """On the loop of the code that makes the call: the run's own for its body, the worker's for a step."""
        expected = self.loop if frame.step is None else self.host.loop
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not expected:
            raise WrongThread(call="a durable call")
        return expected.create_future()

    def use_name(self, entry_id: EntryId, kind: str) -> None:
        if entry_id in self._used:
            raise NameReused(kind=kind, name=entry_id.name, run_id=self.run.id)
        self._used.add(entry_id)

    def use_fold(self, channel: str) -> bool:
        fresh = channel not in self._folds
        self._folds.add(channel)
        return fresh

    def next_round(self, kind: EntryKind, scope: str, name: str) -> int:
        self._rounds[kind, scope, name] += 1
        return self._rounds[kind, scope, name] - 1

    def put(self, part: Part) -> None:
        self._parts.append(part)

    def document(self, digest: str, text: bytes | None) -> None:
        if text is not None:
            self._documents[digest] = text

    async def written(self, entry: Entry) -> None:
        """Puts an entry that no code waits for, and returns when it is durable."""
        future: asyncio.Future[None] = self.host.loop.create_future()
        self._parts.append(Record(entry))
        self._on_durable.append(future)
        self.changed()
        await future

    def now_ms(self) -> int:
        return self.host.now_ms()

    def arrival(self, number: int) -> Arrival:
        return self._arrivals[number]

    def message(self, source: Name[Any], arrival: Arrival) -> Message[Any]:
        return Message(self, arrival, source.codec.decode(arrival.payload))

    def inbox(self, channel: str) -> Inbox:
        found = self._inboxes.get(channel)
        if found is None:
            slot = self._journal.slots.get(channel) or Slot(self.run.id, ArrivalKind.CHANNEL, channel)
            messages = self._journal.messages.get(channel, [])
            found = self._inboxes[channel] = Inbox(slot, messages)
            self._arrivals |= {message.no: message for message in messages}
        return found

    def ack(self, arrival: Arrival, state: bytes | None = None, drop: str | None = None) -> None:
        if self.inbox(arrival.name).ack(arrival):
            if drop is not None:
                self._forget_rounds(drop)
            self._parts.append(Ack(arrival.name, arrival.no, len(arrival.payload), state, drop))

    def _forget_rounds(self, prefix: str) -> None:
        """Entries of the round that are not written yet need not be."""
        self._parts = [
            part
            for part in self._parts
            if not (isinstance(part, Record) and part.entry.scope.startswith(prefix) and part.wait is None)
        ]
        self._used = {used for used in self._used if not used.scope.startswith(prefix)}

    def first_receiver(self, call: ReceiveCall) -> bool:
        """Whether no older call waits for the same channel's next message."""
        for other in self._pending:
            if isinstance(other, ReceiveCall) and other.inbox is call.inbox:
                return other is call
        return True

    def look_again(self, inbox: Inbox) -> None:
        for call in list(self._pending):
            if isinstance(call, ReceiveCall) and call.inbox is inbox:
                call.look()

    def attach(self, call: Call) -> None:
        """The call waits for something on file: for its waits to settle, or for a retry's delay."""
        for wait in call.waits():
            self._waiting[wait] = call
            if wait not in self.on_file:
                self._to_open[call] = None
        if call.frame.step is not None:
            call.frame.step.nested.add(call)

    def detach(self, call: Call) -> None:
        self._to_open.pop(call, None)
        for wait in call.waits():
            if self._waiting.get(wait) is call:
                del self._waiting[wait]
        if call.frame.step is not None:
            call.frame.step.nested.discard(call)

    def reopened(self, waits: tuple[WaitId, ...]) -> None:
        for wait in waits:
            self.on_file.pop(wait, None)

    def done(self, call: Call) -> None:
        """The call's outcome is given, or it was given up."""
        self._pending.pop(call, None)
        self.detach(call)

    def _given_up(self, call: Call, future: asyncio.Future[Any]) -> None:
        """A branch was cancelled by the body itself: its wait claims nothing any more."""
        if not future.cancelled() or self.ended or call not in self._pending:
            return
        if isinstance(call, StepCall) and call.executing:
            return  # a step in progress is finished and recorded
        on_file = tuple(wait for wait in call.waits() if wait in self.on_file)
        self.replay.forget(call)
        self.done(call)
        if on_file:
            self._parts.append(Close(on_file))

    def block(self, why: Blocked, reason: str) -> None:
        if self._block is None:
            self._block = ending.block(why, reason)

    def block_undecodable(self, error: Exception) -> None:
        self.block(Blocked.UNDECODABLE, str(error))

    def _refused(self, error: NotDurable) -> None:
        self.block(Blocked.NOT_DURABLE, str(error))

    # --- writing ---

    def _write(self, *, look: bool = False) -> None:
        """One command with all that there is to write; nothing while one is in flight."""
        if self._writing or self.ended:
            return
        end = self._end()
        parts = self._take_parts(parking=isinstance(end, Park))
        wants = self._wants()
        if end is None and not parts and not look and not self._hungry(wants):
            return
        self._writing = True
        number = self.replay.last
        futures, self._on_durable = self._on_durable, []
        documents, self._documents = self._documents, {}
        advance = Advance(self.run.id, self.host.id, self.run.epoch, tuple(parts), end, wants)
        self._send(advance, number, futures, documents)

    def _send(
        self, advance: Advance, number: int, futures: list[asyncio.Future[None]], documents: dict[str, bytes]
    ) -> None:
        def done(result: Any) -> None:
            if self.ended:
                return
            if isinstance(result, Advanced):
                self._written(result, advance, number, futures)
            else:
                self._not_written(result, advance, number, futures, documents)

        self.host.submit(advance, done, documents)

    def _take_parts(self, *, parking: bool) -> list[Part]:
        parts, self._parts = self._parts, []
        opened: dict[Call, None] = {}
        for call in self._to_open:
            assert isinstance(call, (WaitCall, ReceiveCall, StepCall))
            part: Open = call.opening()
            parts.append(part)
            opened[call] = None
        self._to_open = {}
        if parking:
            placed = {part.wait for part in parts if isinstance(part, Record)}
            unmet = [w for w in self.on_file if w not in self._waiting and w not in placed]
            if unmet:
                parts.append(Close(tuple(unmet)))
        return parts

    def _wants(self) -> tuple[Want, ...]:
        """The next messages of each channel that some code waits for."""
        return tuple(
            self.inbox(wait.name).want()
            for wait in {w.name: w for w in self._waiting if w.kind == ArrivalKind.CHANNEL}.values()
            if self.inbox(wait.name).peek() is None
        )

    def _hungry(self, wants: tuple[Want, ...]) -> bool:
        """Whether a channel may hold more than was read of it: its last page was a full one."""
        return any(self.inbox(want.channel).hungry for want in wants)

    def _end(self) -> End | None:
        """How the pass ends with this write, if it does."""
        busy = bool(self.executing)
        if self._block is not None:
            return None if busy and not self._leaving else self._block
        if busy or self._body is None:
            return None
        if self._body.done():
            return self._finished()
        if self.replay.queued(placed_only=self.cancelling):
            return None
        if self.cancelling and (not self._pending or self._rejected > REJECTIONS):
            return ending.forced(self.run)
        return Park(saw_cancel=self.cancelling) if self._pending else ending.deadlock()

    def _finished(self) -> End | None:
        """The body is done: its clean-up runs first, then the end is written."""
        assert self._body is not None
        if self.on_end and self._hooks is None:
            self._hooks = self.host.spawn(ending.run_hooks(self.on_end, self.host, self.run))
            self._hooks.add_done_callback(lambda _: self.changed())
        if self._hooks is not None and not self._hooks.done():
            return None
        return ending.of_body(self._body, self.workflow, self.run)

    # --- what a write came to ---

    def _written(
        self, result: Advanced, advance: Advance, number: int, futures: list[asyncio.Future[None]]
    ) -> None:
        self._writing = False
        self.replay.durable(number)
        self.written_ms = result.now_ms
        self.run = result.run
        for future in futures:
            if not future.done():
                future.set_result(None)
        if result.over:
            self._drop()
            return
        if isinstance(advance.end, Park):
            self._count_fruitless()
        self._learn(result)
        self.turn()

    def _count_fruitless(self) -> None:
        """Park was refused, so there is something on file; that the pass can't take it in is a fault of ours."""
        self._fruitless += 1
        if self._fruitless > FRUITLESS:
            self._fault(RuntimeError("park was refused again and again"))

    def _not_written(
        self,
        error: Exception,
        advance: Advance,
        number: int,
        futures: list[asyncio.Future[None]],
        documents: dict[str, bytes],
    ) -> None:
        if isinstance(error, LeaseLost):
            self._drop()
        elif isinstance(error, LimitExceeded):
            self._writing = False
            self._parts = []
            self.block(Blocked.LIMIT, str(error))
            self._write()
        else:
            self.host.later(RETRY_WRITE_S, lambda: self._send(advance, number, futures, documents))

    def _learn(self, result: Advanced) -> None:
        """News from the store: waits settled, messages, a cancel."""
        self.cancelling = self.cancelling or self.run.cancelling or self.run.expiring
        if self.cancelling:
            for step in self.executing:
                if step.interruptible:
                    step.interrupt()
        self._arrivals |= result.arrivals
        fresh = {wait.id: wait for wait in result.waits}
        before, self.on_file = self.on_file, fresh
        for wait in result.waits:
            call = self._waiting.get(wait.id)
            known = before.get(wait.id)
            if call is not None and wait.outcome is not None and (known is None or known.outcome is None):
                call.settled(wait)
        for channel, page in result.pages.items():
            self._arrivals |= {message.no: message for message in page}
            inbox = self.inbox(channel)
            inbox.learn(page, closed=channel in result.closed)
            self.look_again(inbox)
        self._set_timer(result.now_ms)

    def _set_timer(self, now_ms: int) -> None:
        """While the run is held, its own worker sees to its deadlines (rule 3.4 of the engine's design)."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadlines = [w.deadline_ms for w in self.on_file.values() if w.outcome is None and w.deadline_ms]
        if self.run.deadline_ms is not None and not self.cancelling:
            deadlines.append(self.run.deadline_ms)
        if deadlines:
            self._timer = self.host.later(max(0, min(deadlines) - now_ms) / 1000, self.nudge)

    # --- letting go ---

    def _drop(self) -> None:
        """The latch first; then every open future gets Parked, and the body is unwound on its own loop."""
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        for call in list(self._pending):
            if isinstance(call, StepCall):
                call.interrupt()
        for future in self._on_durable:
            if not future.done():
                future.set_exception(Parked())
        self.loop.unwind(self._raise_parked)
        self.host.over(self)

    def _raise_parked(self) -> None:
        pending, self._pending = list(self._pending), {}
        for call in pending:
            if not call.future.done():
                call.future.set_exception(Parked())
                call.future.exception()


async def _called(body: Any, run: Run[Any], args: tuple[Any, ...]) -> Any:
    return await body(run, *args)


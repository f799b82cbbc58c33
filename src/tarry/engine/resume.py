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
from collections.abc import Callable
from typing import Any
from zlib import crc32

from tarry.core.codec import decode_args
from tarry.core.commands import Advance, Advanced, Block, Close, End, Park, Part, Record, Release
from tarry.core.inbox import Inbox
from tarry.core.journal import Journal
from tarry.core.replay import Replay
from tarry.engine import ending
from tarry.engine.calls import Call
from tarry.engine.channels import Message
from tarry.engine.context import Run
from tarry.engine.frame import Frame, current
from tarry.engine.host import Host, Writing
from tarry.engine.inflight import InFlight
from tarry.engine.loop import RunLoop
from tarry.engine.names import Name
from tarry.engine.onfile import OnFile
from tarry.engine.outbox import Outbox
from tarry.engine.steps import StepCall
from tarry.engine.workflow import Workflow
from tarry.errors import BadArguments, LeaseLost, LimitExceeded, NotDurable, Parked, Undecodable, WrongThread
from tarry.model import Arrival, Blocked, Entry, Limits, WaitId

LOG = logging.getLogger("tarry.engine")

REJECTIONS = 100
FRUITLESS = 25
RETRY_WRITE_S = 0.5
FAULT_DELAY_MS = 1_000
LIMITS = Limits()


class Pass:
    def __init__(self, host: Host, workflow: Workflow, journal: Journal) -> None:
        self.host = host
        self.workflow = workflow
        self.run = journal.run
        self.ended = False
        self.cancelling = self.run.cancelling or self.run.expiring
        self.replay: Replay[Call] = Replay(journal.entries)
        self.calls = InFlight(self.run.id)
        self.on_file = OnFile(journal)
        self.outbox = Outbox()
        self.on_end: list[Callable[[], Any]] = []
        self.written_ms = 0
        self._entries = len(journal.entries)
        self._context = contextvars.copy_context()
        self.loop = RunLoop(self._context, self._refused, seed=crc32(self.run.id.encode()))
        self._body: asyncio.Task[Any] | None = None
        self._hooks: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._end_with: End | None = None
        self._turning = self._writing = self._leaving = self._look = False
        self._rejected = self._fruitless = 0

    # --- the worker's side ---

    def start(self) -> None:
        try:
            args = decode_args(self.workflow.body, self.run.input)
        except (Undecodable, BadArguments) as error:
            self._end_with = ending.bad_input(error)
            self._write()
            return
        if self._too_long():
            return
        self._set_timer(self.now_ms())
        self._context.run(current.set, Frame(self))
        self._body = self.loop.spawn(_called(self.workflow.body, Run(self), args), name=self.run.id)
        self.turn()

    def _too_long(self) -> bool:
        """Rule 13: a journal that grows without end slows every resume; a fold over a channel does not grow."""
        if self._entries >= LIMITS.entries:
            reason = f"Its journal has {self._entries} entries; the limit is {LIMITS.entries}. Use run.fold for loops."
            self._end_with = Block(Blocked.LIMIT, reason)
            self._write()
        elif self._entries >= LIMITS.entries_warn:
            LOG.warning("run %s: its journal has %d entries; use run.fold for loops", self.run.id, self._entries)
        return self._end_with is not None

    def nudge(self) -> None:
        """Something about this run was written by somebody else, or has come due: look."""
        self._look = True
        self._write()

    def lose(self) -> None:
        """The run is another worker's by now: nothing more is written."""
        if not self.ended:
            self._drop()

    def give_up(self, end: End) -> None:
        """Lets go without waiting for what is in flight: a shutdown, or a fault of ours."""
        self._leaving = True
        self._end_with = end
        self._write()

    # --- the turn ---

    def turn(self) -> None:
        """Runs the body as far as what is on file takes it, then writes."""
        if self._turning or self.ended:
            return
        self._turning = True
        try:
            self._run_on()
        except Exception as error:  # a fault of the engine counts for nothing and is never journaled (rule 3.9)
            self._fault(error)
        finally:
            self._turning = False
        self._write()

    def changed(self) -> None:
        """There is something to give or to write: at the next turn of the worker's loop."""
        if not self.ended:
            self.host.loop.call_soon(self.turn)

    def _run_on(self) -> None:
        while self._end_with is None and self._body is not None:
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
        call = self.calls.to_reject()
        if call is None or self._rejected >= REJECTIONS:
            return False
        self._rejected += 1
        call.reject(ending.told(self.run))
        return True

    def _fault(self, error: Exception) -> None:
        LOG.error("run %s: a fault of the engine; it is tried again", self.run.id, exc_info=error)
        self._leaving = True
        self._end_with = Release(delay_ms=FAULT_DELAY_MS)

    # --- what calls use ---

    def begin(self, call: Call) -> asyncio.Future[Any]:
        """Meets a call. When the pass is over nothing is recorded any more; one that ends meets nothing new."""
        self.check_open()
        self.calls.add(call)
        if self._end_with is not None:
            return call.future
        call.future.add_done_callback(lambda future: self._given_up(call, future))
        try:
            call.meet()
        except BaseException:
            self.calls.remove(call)
            raise
        if call in self.calls and not call.executing:
            self.attach(call)
        if call.frame.step is not None:
            self.changed()
        return call.future

    def check_open(self) -> None:
        if self.ended:
            raise Parked
        frame = current.get()
        if frame is None or frame.turn is not self:
            raise WrongThread(call="a durable call")

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

    def attach(self, call: Call) -> None:
        self.calls.attach(call, self.on_file.waits)

    def put(self, part: Part) -> None:
        self.outbox.put(part)

    async def written(self, entry: Entry) -> None:
        """Puts an entry that no code waits for, and returns when it is durable."""
        future: asyncio.Future[None] = self.host.loop.create_future()
        self.outbox.put(Record(entry))
        self.outbox.when_durable(future)
        self.changed()
        await future

    def now_ms(self) -> int:
        return self.host.now_ms()

    def message(self, source: Name[Any], arrival: Arrival) -> Message[Any]:
        return Message(self, arrival, source.codec.decode(arrival.payload))

    def inbox(self, channel: str) -> Inbox:
        return self.on_file.inbox(channel)

    def ack(self, arrival: Arrival, state: bytes | None = None, drop: str | None = None) -> None:
        if self.inbox(arrival.name).ack(arrival):
            self.outbox.ack(arrival, state, drop)
            if drop is not None:
                self.calls.forget_scope(drop)

    def look_again(self, inbox: Inbox) -> None:
        for call in self.calls.receivers(inbox):
            call.look()

    def close(self, waits: tuple[WaitId, ...]) -> None:
        """Takes waits off the table with the next write; one of the same id may be opened in that very write."""
        found = tuple(wait for wait in waits if wait in self.on_file.waits)
        if found:
            self.outbox.put(Close(found))
            self.on_file.forget(found)

    def done(self, call: Call) -> None:
        """The call's outcome is given."""
        self.calls.remove(call)

    def _given_up(self, call: Call, future: asyncio.Future[Any]) -> None:
        """A branch was cancelled by the body itself: its wait claims nothing any more. A step in progress is
        finished and recorded all the same."""
        if not future.cancelled() or self.ended or call not in self.calls or call.executing:
            return
        self.replay.forget(call)
        self.calls.remove(call)
        self.close(call.waits())

    def block(self, why: Blocked, reason: str) -> None:
        if self._end_with is None:
            self._end_with = Block(why, reason)

    def block_undecodable(self, error: Undecodable) -> None:
        self.block(Blocked.UNDECODABLE, str(error))

    def _refused(self, error: NotDurable) -> None:
        self.block(Blocked.NOT_DURABLE, str(error))

    def _write(self) -> None:
        """One command with all that there is to write; nothing while one is in flight. A nudge meanwhile is kept:
        what is in flight may have been decided before it."""
        if self._writing or self.ended:
            return
        end = self._end()
        opened, self.calls.to_open = self.calls.to_open, {}
        self.outbox.open(opened)
        if isinstance(end, Park):
            self.outbox.close_unmet(self.on_file.waits, self.calls.waiting)
        wants = self.on_file.wants(self.calls.waiting)
        if end is None and not self.outbox and not self._look and not self.on_file.hungry(wants):
            return
        parts, documents, durable = self.outbox.take()
        self._writing, self._look = True, False
        advance = Advance(self.run.id, self.host.id, self.run.epoch, parts, end, wants)
        self._send(Writing(advance, documents, self.replay.last, durable))

    def _send(self, writing: Writing) -> None:
        self.host.submit(writing.command, lambda result: self._told(writing, result), writing.documents)

    def _end(self) -> End | None:
        """How the pass ends with this write, if it does."""
        busy = bool(self.calls.executing())
        if self._end_with is not None:
            return None if busy and not self._leaving else self._end_with
        if busy or self._body is None:
            return None
        if self._body.done():
            return self._finished(self._body)
        if self.replay.queued(placed_only=self.cancelling):
            return None
        if self.cancelling and (not self.calls or self._rejected >= REJECTIONS):
            return ending.forced(self.run)
        return Park(saw_cancel=self.cancelling) if self.calls else ending.deadlock()

    def _finished(self, body: asyncio.Task[Any]) -> End | None:
        """The body is done: its clean-up runs first, then the end is written."""
        end = ending.of_body(body, self.workflow, self.run)
        if self.on_end and self._hooks is None and not isinstance(end, (Release, Block)):
            self._hooks = self.host.spawn(ending.run_hooks(self.on_end, self.host, self.run))
            self._hooks.add_done_callback(lambda _: self.changed())
        return None if self._hooks is not None and not self._hooks.done() else end

    # --- what a write came to ---

    def _told(self, writing: Writing, result: Any) -> None:
        if self.ended:
            return
        if isinstance(result, Advanced):
            self._written(writing, result)
        elif isinstance(result, LeaseLost):
            self._drop()
        elif isinstance(result, LimitExceeded):
            self._writing = False
            self.outbox.clear()
            self._end_with = Block(Blocked.LIMIT, str(result))
            self._write()
        else:  # the store failed; the lease stands, and the same write is tried until it does not
            self.host.later(RETRY_WRITE_S, lambda: self._send(writing))

    def _written(self, writing: Writing, result: Advanced) -> None:
        self._writing = False
        self.replay.durable(writing.last)
        self.written_ms = result.now_ms
        self.run = result.run
        for future in writing.durable:
            if not future.done():
                future.set_result(None)
        if result.over:
            self._drop()
            return
        if isinstance(writing.command.end, Park):
            self._count_fruitless()
        self._learn(result)
        self.turn()

    def _count_fruitless(self) -> None:
        """Park was refused, so there is something on file; that the pass can't take it in is a fault of ours."""
        self._fruitless += 1
        if self._fruitless > FRUITLESS:
            self._fault(RuntimeError("park was refused again and again"))

    def _learn(self, result: Advanced) -> None:
        """News from the store: a cancel, waits settled, messages."""
        self.cancelling = self.run.cancelling or self.run.expiring
        if self.cancelling:
            for step in self.calls.executing():
                if step.interruptible:
                    step.interrupt()
        for wait in self.on_file.learn(result):
            call = self.calls.waiting.get(wait.id)
            if call is not None:
                call.settled(wait)
        for channel in result.pages:
            self.look_again(self.inbox(channel))
        self._set_timer(result.now_ms)

    def _set_timer(self, now_ms: int) -> None:
        """While the run is held, its own worker sees to its deadlines."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self.on_file.next_deadline_ms()
        if self.run.deadline_ms is not None and not self.cancelling:
            due_ms = self.run.deadline_ms if due_ms is None else min(due_ms, self.run.deadline_ms)
        if due_ms is not None:
            self._timer = self.host.later(max(0, due_ms - now_ms) / 1000, self.nudge)

    # --- letting go ---

    def _drop(self) -> None:
        """The latch first; then every open future gets Parked, and the body is unwound on its own loop."""
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        for call in self.calls:
            if isinstance(call, StepCall):
                call.interrupt()
        self.outbox.fail(Parked())
        forced = self.loop.unwind(self._raise_parked)
        if forced:
            LOG.warning("run %s: %s did not let go when it was unwound", self.run.id, ", ".join(forced))
        self.host.over(self)

    def _raise_parked(self) -> None:
        for call in self.calls.clear():
            if not call.future.done():
                call.future.set_exception(Parked())
                call.future.exception()  # not all of them have somebody who asks


async def _called(body: Callable[..., Any], run: Run[Any], args: tuple[Any, ...]) -> Any:
    return await body(run, *args)

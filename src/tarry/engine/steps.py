"""Steps: the only place for effects, recorded at most once by name (rules 3.4-3.7).

    intent (AT_MOST_ONCE) → attempt → recorded attempt, delay → … → recorded outcome → given to the body

A step's body runs on the worker's loop, or in its pool of threads if it is a plain function. Its value is what
the journal gives back: the first pass sees what a replay sees.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tarry.core import scopes
from tarry.core.codec import args_digest, decode_error, encode_error, return_type, typed
from tarry.core.commands import Open, Opening, Record
from tarry.core.retry import Retry
from tarry.engine.calls import Call
from tarry.engine.failures import rebuilt, with_state
from tarry.engine.frame import Frame, current
from tarry.errors import (
    BadInput,
    JournalMismatch,
    OutcomeUnknown,
    Parked,
    StepFailed,
    Undecodable,
)
from tarry.model import (
    Blocked,
    Entry,
    EntryId,
    EntryKind,
    Outcome,
    Safety,
    Wait,
    WaitId,
    WaitKind,
)

PARK_AFTER_MS = 5_000


@dataclass(frozen=True)
class StepOptions:
    """What `run.step` was asked beside name, function and arguments."""

    safety: Safety
    retry: Retry
    retry_on: tuple[type[BaseException], ...]
    timeout_ms: int | None
    returns: Any
    check: bool
    interruptible: bool
    errors: tuple[type[Exception], ...]


class Acking(Protocol):
    """What a step does with the message that it handles. In a fold its value is the new state, which stands for
    the record: `recorded` is False."""

    recorded: bool

    def commit(self, value: bytes) -> None: ...
    def given(self, value: Any) -> None: ...


class Result(NamedTuple):
    """What an attempt came to."""

    outcome: Outcome
    value: bytes | None
    error: BaseException | None = None


class StepCall(Call):
    """One step. `ack`: the message that it handles, acknowledged in the commit that records the step."""

    def __init__(
        self,
        frame: Frame,
        name: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        options: StepOptions,
        ack: Acking | None = None,
    ) -> None:
        super().__init__(frame, EntryId(EntryKind.STEP, frame.scope, name, 0), f"run.step({name!r})")
        self.name = name
        self.safety = options.safety
        self.attempt = 1
        self._fn = fn
        self._args = args
        self._options = options
        self._digest = args_digest(args) if options.check else None
        self._codec = typed(return_type(fn, options.returns))
        self._ack = ack
        self._entry: Entry | None = None
        self._task: asyncio.Task[None] | None = None
        self._retry_wait: Wait | None = None
        self.nested: set[Call] = set()

    @property
    def key(self) -> str:
        return f"{self.turn.run.id}/{self.frame.scope}{self.name}"

    @property
    def executing(self) -> bool:
        """In flight, and not merely suspended: in a nested wait, or in a delay that is on file."""
        return self._task is not None and not (self.nested or self._retry_wait)

    # --- meeting it ---

    def meet(self) -> None:
        self.turn.calls.use_name(self.id, "step")
        self._entry = self.turn.replay.recorded(self.id)
        if self._entry is None:
            self._go_on()
        elif self._digest is not None and self._entry.digest not in (None, self._digest):
            self.turn.block(Blocked.CHANGED_CODE, str(JournalMismatch(step=self.name)))
        elif self._entry.outcome is Outcome.UNKNOWN:
            self._meet_resolution(self._entry)
        else:
            self.turn.replay.placed(self._entry.no, self)

    def _meet_resolution(self, unknown: Entry) -> None:
        """An outcome that was unknown: what an operator, or a repetition that one asked for, has made of it."""
        resolutions = self.turn.replay.attempts(self.frame.scope, self.name, EntryKind.RESOLVE)
        last = resolutions[-1] if resolutions else unknown
        intents = self.turn.replay.attempts(self.frame.scope, self.name, EntryKind.INTENT)
        redo = last is not unknown and last.outcome is Outcome.UNKNOWN
        if redo and not any(intent.no > last.no for intent in intents):
            self.attempt = len(intents) + 1
            self._start()
            return
        self._entry = last
        self.turn.replay.placed(unknown.no, self)

    def _go_on(self) -> None:
        """No outcome on file: the first attempt, or the one after those that are."""
        if self.turn.cancelling:
            return
        attempts = self.turn.replay.attempts(self.frame.scope, self.name, EntryKind.ATTEMPT)
        intents = self.turn.replay.attempts(self.frame.scope, self.name, EntryKind.INTENT)
        self.attempt = len(attempts) + 1
        if len(intents) > len(attempts):
            self._finish(Result(Outcome.UNKNOWN, _reason("the worker was lost during the attempt")))
        elif attempts:
            self.attempt = len(attempts)
            self._delay_until(json.loads(attempts[-1].value or b"{}")["next_ms"])
        else:
            self._start()

    @property
    def recorded(self) -> bool:
        """Whether an outcome is in the journal, or on its way there."""
        return self._entry is not None

    def _start(self) -> None:
        self.turn.calls.detach(self)
        self._retry_wait = None
        self._task = self.turn.host.spawn(self._drive())

    # --- attempts, on the worker's loop ---

    async def _drive(self) -> None:
        try:
            while True:
                if self.safety is Safety.AT_MOST_ONCE:
                    await self._write(EntryKind.INTENT, Outcome.OK, b"{}")
                result = await self._attempt()
                delay_ms = self._delay(result)
                if delay_ms is None:
                    break
                next_ms = await self._write_attempt(result, delay_ms)
                if delay_ms > PARK_AFTER_MS:
                    return self._delay_until(next_ms)
                await self.turn.host.sleep(delay_ms / 1000)
                self.attempt += 1
        except Parked:
            return
        self._finish(result)

    async def _attempt(self) -> Result:
        scope = scopes.of_step(self.frame.scope, self.name)
        self.turn.calls.forget_scope(scope)  # each attempt begins anew, and answers from what is journaled
        token = current.set(Frame(self.turn, scope, self))
        try:
            value = await self._limited()
        except Parked:
            raise
        except asyncio.CancelledError as error:
            return self._interrupted(error)
        except BaseException as error:
            return self._failed(error)
        finally:
            current.reset(token)
        return self._encoded(value)

    async def _limited(self) -> Any:
        if self._options.timeout_ms is None:
            return await self._called()
        async with asyncio.timeout(self._options.timeout_ms / 1000):
            return await self._called()

    async def _called(self) -> Any:
        if inspect.iscoroutinefunction(self._fn):
            return await self._fn(*self._args)
        value = await self.turn.host.call(self._fn, *self._args)
        return await value if inspect.isawaitable(value) else value

    def _encoded(self, value: Any) -> Result:
        """A value that cannot be stored is the step's failure, once, and is not produced again (rule 13)."""
        try:
            return Result(Outcome.OK, self._codec.encode(value))
        except BadInput as error:
            return Result(Outcome.FAILED, encode_error(error))

    def _failed(self, error: BaseException) -> Result:
        timed_out = isinstance(error, TimeoutError) and self._options.timeout_ms is not None
        if self.safety is Safety.AT_MOST_ONCE and timed_out:
            return Result(Outcome.UNKNOWN, _reason("it ran into its timeout"))
        return Result(Outcome.FAILED, with_state(error, self._options.errors), error)

    def _interrupted(self, error: asyncio.CancelledError) -> Result:
        if self.turn.ended:
            raise Parked from None
        if self.safety is Safety.AT_MOST_ONCE:
            return Result(Outcome.UNKNOWN, _reason("it was interrupted"))
        return Result(Outcome.FAILED, encode_error(error), error)

    def _delay(self, result: Result) -> int | None:
        """How long until the next attempt; None: this one decides. An AT_MOST_ONCE step is tried again only after
        an exception of which its author says that nothing was done."""
        if result.outcome is not Outcome.FAILED or result.error is None or self.turn.cancelling:
            return None
        safe = isinstance(result.error, self._options.retry_on or BaseException)
        if not safe or (self.safety is Safety.AT_MOST_ONCE and not self._options.retry_on):
            return None
        return self._options.retry.delay_ms(self.attempt, self.key)

    async def _write_attempt(self, result: Result, delay_ms: int) -> int:
        next_ms = self.turn.now_ms() + delay_ms
        record = decode_error(result.value or b"")
        text = {"next_ms": next_ms, "error": f"{record.type}: {record.message}"[:500]}
        await self._write(EntryKind.ATTEMPT, Outcome.FAILED, json.dumps(text).encode())
        return next_ms

    async def _write(self, kind: EntryKind, outcome: Outcome, value: bytes) -> None:
        number = self.turn.replay.next_number()
        round = number if kind is EntryKind.INTENT else self.attempt
        entry = Entry(self.turn.run.id, number, kind, self.frame.scope, self.name, round, outcome, value)
        await self.turn.written(entry)

    # --- a delay between attempts: beyond five seconds the run is let go ---

    def _delay_until(self, next_ms: int) -> None:
        """Attempt number `self.attempt` has failed; the next one is due then."""
        scope, name = self.frame.scope, self.name
        spec = Wait(self.turn.run.id, WaitKind.RETRY, scope, name, self.attempt, deadline_ms=next_ms)
        on_file = self.turn.on_file.waits.get(spec.id)
        if next_ms <= self.turn.now_ms() or (on_file is not None and on_file.outcome is not None):
            self.attempt += 1
            self._start()
            return
        self._retry_wait = spec
        self._task = None
        self.turn.attach(self)
        self.turn.changed()

    def waits(self) -> tuple[WaitId, ...]:
        return () if self._retry_wait is None else (self._retry_wait.id,)

    def opening(self) -> Open:
        assert self._retry_wait is not None
        return Open((Opening(self._retry_wait, until_ms=self._retry_wait.deadline_ms),))

    def settled(self, wait: Wait) -> None:
        if self._retry_wait is not None and wait.id == self._retry_wait.id and wait.outcome is not None:
            self.attempt += 1
            self._start()

    # --- the outcome ---

    def _finish(self, result: Result) -> None:
        """Records the outcome; it is given to the body when it is durable."""
        self._task = None
        number = self.turn.replay.next_number()
        kind, round = (EntryKind.STEP, 0) if self._entry is None else (EntryKind.RESOLVE, number)
        entry = Entry(
            self.turn.run.id,
            number,
            kind,
            self.frame.scope,
            self.name,
            round,
            result.outcome,
            result.value,
            self._digest,
        )
        self._entry = entry
        acks = self._ack if result.outcome is Outcome.OK else None
        if acks is None or acks.recorded:
            self.turn.put(Record(entry))
        if acks is not None:
            acks.commit(result.value or b"null")
        self.turn.replay.placed(number, self)
        self.turn.changed()

    def give(self) -> None:
        assert self._entry is not None
        entry = self._entry
        if entry.outcome is Outcome.OK:
            self._give_value(entry)
        elif entry.outcome is Outcome.UNKNOWN:
            reason = json.loads(entry.value or b"{}").get("reason", "")
            self.reject(OutcomeUnknown(step=self.name, run_id=self.turn.run.id, reason=reason))
        else:
            self._give_failure(entry)

    def _give_value(self, entry: Entry) -> None:
        try:
            value = self._codec.decode(entry.value or b"null")
        except Undecodable as error:
            self.turn.block_undecodable(error)
            return
        if self._ack is not None:
            self._ack.given(value)
        self.resolve(value)

    def _give_failure(self, entry: Entry) -> None:
        error = rebuilt(entry.value or b"", self._options.errors)
        if error is None:
            record = decode_error(entry.value or b"")
            error = StepFailed(
                step=self.name,
                type=record.type,
                message=record.message,
                traceback=record.traceback,
                mro=record.mro,
                entry=entry.no,
            )
        self.reject(error)

    def interrupt(self) -> None:
        """The pass is over, or the run is being cancelled and the step is interruptible."""
        if self._task is not None:
            self._task.cancel()

    @property
    def interruptible(self) -> bool:
        return self._options.interruptible


def _reason(text: str) -> bytes:
    return json.dumps({"reason": text}).encode()

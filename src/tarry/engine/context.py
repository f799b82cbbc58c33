"""What a workflow sees: its `Run`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVarTuple, overload
from uuid import UUID

from typing_extensions import TypeVar

from tarry.core.durations import at_least_zero_ms, duration_ms, from_ms, instant_ms
from tarry.core.names import check_key, check_name
from tarry.core.retry import Duration, Retry, policy
from tarry.engine.channels import Fold, Message, Messages, ReceiveCall
from tarry.engine.durable import Durable
from tarry.engine.frame import frame
from tarry.engine.names import Channel, Signal
from tarry.engine.now import NowCall
from tarry.engine.steps import StepCall, StepOptions
from tarry.engine.waits import WaitCall, channel_member, signal_member, timer_member
from tarry.errors import NotOldest
from tarry.model import Safety

if TYPE_CHECKING:
    from tarry.engine.resume import Pass

S = TypeVar("S", default=Any)
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Ts = TypeVarTuple("Ts")


class Run(Generic[S]):
    """One execution, as its workflow sees it. `state` is what queries see; `S` is its type."""

    state: S

    def __init__(self, turn: Pass) -> None:
        self._turn = turn
        self.log = logging.LoggerAdapter(
            logging.getLogger("tarry.run"), {"run": turn.run.id, "workflow": turn.run.workflow}
        )

    @property
    def id(self) -> str:
        return self._turn.run.id

    @property
    def workflow(self) -> str:
        return self._turn.run.workflow

    @property
    def tags(self) -> dict[str, str]:
        return dict(self._turn.run.tags)

    @property
    def parking(self) -> bool:
        """True while the body is unwound because the run pauses: what runs now is not the end (rule 3.8)."""
        return self._turn.ended

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Coroutine[Any, Any, R]],
        *args: *Ts,
        key: str | None = None,
        safety: Safety = Safety.IDEMPOTENT,
        retries: int | Retry | None = None,
        retry_on: Sequence[type[BaseException]] = (),
        timeout: Duration | None = None,
        returns: Any = None,
        check: bool = True,
        interruptible: bool = False,
        errors: Sequence[type[Exception]] = (),
    ) -> Durable[R]: ...
    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], R],
        *args: *Ts,
        key: str | None = None,
        safety: Safety = Safety.IDEMPOTENT,
        retries: int | Retry | None = None,
        retry_on: Sequence[type[BaseException]] = (),
        timeout: Duration | None = None,
        returns: Any = None,
        check: bool = True,
        interruptible: bool = False,
        errors: Sequence[type[Exception]] = (),
    ) -> Durable[R]: ...
    def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        key: str | None = None,
        safety: Safety = Safety.IDEMPOTENT,
        retries: int | Retry | None = None,
        retry_on: Sequence[type[BaseException]] = (),
        timeout: Duration | None = None,
        returns: Any = None,
        check: bool = True,
        interruptible: bool = False,
        errors: Sequence[type[Exception]] = (),
    ) -> Durable[Any]:
        """Calls `fn(*args)` once and records its outcome by name; a replay gets the record (rules 3.4-3.7).

        `key` tells calls of one name apart. `safety`: what a crash between doing and recording may cost; with
        AT_MOST_ONCE only an exception listed in `retry_on` is tried again. `retries`: how many more times, or a
        `Retry`. `timeout`: per attempt. `returns`: the value's type, else the function's annotation. `check`:
        changed arguments block the run. `interruptible`: a cancel does not wait for it. `errors`: exceptions that
        come back as themselves; others as StepFailed. Raises OutcomeUnknown, NameReused.
        """
        title = check_name("step", name) if key is None else f"{check_name('step', name)}:{check_key(key)}"
        options = StepOptions(
            safety,
            policy(retries),
            tuple(retry_on),
            None if timeout is None else duration_ms(timeout),
            returns,
            check,
            interruptible,
            (*errors, *self._turn.workflow.errors),
        )
        return Durable(
            self._turn,
            f"run.step({name!r})",
            lambda frame: self._turn.begin(StepCall(frame, title, fn, args, options)),
        )

    def wait(self, signal: Signal[T], *, timeout: Duration | None = None, until: datetime | None = None) -> Durable[T]:
        """Pauses until the signal is there, and returns its payload (rules 4.1-4.13). `timeout` from when the wait
        is first met, or `until` an instant; then WaitTimeout."""
        member = signal_member(signal, _timeout(timeout), _until(until))
        return Durable(
            self._turn,
            f"run.wait({signal.name!r})",
            lambda frame: self._turn.begin(WaitCall(frame, [member])),
            member,
        )

    def sleep(self, name: str, duration: Duration) -> Durable[None]:
        """Pauses for a time; what is overdue when the run is recovered fires at once (rule 6.1)."""
        member = timer_member(name, at_least_zero_ms(duration), None)
        return Durable(
            self._turn,
            f"run.sleep({name!r})",
            lambda frame: self._turn.begin(WaitCall(frame, [member])),
            member,
        )

    def sleep_until(self, name: str, when: datetime) -> Durable[None]:
        """Pauses until an instant, which needs a time zone (rule 6.1)."""
        member = timer_member(name, None, instant_ms(when))
        return Durable(
            self._turn,
            f"run.sleep_until({name!r})",
            lambda frame: self._turn.begin(WaitCall(frame, [member])),
            member,
        )

    def receive(self, channel: Channel[T]) -> Durable[Message[T]]:
        """The next message of a channel (rule 5.2): ack it before the next receive. Raises ChannelClosed when the
        channel is closed and read to its end, NotAcked, NotOldest."""
        member = channel_member(channel)
        return Durable(
            self._turn,
            f"run.receive({channel.name!r})",
            lambda frame: self._turn.begin(ReceiveCall(frame, channel, journaled=frame.step is None)),
            member,
        )

    def messages(self, channel: Channel[T]) -> Messages[T]:
        """`async for message in run.messages(channel)`: until the channel is closed (rule 5.2)."""
        return Messages(channel, self.receive)

    def fold(self, channel: Channel[T], initial: R, *, state_type: Any = None) -> Fold[T, R]:
        """A running total over a channel: state and ack commit together (rule 5.3)."""
        here = frame("run.fold")
        return Fold(here, channel, initial, type(initial) if state_type is None else state_type)

    async def ack(self, channel: Channel[Any], key: str) -> None:
        """Acknowledges a message of which only the key is at hand (rule 5.2)."""
        self._turn.check_open()
        inbox = self._turn.inbox(channel.name)
        message = inbox.taken(key)
        if message is None:
            raise NotOldest(key=key, channel=channel.name, oldest="the next one received")
        self._turn.ack(message)

    @overload
    def first(
        self, name: str, a: Durable[A], b: Durable[B], /
    ) -> Durable[tuple[Literal[0], A] | tuple[Literal[1], B]]: ...
    @overload
    def first(
        self, name: str, a: Durable[A], b: Durable[B], c: Durable[C], /
    ) -> Durable[tuple[Literal[0], A] | tuple[Literal[1], B] | tuple[Literal[2], C]]: ...
    @overload
    def first(
        self, name: str, a: Durable[A], b: Durable[B], c: Durable[C], d: Durable[D], /
    ) -> Durable[tuple[Literal[0], A] | tuple[Literal[1], B] | tuple[Literal[2], C] | tuple[Literal[3], D]]: ...
    @overload
    def first(self, name: str, /, *waits: Durable[Any]) -> Durable[tuple[int, Any]]: ...
    def first(self, name: str, /, *waits: Durable[Any]) -> Durable[Any]:
        """(index, value) of the wait that is answered first; the others are closed in the same transaction
        (rule 4.9)."""
        members = [wait.taken() for wait in waits]
        if not members or None in members:
            raise TypeError("run.first takes run.wait, run.receive, run.sleep and run.sleep_until")
        return Durable(
            self._turn,
            f"run.first({name!r})",
            lambda frame: self._turn.begin(WaitCall(frame, members, group=name)),
        )

    async def now(self, name: str) -> datetime:
        """The store's clock, read once by name (rule 3.10)."""
        at_ms: int = await Durable(
            self._turn, f"run.now({name!r})", lambda frame: self._turn.begin(NowCall(frame, check_name("name", name)))
        )
        return from_ms(at_ms)

    def uuid(self, name: str) -> UUID:
        """A UUID that is the same in every pass; another name gives another one (rule 3.10)."""
        return UUID(bytes=self._derived("uuid", name, 16), version=4)

    def random(self, name: str) -> float:
        """A number from 0 up to 1 that is the same in every pass (rule 3.10)."""
        return int.from_bytes(self._derived("random", name, 8)) / 2**64

    def _derived(self, kind: str, name: str, size: int) -> bytes:
        run = self._turn.run
        seed = f"{run.id}\0{run.created_ms}\0{kind}\0{check_name('name', name)}"
        return blake2b(seed.encode(), digest_size=size).digest()

    def on_end(self, fn: Callable[[], Any]) -> None:
        """Calls `fn`, sync or async, when the run ends, however it ends: the place for clean-up, since `finally`
        runs at every pause too (rule 3.8)."""
        self._turn.on_end.append(fn)


def current_run() -> Run[Any]:
    """The run that this code executes in; NotInRun outside of one (rule 3.11)."""
    return Run(frame("tarry.current_run()").turn)


def _timeout(timeout: Duration | None) -> int | None:
    return None if timeout is None else duration_ms(timeout)


def _until(until: datetime | None) -> int | None:
    return None if until is None else instant_ms(until)

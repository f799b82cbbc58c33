"""One body for all trees: it interprets the tree of its seed and tells the oracle all that it is given.

What it tells is beside the journal, so that a fault of the engine cannot hide itself. It tells nothing while
it is unwound (`run.parking`): what a body does then counts for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Annotated, Any, Protocol, cast

from pydantic import AfterValidator

from tarry.core.retry import Retry
from tarry.engine.channels import Message
from tarry.engine.context import Run
from tarry.engine.frame import current_step, frame
from tarry.engine.names import Channel, Signal
from tarry.engine.workflow import Registry, workflow
from tarry.errors import ChannelClosed, StepFailed, WaitTimeout
from tarry.model import Safety
from tarry.testing.sim.trees import Both, Drop, First, Loop, Node, Now, Step, Timer, Wait, tree

R = Run[Any]


class Observer(Protocol):
    """Where a body tells what happens to it."""

    def took(self, run_id: str, epoch: int, label: str, what: str) -> None: ...
    def outcome(self, run_id: str, epoch: int, label: str, name: str, what: str, payload: object) -> None: ...
    def received(self, run_id: str, epoch: int, message: Message[Any], fold: bool) -> None: ...
    def acked(self, run_id: str, epoch: int, message: Message[Any]) -> None: ...
    def effect(self, run_id: str, epoch: int, step: str, key: str, attempt: int, once: bool) -> None: ...
    def done(self, run_id: str, epoch: int, step: str, key: str, attempt: int) -> None: ...


OBSERVER: ContextVar[Observer] = ContextVar("tarry_sim_observer")


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("odd")
    return number


Even = Annotated[int, AfterValidator(_even)]
"""A type of which the schema lets more pass than the type does (rule 4.6)."""

SIGNAL: dict[str, Signal[Any]] = {
    "a": Signal("a", int),
    "b": Signal("b", Even),  # type: ignore[arg-type]
    "c": Signal("c"),
    "d": Signal("d", int, late="keep"),
}
CHANNEL: dict[str, Channel[Any]] = {
    "x1": Channel("x1", int),
    "x2": Channel("x2", Even),  # type: ignore[arg-type]
    "x3": Channel("x3"),
}
SOON = Retry(attempts=3, first="10ms", factor=2, jitter=0)
LATER = Retry(attempts=3, first="6s", factor=2, jitter=0)


class Body:
    """One pass of one run over its tree."""

    def __init__(self, run: R) -> None:
        self.run = run
        self.epoch = frame("a body").turn.run.epoch
        self.told = OBSERVER.get()

    def take(self, label: str, what: str) -> None:
        if not self.run.parking:
            self.told.took(self.run.id, self.epoch, label, what)

    def outcome(self, label: str, name: str, what: str, payload: object = None) -> None:
        if not self.run.parking:
            self.told.outcome(self.run.id, self.epoch, label, name, what, payload)

    async def nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            await _DO[type(node)](self, node)

    # --- waits ---

    async def wait(self, node: Wait) -> None:
        try:
            for i in range(node.times):
                if await self.one_wait(f"{node.label}.{i}", node.name, node.timeout_ms):
                    return
        except BaseException:  # what no body should do, and some will
            if not node.swallow or not self.run.parking:
                raise

    async def one_wait(self, label: str, name: str, timeout_ms: int | None) -> bool:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        try:
            payload = await self.run.wait(SIGNAL[name], timeout=timeout)
        except WaitTimeout:
            self.outcome(label, name, "timeout")
            return False
        self.outcome(label, name, "payload", payload)
        return True

    async def timer(self, node: Timer) -> None:
        await self.run.sleep(node.label, node.ms / 1000)
        self.take(node.label, "fired")

    async def now(self, node: Now) -> None:
        at = await self.run.now(node.label)
        self.take(node.label, at.isoformat())

    async def first(self, node: First) -> None:
        waits: list[Any] = [self.run.wait(SIGNAL[name]) for name in node.names]
        waits += [self.run.receive(CHANNEL[name]) for name in node.channels]
        waits += [self.run.sleep(f"{node.label}.{ms}", ms / 1000) for ms in node.timers]
        index, value = await self.run.first(node.label, *waits)
        if index < len(node.names):
            self.outcome(f"{node.label}[{index}]", node.names[index], "payload", value)
        elif isinstance(value, Message):
            await self.message(node.label, cast("Message[Any]", value))
        else:
            self.take(node.label, f"timer {index}")

    async def drop(self, node: Drop) -> None:
        task = asyncio.create_task(self.one_wait(node.label, node.name, None))
        await asyncio.sleep(0)
        await self.step(Step(f"{node.label}s", "ok"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    # --- channels ---

    async def message(self, label: str, message: Message[Any], *, fold: bool = False) -> None:
        self.receive(label, message, fold)
        await message.ack()
        self.ack(message)

    def receive(self, label: str, message: Message[Any], fold: bool) -> None:
        if not self.run.parking:
            self.told.received(self.run.id, self.epoch, message, fold)
            if not fold:
                self.take(label, f"message {message.number}")

    def ack(self, message: Message[Any]) -> None:
        if not self.run.parking:
            self.told.acked(self.run.id, self.epoch, message)

    async def loop(self, node: Loop) -> None:
        await _LOOPS[node.style](self, node, CHANNEL[node.channel])

    async def plain(self, node: Loop, channel: Channel[Any]) -> None:
        seen = 0
        async for message in self.run.messages(channel):
            await self.message(node.label, message)
            seen += 1
            if seen == node.count:
                return
        self.take(node.label, "closed")

    async def receives(self, node: Loop, channel: Channel[Any]) -> None:
        for i in range(node.count):
            try:
                message = await self.run.receive(channel)
            except ChannelClosed:
                self.take(node.label, "closed")
                return
            self.receive(node.label, message, False)
            await self.step(Step(f"{node.label}m{i}", "slow"))
            await self.run.ack(channel, message.key)
            self.ack(message)

    async def handle(self, node: Loop, channel: Channel[Any]) -> None:
        seen = 0
        async for message in self.run.messages(channel):
            self.receive(node.label, message, False)
            value = await message.handle(f"{node.label}h", self.act(node.label, "slow"))
            self.ack(message)
            self.take(node.label, f"handled {value}")
            seen += 1
            if seen == node.count:
                return

    async def fold(self, node: Loop, channel: Channel[Any]) -> None:
        fold = self.run.fold(channel, 0)
        if fold.state >= node.count:
            return
        async for message in fold:
            self.receive(node.label, message, True)
            await self.step(Step(f"{node.label}f", "slow"), quiet=True)
            await message.ack(fold.state + 1)
            self.ack(message)
            if fold.state >= node.count:
                return

    async def fold_handle(self, node: Loop, channel: Channel[Any]) -> None:
        fold = self.run.fold(channel, 0)
        if fold.state >= node.count:
            return
        async for message in fold:
            self.receive(node.label, message, True)
            await message.handle(f"{node.label}h", self.counting(fold.state))
            self.ack(message)
            if fold.state >= node.count:
                return

    async def inside(self, node: Loop, channel: Channel[Any]) -> None:
        """The oldest unacked message, taken inside a retry-safe step."""

        async def read() -> int:
            self.act_begins(once=False)
            try:
                message = await self.run.receive(channel)
            except ChannelClosed:
                self.act_ends()
                return 0
            await message.ack()
            self.act_ends()
            return message.number

        for i in range(node.count):
            number = await self.run.step(f"{node.label}i{i}", read)
            self.take(node.label, f"inside {number}")

    # --- steps ---

    def act_begins(self, *, once: bool) -> None:
        step = current_step()
        self.told.effect(self.run.id, self.epoch, step.name, step.key, step.attempt, once)

    def act_ends(self) -> None:
        step = current_step()
        self.told.done(self.run.id, self.epoch, step.name, step.key, step.attempt)

    def act(self, label: str, mode: str) -> Callable[[], Awaitable[int]]:
        """The effect of a step, in the outside world."""

        async def effect() -> int:
            self.act_begins(once=mode.startswith("once"))
            attempt = current_step().attempt
            if mode.endswith("slow"):
                await asyncio.sleep(0.3)
            if mode == "nested":
                await self.one_wait(f"{label}/", "c", None)
            if mode == "inner":
                await self.run.sleep("inner", 0.05)
                await self.run.step("inner", self.act(f"{label}/inner", "slow"))
            if mode == "fail" or (mode in ("flaky", "patient") and attempt < 3):
                raise ValueError(mode)
            self.act_ends()
            return attempt

        return effect

    def counting(self, state: int) -> Callable[[], Awaitable[int]]:
        async def effect() -> int:
            await self.act("", "slow")()
            return state + 1

        return effect

    async def step(self, node: Step, *, quiet: bool = False) -> None:
        try:
            value = await self.run.step(node.label, self.body_of(node), **_OPTIONS.get(node.mode, {}))
        except StepFailed as error:
            value = error.fields["message"]
        if not quiet:
            self.take(node.label, f"step {'done' if node.mode in _VARIES else value}")

    def body_of(self, node: Step) -> Callable[[], Any]:
        if node.mode != "sync":
            return self.act(node.label, node.mode)

        def effect() -> int:
            self.act_begins(once=False)
            self.act_ends()
            return 1

        return effect

    # --- branches ---

    async def both(self, node: Both) -> None:
        if node.style in ("event", "queue"):
            await self.handed(node)
        elif node.style == "gather":
            await asyncio.gather(*(self.nodes(branch) for branch in node.branches))
        else:
            async with asyncio.TaskGroup() as group:
                for branch in node.branches:
                    group.create_task(self.nodes(branch))
        self.take(node.label, "joined")

    async def handed(self, node: Both) -> None:
        """The second branch goes on when the first is done."""
        event, queue = asyncio.Event(), asyncio.Queue[int]()

        async def giver() -> None:
            await self.nodes(node.branches[0])
            event.set()
            queue.put_nowait(1)

        async def taker() -> None:
            await (event.wait() if node.style == "event" else queue.get())
            await self.nodes(node.branches[1])

        await asyncio.gather(giver(), taker())


_VARIES = ("once", "once_slow")
_OPTIONS: dict[str, dict[str, Any]] = {
    "flaky": {"retries": SOON},
    "patient": {"retries": LATER},
    "once": {"safety": Safety.AT_MOST_ONCE},
    "once_slow": {"safety": Safety.AT_MOST_ONCE},
}
_DO: dict[type, Callable[[Body, Any], Awaitable[None]]] = {
    Step: Body.step,
    Wait: Body.wait,
    Timer: Body.timer,
    First: Body.first,
    Loop: Body.loop,
    Both: Body.both,
    Drop: Body.drop,
    Now: Body.now,
}
_LOOPS: dict[str, Callable[[Body, Loop, Channel[Any]], Awaitable[None]]] = {
    "plain": Body.plain,
    "receive": Body.receives,
    "handle": Body.handle,
    "fold": Body.fold,
    "fold_handle": Body.fold_handle,
    "inside": Body.inside,
}


async def grow(run: R, seed: int) -> str:
    await Body(run).nodes(tree(seed))
    return "done"


def registry() -> Registry:
    """Two workflows with one body: one declares what it accepts, the other does not."""
    made = Registry()
    made.add(workflow(grow, name="open"))
    made.add(workflow(_strict, name="strict", accepts=[*SIGNAL.values(), *CHANNEL.values()]))
    return made


async def _strict(run: R, seed: int) -> str:
    return await grow(run, seed)


REGISTRY = registry()

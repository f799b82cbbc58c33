"""The event loop of one run: a ready queue, tasks and futures, and nothing else.

A run's body lives on a loop of its own. It has no selector, no timers and no threads, so it cannot move by
itself: its owner, the worker's loop, pumps it, and each pump runs it until its ready queue is empty. That
makes "quiescent" exact (rule 3.8), and it makes a pass repeatable (rule 3.2): what the body does between two
outcomes depends on nothing but those outcomes. Whatever would break that is refused at the call, and the
engine is told first, for a refusal counts even where the body swallows it (rule 3.13).

Invariants:
- While a pump runs, this loop is the running loop of its thread, with async-generator hooks of its own;
  before and after, the worker's are. No exception of the body leaves a pump, not even SystemExit.
- Tasks are held here until they are done, not by the collector's leave, so that none vanishes half-way.
- After `unwind` nothing of the run runs again, not through the garbage collector either, which would run
  the body's handlers inside another run's turn.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import events, tasks
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context
from threading import get_ident
from types import AsyncGeneratorType
from typing import Any, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from tarry.engine import order
from tarry.engine.order import Body, RunFuture, RunTask
from tarry.engine.refused import PAUSE, STEP, refuse, refuse_the_rest
from tarry.engine.unwind import unwind
from tarry.errors import NotDurable

H = TypeVar("H", bound=asyncio.Handle)
Ts = TypeVarTuple("Ts")
AsyncGenerator = AsyncGeneratorType[Any, Any]
ExceptionHandler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


@refuse_the_rest
class RunLoop(asyncio.AbstractEventLoop):
    """The loop of one pass over one run.

    `on_refused` hears of each refusal, on whichever thread it happens. `seed` is a number that is the run's
    own in every pass: it keeps the tasks of many runs apart in the sets and maps that all of them share, as
    asyncio's set of all tasks is.
    """

    def __init__(self, context: Context, on_refused: Callable[[NotDurable], None], *, seed: int = 0) -> None:
        # An adapter's leave to run executor calls at once, inside the turn.
        self.inline_executor = False
        # Failures that nobody retrieved by the end of the pass, or before the collector came: for logs only.
        self.unhandled: list[BaseException] = []
        self._context = context
        self._on_refused = on_refused
        self._thread = get_ident()
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[RunTask] = []
        self._prune_at = 16
        self._generators: WeakKeyDictionary[AsyncGenerator, None] | None = None
        self._together: dict[object, RunTask] = {}
        self._first = self._last = (seed & 0xFFFFFFFF) << 24
        self._exception_handler: ExceptionHandler | None = None
        self._debug = self._turning = self._unwinding = self._closed = False

    # What the owner calls.

    @property
    def idle(self) -> bool:
        """Nothing can go on until an outcome is given back."""
        return not self._ready

    def spawn(self, coro: Body, name: str | None = None) -> RunTask:
        """Starts the body, in the context that the loop was made with."""
        return self.create_task(coro, name=name, context=self._context)

    def pump(self, limit: int = 100_000) -> None:
        """Runs the body until it is quiescent; raises NotDurable if it is not after `limit` callbacks."""
        if self._turning:
            raise RuntimeError("This event loop is already running")
        outer, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        task = None if outer is None else asyncio.current_task(outer)
        if outer is not None and task is not None:
            tasks._leave_task(outer, task)  # from Python 3.14 a thread has one current task for all its loops
        self._turning = True
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(self._generator_begun, self._generator_dropped)
        try:
            self._drain(limit)
        finally:
            self._turning = False
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(outer)
            if outer is not None:
                asyncio.set_event_loop(outer)  # frameworks set the loop that they find running
                if task is not None:
                    tasks._enter_task(outer, task)

    def live_tasks(self) -> list[RunTask]:
        """The tasks that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def unwind(self, raise_in: Callable[[], None] | None = None, rounds: int = 16) -> list[str]:
        """Ends whatever is left of the pass and closes the loop; returns what ended only by force.

        `raise_in` puts an exception into each future that the engine holds open. What waits for something
        else is cancelled, generators are closed, and what has not ended after `rounds` is closed by force.
        Nothing that happens here is a refusal or a failure of the run: its pass is over.
        """
        self.unhandled += [error for task in self._tasks if task.unretrieved and (error := task.exception())]
        self._unwinding = True
        forced = unwind(self, raise_in, rounds)
        self.close()
        return forced

    # What asyncio and the body call.

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self._queue(asyncio.Handle(callback, args, self, self._context_for(context)))

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if not self._turning:
            raise self.refusal("a callback from outside the run", STEP)
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if not delay <= 0:
            refuse(self, "call_later")
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if not when <= self.time():
            refuse(self, "call_at")
        return self._queue(asyncio.TimerHandle(when, callback, args, self, self._context_for(context)))

    def time(self) -> float:
        """Stands still for the pass: the store's clock is `await run.now(name)`."""
        return 0.0

    def create_future(self) -> RunFuture:
        future = RunFuture(loop=self)
        self._last += 1
        future.number = self._last
        return future

    def create_task(
        self,
        coro: Body,
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> RunTask:
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if caller.f_code is order.ENSURE_FUTURE and (given := order.given_together(caller)):
            return self._made_together(coro, given)
        return self._new_task(coro, name, context, eager_start)

    def run_in_executor(self, executor: object, func: Callable[[*Ts], Any], *args: *Ts) -> RunFuture:
        if not self.inline_executor:
            refuse(self, "run_in_executor")
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._unwinding:
            return None
        handler = self._exception_handler if self._turning else None  # the collector calls at any time
        if handler is None:
            return self.default_exception_handler(context)
        try:
            handler(self, context)
        except BaseException as error:
            self.unhandled.append(error)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.unhandled.append(context.get("exception") or RuntimeError(context["message"]))

    def get_exception_handler(self) -> ExceptionHandler | None:
        return self._exception_handler

    def set_exception_handler(self, handler: ExceptionHandler | None) -> None:
        self._exception_handler = handler

    def get_task_factory(self) -> None:
        return None

    def set_task_factory(self, factory: object) -> None:
        if factory is not None:  # its tasks would hash by address
            refuse(self, "set_task_factory")

    async def shutdown_asyncgens(self) -> None:
        closing = [generator.aclose() for generator in self.open_generators()]
        await asyncio.gather(*closing, return_exceptions=True)

    def get_debug(self) -> bool:
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        self._debug = enabled

    def is_running(self) -> bool:
        return self._turning

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        if self._turning:
            raise RuntimeError("Cannot close a running event loop")
        self._closed = self._unwinding = True
        self._ready.clear()
        self._tasks.clear()
        self._together.clear()

    def refusal(self, call: str, instead: str) -> NotDurable:
        """The error to raise for a call of the body, after the engine has been told of it."""
        error = NotDurable(call=call, instead=instead)
        if not self._unwinding:
            self._on_refused(error)
        return error

    # One turn.

    def _drain(self, limit: int) -> None:
        ready = self._ready
        for _ in range(limit):
            if not ready:
                return
            handle = ready.popleft()
            if handle.cancelled():
                continue
            try:
                handle._run()
            except (KeyboardInterrupt, SystemExit) as stop:
                # A task has it as its own exception too: asyncio re-raises these to stop the whole loop.
                if not isinstance(_owner(handle), asyncio.Task):
                    self.unhandled.append(stop)
        if ready:
            raise self.refusal("a loop that never waits", PAUSE)

    def _queue(self, handle: H) -> H:
        if get_ident() != self._thread:
            raise self.refusal("a callback from another thread", STEP)
        if self._closed:
            raise RuntimeError("Event loop is closed")
        self._ready.append(handle)
        return handle

    def _context_for(self, context: Context | None) -> Context | None:
        """asyncio's rule inside a turn (None: a copy of the current one); the run's own context outside."""
        return context if context is not None or self._turning else self._context

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio counts cancelled timers here; this loop keeps none."""

    # Tasks.

    def _new_task(
        self, coro: Body, name: str | None = None, context: Context | None = None, eager: bool | None = None
    ) -> RunTask:
        if len(self._tasks) >= self._prune_at:
            self._tasks = self.live_tasks()
            self._prune_at = 2 * len(self._tasks) + 16
        self._last += 1
        options: dict[str, Any] = {"eager_start": True} if eager else {}
        name = name or f"Task-{self._last - self._first}"  # asyncio's own names count through the process
        task = RunTask(self._last, coro, loop=self, name=name, context=self._context_for(context), **options)
        self._tasks.append(task)
        return task

    def _made_together(self, coro: Body, given: Iterable[Awaitable[Any]]) -> RunTask:
        """as_completed asks in the order of addresses: at its first task, all are made in the order given."""
        if not order.is_ordered(given):
            coro.close()
            raise self.refusal("asyncio.as_completed over a set or an iterator", "a list, which has an order")
        asked = order.unwrapped(coro)
        if asked not in self._together:
            coros = {each: order.wrapped(each) for each in given if not asyncio.isfuture(each)}
            self._together = {each: self._new_task(coros[each]) for each in coros}
        if asked is not coro:
            coro.close()
        return self._together.pop(asked)

    def abandon(self) -> list[RunTask]:
        """Forgets the tasks and all that is ready; returns the tasks that were not done."""
        tasks, self._tasks = self.live_tasks(), []
        self._ready.clear()
        return tasks

    # Async generators.

    def open_generators(self) -> list[AsyncGenerator]:
        """The async generators that began here and have not ended, oldest first."""
        begun = self._generators or ()
        return [generator for generator in begun if generator.ag_frame is not None]

    def close_generator(self, generator: AsyncGenerator) -> None:
        self.create_task(generator.aclose(), name=generator.__qualname__)

    def _generator_begun(self, generator: Any) -> None:
        if self._generators is None:
            self._generators = WeakKeyDictionary()
        self._generators[generator] = None

    def _generator_dropped(self, generator: Any) -> None:
        """Runs wherever the collector runs, on any thread: the generator is closed in the next turn."""
        if not self._closed:
            self._ready.append(asyncio.Handle(self.close_generator, (generator,), self, self._context))


def _owner(handle: asyncio.Handle) -> object:
    """The task or object whose method the handle calls."""
    return getattr(getattr(handle, "_callback", None), "__self__", None)

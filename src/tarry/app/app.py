"""App: what a program sees of Tarry (rule 2). Everything else, the command line included, goes through it.

An App owns one store, one writer, and the workflows registered on it. Its calls encode and check what they
are given, hand one command to the writer, and return what was decided.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from tarry.app import parcels
from tarry.app.core import Core
from tarry.app.drive import Driver, DriveResult, Waker
from tarry.app.handle import Handle
from tarry.app.lists import Lists
from tarry.core.commands import Cancel, CloseChannel, Deliver, Resolve, Retry, Start, Started
from tarry.core.names import check_name, check_run_id
from tarry.core.retry import Duration
from tarry.core.retry import Retry as RetryPolicy
from tarry.engine import outside as outside_runs
from tarry.engine.context import Run
from tarry.engine.hosting import HostedWorker, WorkerOptions
from tarry.engine.names import Channel, Name, Signal
from tarry.engine.workflow import Registry
from tarry.engine.workflow import workflow as register
from tarry.errors import Closed, NotResolvable
from tarry.model import ArrivalKind, CancelReceipt, EntryKind, Outcome, Receipt, Status
from tarry.store.protocol import Sealer, Store

if TYPE_CHECKING:
    from tarry.app.sync import SyncApp

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])
Ts = TypeVarTuple("Ts")

Where = datetime | Duration


class App(Lists):
    """`App("sqlite:///shop.db")`; without a URL, TARRY_STORE. `async with App(…) as app` opens and closes it;
    else its first call opens it. `outside="inert"` (or TARRY_OUTSIDE): workflow code may be called as plain code
    (rule 3.11). `sealer` compresses or encrypts payloads at the store's edge (rule 13). `waker`: see `drive`.
    `require_key`, `require_actor`: of all deliveries (rule 4.3b)."""

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        outside: str | None = None,
        sealer: Sealer | None = None,
        waker: Waker | None = None,
        require_key: bool = False,
        require_actor: bool = False,
    ) -> None:
        self._source = store
        self._waker = waker
        self._sealer = sealer
        self._require_key = require_key
        self._require_actor = require_actor
        self._core: Core | None = None
        self._closed = False
        self.registry = Registry()
        outside_runs.choose(outside or os.environ.get("TARRY_OUTSIDE"))

    # --- opening and closing ---

    async def __aenter__(self) -> App:
        self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def open(self, store: str | Store | None = None) -> Core:
        """The App's store and writer in this process; after a fork they are opened anew. `store`, on the first
        call: this one, and not that which the code names."""
        if self._closed:
            raise Closed(what="App")
        if self._core is None and store is not None:
            self._source = store
        if self._core is None or self._core.pid != os.getpid():
            self._core = Core(self._source, self._sealer)
        return self._core

    async def close(self) -> None:
        """Commits what is queued, then closes the store."""
        self._closed = True
        core, self._core = self._core, None
        if core is not None and core.pid == os.getpid():
            await asyncio.to_thread(core.close)

    @property
    def store(self) -> Store:
        return self.open().store

    @cached_property
    def sync(self) -> SyncApp:
        """The same calls for code without an event loop (rule 2.4)."""
        from tarry.app.sync import SyncApp

        return SyncApp(self)

    # --- registering ---

    @overload
    def workflow(self, body: F, /) -> F: ...
    @overload
    def workflow(
        self,
        body: None = None,
        /,
        *,
        name: str | None = None,
        accepts: Sequence[Name[Any]] | None = None,
        retries: int | RetryPolicy | None = None,
        errors: Sequence[type[Exception]] = (),
    ) -> Callable[[F], F]: ...
    def workflow(
        self,
        body: F | None = None,
        /,
        *,
        name: str | None = None,
        accepts: Sequence[Name[Any]] | None = None,
        retries: int | RetryPolicy | None = None,
        errors: Sequence[type[Exception]] = (),
    ) -> F | Callable[[F], F]:
        """Registers an async function, and leaves it what it is (rule 2.5). `accepts`: the signals and channels
        that it takes; a delivery under another name is then refused with near misses. `retries`: how often the
        body is run again after an exception leaves it (rule 3.9). `errors`: exceptions of steps that come back as
        themselves. Raises DuplicateWorkflow."""

        def add(body: F) -> F:
            self.registry.add(register(body, name=name, accepts=accepts, retries=retries, errors=errors))
            return body

        return add if body is None else add(body)

    # --- senders ---

    @overload
    async def start(
        self,
        workflow: Callable[[Run[Any], *Ts], Coroutine[Any, Any, R]],
        *args: *Ts,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> Handle[R]: ...
    @overload
    async def start(
        self,
        workflow: str,
        *args: Any,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> Handle[Any]: ...
    async def start(
        self,
        workflow: Callable[..., Any] | str,
        *args: Any,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> Handle[Any]:
        """Starts a run, by the function or its name; with the id of an existing run of the same workflow and input,
        gives that one (rule 3.1). `deadline` and `start_at`: an instant, or a duration from now. Raises
        RunConflict, RunGone, BadArguments, InvalidName."""
        core = self.open()
        known = self.registry.find(workflow) if isinstance(workflow, str) else self.registry.of(workflow)
        command = Start(
            check_run_id(id) if id is not None else core.new_run_id(),
            known.name if known is not None else check_name("workflow", str(workflow)),
            known.encode_args(args) if known is not None else parcels.value_bytes(list(args)),
            parcels.checked_tags(tags or {}),
            known.accepts if known is not None else None,
            None if deadline is None else core.instant_ms(deadline),
            None if start_at is None else core.instant_ms(start_at),
        )
        started: Started = await core.writer.commit(command, known.documents if known is not None else {})
        return Handle(self, started.run.id, known.result if known is not None else None, started.created)

    def handle(self, run_id: str) -> Handle[Any]:
        """A handle on a run that was started elsewhere (rule 2.2)."""
        return Handle(self, check_run_id(run_id), None, False)

    @overload
    async def signal(
        self,
        run_id: str,
        signal: Signal[T],
        payload: T,
        *,
        key: str | None = None,
        actor: str | None = None,
        require_wait: bool = False,
    ) -> Receipt: ...
    @overload
    async def signal(
        self,
        run_id: str,
        signal: str | Signal[Any],
        payload: Any = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        require_wait: bool = False,
    ) -> Receipt: ...
    async def signal(
        self,
        run_id: str,
        signal: str | Signal[Any],
        payload: Any = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        require_wait: bool = False,
    ) -> Receipt:
        """Delivers a signal, by the descriptor or its bare name; the receipt tells what became of it (rules
        4.2-4.6). `key`: the same key again is a `duplicate`. `require_wait`: refused unless a wait is open. Raises
        RunNotFound, UnknownSignal, KeyRequired, ActorRequired, LimitExceeded, Unencodable."""
        return await self._deliver(ArrivalKind.SIGNAL, run_id, signal, payload, key, actor, require_wait)

    async def send(
        self,
        run_id: str,
        channel: str | Channel[T],
        payload: T,
        *,
        key: str,
        actor: str | None = None,
    ) -> Receipt:
        """Appends a message to a run's channel; its key makes a redelivery a no-op (rule 5.1). Raises like
        `signal`."""
        return await self._deliver(ArrivalKind.CHANNEL, run_id, channel, payload, key, actor, False)

    async def _deliver(
        self,
        kind: ArrivalKind,
        run_id: str,
        target: str | Name[Any],
        payload: Any,
        key: str | None,
        actor: str | None,
        require_wait: bool,
    ) -> Receipt:
        needed = {"require_key": self._require_key, "require_actor": self._require_actor}
        name = parcels.check_delivery(target, key, actor, **needed)
        data = parcels.payload_bytes(target, payload)
        key = parcels.key_of(key, data, actor)
        command = Deliver(check_run_id(run_id), kind, name, data, key, actor, require_wait)
        return await self.open().writer.commit(command)

    async def close_channel(self, run_id: str, channel: str | Channel[Any], *, actor: str | None = None) -> bool:
        """Ends the loop over a channel after what is buffered (rule 5.6); False where it was closed already."""
        name = channel if isinstance(channel, str) else channel.name
        command = CloseChannel(check_run_id(run_id), check_name("channel", name), parcels.checked_actor(actor))
        return await self.open().writer.commit(command)

    # --- operators ---

    async def cancel(self, run_id: str, *, actor: str | None = None, force: bool = False) -> CancelReceipt:
        """Closes the run's waits and raises RunCancelled at its next durable call; a run never claimed, or with
        `force`, ends at once (rule 3.12)."""
        return await self.open().writer.commit(Cancel(check_run_id(run_id), parcels.checked_actor(actor), force))

    async def retry(self, run_id: str, *, actor: str | None = None) -> Status:
        """Lets a blocked run go on, or runs a failed one again together with the step that failed it (rule 12.2).
        Raises NotRetryable."""
        return await self.open().writer.commit(Retry(check_run_id(run_id), parcels.checked_actor(actor)))

    async def resolve(
        self,
        run_id: str,
        step: str,
        *,
        result: Any = None,
        failed: str | None = None,
        redo: bool = False,
        actor: str | None = None,
    ) -> Status:
        """Says what became of a step whose outcome is unknown: its `result`, that it `failed` (why), or `redo`: do
        it again (rule 3.5). Raises NotResolvable."""
        core = self.open()
        no = await asyncio.to_thread(unknown_step, core.store, check_run_id(run_id), step)
        outcome, value = parcels.resolution(result, failed, redo)
        command = Resolve(run_id, step, no, outcome, value, parcels.checked_actor(actor))
        return await core.writer.commit(command)

    # --- workers ---

    @asynccontextmanager
    async def worker(
        self,
        *,
        concurrency: int = 1000,
        threads: int = 32,
        lease_s: float = 10,
        stuck_after_s: float = 60,
    ) -> AsyncGenerator[HostedWorker, None]:
        """A worker in this process, for the time of the block (rules 2.1, 11)."""
        core = self.open()
        options = WorkerOptions(concurrency, threads, lease_s, stuck_after_s)
        async with HostedWorker(core.store, core.writer, core.wakeups, self.registry, options) as hosted:
            yield hosted

    async def run_worker(self, **options: Any) -> None:
        """Works until SIGTERM or SIGINT, then lets go of everything at once (rule 11.4)."""
        from tarry.engine.signals import stop_on_signal

        async with self.worker(**options) as hosted:
            with stop_on_signal(hosted.stop):
                await hosted.wait()

    async def drive(self, run_id: str) -> DriveResult:
        """Drives one run until it pauses or ends, and tells what it waits for and when it is due next (rule 6.3):
        for serverless functions and cron. With a `waker`, that instant is scheduled; WakeNotScheduled if that
        fails."""
        return await self._driver().drive(check_run_id(run_id))

    async def fire_due(self, limit: int = 100) -> tuple[str, ...]:
        """Drives each run of this App's workflows that is due, until it pauses or ends; their ids (rule 6.3)."""
        return await self._driver().fire_due(limit)

    def _driver(self) -> Driver:
        return Driver(self.open(), self.registry, self._waker)


def unknown_step(store: Store, run_id: str, step: str) -> int:
    """The number of the entry of a step whose outcome is unknown."""
    cursor: str | None = None
    found: int | None = None
    while True:
        page = store.journal(run_id, cursor, 1000)
        for entry in page.rows:
            if entry.kind is EntryKind.STEP and step in (entry.name, entry.scope + entry.name):
                found = entry.no if entry.outcome is Outcome.UNKNOWN else found
        cursor = page.next_cursor
        if cursor is None:
            break
    if found is None:
        raise NotResolvable(run_id=run_id, step=step, reason="no step of this name has one")
    return found

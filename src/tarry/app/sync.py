"""SyncApp: App's calls for code without an event loop: Flask, Django, scripts (rule 2.4).

It decides nothing: each call is App's own, run on one event loop in a thread of this process. A test compares
the two, name by name and signature by signature.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from tarry.app.drive import DriveResult
from tarry.app.handle import Handle
from tarry.app.rows import JournalRow, LetterRow, RunRow, WaitRow, WorkerRow
from tarry.core.retry import Duration
from tarry.engine.context import Run
from tarry.engine.names import Channel, Name, Signal
from tarry.errors import InRunningLoop
from tarry.model import CancelReceipt, Page, Receipt, Status, WaitKind

if TYPE_CHECKING:
    from tarry.app.app import App

T = TypeVar("T")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

Where = datetime | Duration


class Portal:
    """An event loop in a thread, made when it is first needed and once per process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def run(self, name: str, coro: Coroutine[Any, Any, T]) -> T:
        if _in_running_loop():
            coro.close()
            raise InRunningLoop(call=name)
        return asyncio.run_coroutine_threadsafe(coro, self._started()).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=_serve, args=(self._loop,), name="tarry-sync", daemon=True).start()
            return self._loop

    def stop(self) -> None:
        with self._lock:
            if self._loop is not None and self._pid == os.getpid():
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


class SyncHandle(Generic[R]):
    """A run as its starter holds it."""

    def __init__(self, handle: Handle[R], portal: Portal) -> None:
        self.id = handle.id
        self.created = handle.created
        self._handle = handle
        self._portal = portal

    def status(self) -> Status:
        return self._portal.run("status", self._handle.status())

    def result(self, timeout: Duration | None = None) -> R:
        return self._portal.run("result", self._handle.result(timeout))


class SyncApp:
    def __init__(self, app: App) -> None:
        self._app = app
        self._portal = Portal()

    def close(self) -> None:
        self._portal.run("close", self._app.close())
        self._portal.stop()

    @overload
    def start(
        self,
        workflow: Callable[[Run[Any], *Ts], Coroutine[Any, Any, R]],
        *args: *Ts,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> SyncHandle[R]: ...
    @overload
    def start(
        self,
        workflow: str,
        *args: Any,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> SyncHandle[Any]: ...
    def start(
        self,
        workflow: Any,
        *args: Any,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        deadline: Where | None = None,
        start_at: Where | None = None,
    ) -> SyncHandle[Any]:
        started = self._app.start(workflow, *args, id=id, tags=tags, deadline=deadline, start_at=start_at)
        return SyncHandle(self._portal.run("start", started), self._portal)

    def handle(self, run_id: str) -> SyncHandle[Any]:
        return SyncHandle(self._app.handle(run_id), self._portal)

    @overload
    def signal(
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
    def signal(
        self,
        run_id: str,
        signal: str | Signal[Any],
        payload: Any = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        require_wait: bool = False,
    ) -> Receipt: ...
    def signal(
        self,
        run_id: str,
        signal: str | Signal[Any],
        payload: Any = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        require_wait: bool = False,
    ) -> Receipt:
        sent = self._app.signal(run_id, signal, payload, key=key, actor=actor, require_wait=require_wait)
        return self._portal.run("signal", sent)

    def send(
        self, run_id: str, channel: str | Channel[T], payload: T, *, key: str, actor: str | None = None
    ) -> Receipt:
        return self._portal.run("send", self._app.send(run_id, channel, payload, key=key, actor=actor))

    def close_channel(self, run_id: str, channel: str | Channel[Any], *, actor: str | None = None) -> bool:
        return self._portal.run("close_channel", self._app.close_channel(run_id, channel, actor=actor))

    def cancel(self, run_id: str, *, actor: str | None = None, force: bool = False) -> CancelReceipt:
        return self._portal.run("cancel", self._app.cancel(run_id, actor=actor, force=force))

    def retry(self, run_id: str, *, actor: str | None = None) -> Status:
        return self._portal.run("retry", self._app.retry(run_id, actor=actor))

    def resolve(
        self,
        run_id: str,
        step: str,
        *,
        result: Any = None,
        failed: str | None = None,
        redo: bool = False,
        actor: str | None = None,
    ) -> Status:
        told = self._app.resolve(run_id, step, result=result, failed=failed, redo=redo, actor=actor)
        return self._portal.run("resolve", told)

    def drive(self, run_id: str) -> DriveResult:
        return self._portal.run("drive", self._app.drive(run_id))

    def fire_due(self, limit: int = 100) -> tuple[str, ...]:
        return self._portal.run("fire_due", self._app.fire_due(limit))

    def receipt(self, run_id: str, name: str | Name[Any], key: str) -> Receipt:
        return self._portal.run("receipt", self._app.receipt(run_id, name, key))

    def run(self, run_id: str) -> RunRow:
        return self._portal.run("run", self._app.run(run_id))

    def runs(
        self,
        *,
        workflow: str | None = None,
        status: Status | str | None = None,
        tag: tuple[str, str] | None = None,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[RunRow]:
        page = self._app.runs(workflow=workflow, status=status, tag=tag, prefix=prefix, cursor=cursor, limit=limit)
        return self._portal.run("runs", page)

    def waits(
        self,
        *,
        run: str | None = None,
        workflow: str | None = None,
        name: str | None = None,
        kind: WaitKind | str | None = None,
        tag: tuple[str, str] | None = None,
        age: Duration | timedelta | None = None,
        overdue: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[WaitRow]:
        page = self._app.waits(
            run=run,
            workflow=workflow,
            name=name,
            kind=kind,
            tag=tag,
            age=age,
            overdue=overdue,
            cursor=cursor,
            limit=limit,
        )
        return self._portal.run("waits", page)

    def journal(self, run_id: str, *, cursor: str | None = None, limit: int = 100) -> Page[JournalRow]:
        return self._portal.run("journal", self._app.journal(run_id, cursor=cursor, limit=limit))

    def dead_letters(
        self,
        *,
        run: str | None = None,
        name: str | None = None,
        reason: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[LetterRow]:
        page = self._app.dead_letters(run=run, name=name, reason=reason, cursor=cursor, limit=limit)
        return self._portal.run("dead_letters", page)

    def workers(self) -> tuple[WorkerRow, ...]:
        return self._portal.run("workers", self._app.workers())


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

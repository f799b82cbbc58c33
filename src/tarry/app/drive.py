"""Driving runs without a worker process: serverless functions, cron, tests (rule 6.3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tarry.app.core import Core
from tarry.app.rows import WaitRow, wait_row
from tarry.core.durations import from_ms
from tarry.core.states import CLAIMABLE
from tarry.engine.hosting import HostedWorker, WorkerOptions
from tarry.engine.workflow import Registry
from tarry.errors import RunGone, RunNotFound, WakeNotScheduled
from tarry.model import RunRecord, Status
from tarry.store.protocol import WaitFilter


class Waker(Protocol):
    """Calls `app.drive(run_id)` at an instant: a cloud scheduler, a queue with delays. Idempotent per run and
    reason."""

    def schedule(self, run_id: str, reason: str, at: datetime) -> None: ...


@dataclass(frozen=True)
class DriveResult:
    """Where the run stands, what it waits for, and when it has to be driven again if nothing comes."""

    run_id: str
    status: Status
    waits: tuple[WaitRow, ...]
    next_due: datetime | None


class Driver:
    def __init__(self, core: Core, registry: Registry, waker: Waker | None) -> None:
        self._core = core
        self._registry = registry
        self._waker = waker

    async def drive(self, run_id: str) -> DriveResult:
        await self._drive([run_id])
        return self._told(run_id)

    async def fire_due(self, limit: int) -> tuple[str, ...]:
        store = self._core.store
        known = self._registry.accepts
        due = await asyncio.to_thread(store.due_runs, list(known), limit)
        await self._drive(due)
        for run_id in due:
            self._told(run_id)
        return tuple(due)

    async def _drive(self, run_ids: list[str]) -> None:
        core = self._core
        options = WorkerOptions()
        hosted = HostedWorker(core.store, core.writer, core.wakeups, self._registry, options, claims=False)
        async with hosted:
            while ready := [pair for run_id in run_ids if (pair := self._ready(run_id))]:
                if not await hosted.runner.claim(len(ready), ready):
                    return
                await hosted.runner.idle()

    def _ready(self, run_id: str) -> tuple[str, str] | None:
        run = self._run(run_id)
        due = run.due_ms is not None and run.due_ms <= self._core.store.clock.now_ms()
        known = self._registry.find(run.workflow) is not None
        return (run.id, run.workflow) if run.status in CLAIMABLE and due and known else None

    def _told(self, run_id: str) -> DriveResult:
        run = self._run(run_id)
        page = self._core.store.waits(WaitFilter(run_id=run_id), None, 1000)
        claimable = run.due_ms is not None and run.status in CLAIMABLE
        next_due = from_ms(max(run.due_ms or 0, run.changed_ms)) if claimable else None
        if next_due is not None and self._waker is not None:
            self._schedule(run, next_due)
        waits = tuple(wait_row(run, wait) for run, wait in page.rows)
        return DriveResult(run_id, run.status, waits, next_due)

    def _schedule(self, run: RunRecord, at: datetime) -> None:
        assert self._waker is not None
        try:
            self._waker.schedule(run.id, "due", at)
        except Exception as error:
            raise WakeNotScheduled(run_id=run.id, at=at.isoformat(), reason=str(error)) from error

    def _run(self, run_id: str) -> RunRecord:
        run = self._core.store.run(run_id)
        if run is None:
            gone = self._core.store.gone(run_id)
            raise RunGone(run_id=run_id) if gone else RunNotFound(run_id=run_id)
        return run

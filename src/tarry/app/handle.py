"""A run as its starter holds it (rule 2.2)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from tarry.core.codec import Typed, decode_error, typed
from tarry.core.durations import duration_ms
from tarry.core.retry import Duration
from tarry.core.states import ENDS
from tarry.errors import ResultTimeout, RunFailed, RunGone, RunNotFound
from tarry.model import RunRecord, Status

if TYPE_CHECKING:
    from tarry.app.app import App

R = TypeVar("R")


class Handle(Generic[R]):
    """`created` is False where the run was there already."""

    def __init__(self, app: App, run_id: str, codec: Typed | None, created: bool) -> None:
        self.id = run_id
        self.created = created
        self._app = app
        self._codec = codec

    async def status(self) -> Status:
        """Where the run stands. Raises RunNotFound, RunGone."""
        return self._run().status

    async def result(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109 (a public name)
        """The run's result, once it has ended; goes on waiting while it is blocked. Raises RunFailed where it did
        not succeed, and ResultTimeout after `timeout`. To cancel this wait touches nothing of the run."""
        if timeout is None:
            run = await self._ended()
        else:
            seconds = duration_ms(timeout) / 1000
            try:
                run = await asyncio.wait_for(self._ended(), seconds)
            except TimeoutError:
                status = self._run().status.value
                raise ResultTimeout(run_id=self.id, timeout_s=seconds, status=status) from None
        return self._decoded(run)

    async def _ended(self) -> RunRecord:
        while True:
            run = self._run()
            if run.status in ENDS:
                return run
            await self._app.open().watch.ended(self.id)

    def _run(self) -> RunRecord:
        store = self._app.store
        run = store.run(self.id)
        if run is None:
            raise RunGone(run_id=self.id) if store.gone(self.id) else RunNotFound(run_id=self.id)
        return run

    def _decoded(self, run: RunRecord) -> R:
        if run.status is Status.SUCCEEDED:
            return (self._codec or self._known(run)).decode(run.result or b"null")
        raise failure(run)

    def _known(self, run: RunRecord) -> Typed:
        workflow = self._app.registry.find(run.workflow)
        return workflow.result if workflow is not None else typed(None)

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"


def failure(run: RunRecord) -> RunFailed:
    """What `result()` raises for a run that did not succeed: reading it imports nothing of the run's code."""
    record = decode_error(run.error) if run.error is not None else None
    text = f"{record.type}: {record.message}" if record is not None else "it was ended"
    by = f" by {run.cancel_actor}" if run.cancel_actor else ""
    return RunFailed(run_id=run.id, status=run.status.value, error=text, reason=by, record=record)

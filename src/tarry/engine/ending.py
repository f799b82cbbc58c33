"""How a pass ends: what the body came to, as the command that ends it (rules 3.7, 3.9, 3.12)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from tarry.core.codec import encode_error
from tarry.core.commands import Block, End, Finish, Release
from tarry.errors import BadInput, OutcomeUnknown, RunCancelled, RunExpired, StepFailed
from tarry.model import Blocked, RunRecord, Status

if TYPE_CHECKING:
    from tarry.engine.host import Host
    from tarry.engine.workflow import Workflow

LOG = logging.getLogger("tarry.engine")


def deadlock() -> Block:
    return Block(
        Blocked.DEADLOCK,
        "The body waits for something that no durable call and no step will ever bring. Change the code, then"
        " retry the run.",
    )


def bad_input(error: Exception) -> Block:
    return Block(Blocked.UNDECODABLE, f"The run's input: {error}")


def told(run: RunRecord) -> BaseException:
    """What the next durable call of a run that is to end raises."""
    if run.expiring and not run.cancelling:
        return RunExpired(run_id=run.id)
    return RunCancelled(run_id=run.id, by=f" by {run.cancel_actor}" if run.cancel_actor else "")


def forced(run: RunRecord) -> Finish:
    """The body was told of the cancel and does not end: it is ended."""
    return Finish(Status.CANCELLED if run.cancelling else Status.EXPIRED)


def of_body(body: asyncio.Task[Any], workflow: Workflow, run: RunRecord) -> End:
    error = asyncio.CancelledError() if body.cancelled() else body.exception()
    if error is None:
        return _returned(body.result(), workflow)
    if unknown := _found(error, OutcomeUnknown):
        return Block(Blocked.UNKNOWN_OUTCOME, str(unknown))
    if (run.cancelling or run.expiring) and _found(error, RunCancelled, RunExpired):
        return forced(run)
    failed = _found(error, StepFailed)
    culprit = failed.fields.get("entry") if isinstance(failed, StepFailed) else None
    delay_ms = workflow.retry.delay_ms(run.attempt, run.id)
    if delay_ms is not None and isinstance(error, Exception):
        return Release(delay_ms, again=True, culprit=culprit)
    return Finish(Status.FAILED, error=encode_error(error), culprit=culprit)


def _found(error: BaseException, *kinds: type[BaseException]) -> BaseException | None:
    """The error itself, or what a task group has wrapped, if it is of one of these kinds."""
    if isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next((found for each in inside if (found := _found(each, *kinds))), None)
    return error if isinstance(error, kinds) else None


def _returned(value: Any, workflow: Workflow) -> Finish:
    """A result that cannot be stored is a failure on record, not a run that hangs (rule 13)."""
    try:
        return Finish(Status.SUCCEEDED, result=workflow.result.encode(value))
    except BadInput as error:
        return Finish(Status.FAILED, error=encode_error(error))


async def run_hooks(hooks: Sequence[Callable[[], Any]], host: Host, run: RunRecord) -> None:
    """Clean-up at the run's end, last registered first; what fails there is logged and changes nothing."""
    for hook in reversed(hooks):
        try:
            if inspect.iscoroutinefunction(hook):
                await hook()
            else:
                await host.call(hook)
        except Exception:
            LOG.exception("run %s: its clean-up failed", run.id)

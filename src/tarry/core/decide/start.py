"""A start: the id is the key (rule 3.1)."""

from __future__ import annotations

from tarry.core.codec import same
from tarry.core.commands import Start, Started
from tarry.core.states import at_once
from tarry.core.view import Decision, View
from tarry.errors import RunConflict, RunGone
from tarry.model import RunRecord, Status


def start(view: View, command: Start, now: int) -> Decision:
    if view.gone:
        raise RunGone(run_id=command.run_id)
    if view.run is not None:
        return Decision(Started(_same_run(view.run, command), created=False))
    run = RunRecord(
        id=command.run_id,
        workflow=command.workflow,
        status=Status.READY,
        input=command.input,
        tags=command.tags,
        accepts=command.accepts,
        due_ms=_first_due(command, now),
        deadline_ms=command.deadline_ms,
        created_ms=now,
        changed_ms=now,
    )
    return Decision(Started(run, created=True), (run,))


def _same_run(run: RunRecord, command: Start) -> RunRecord:
    if run.workflow != command.workflow:
        raise RunConflict(run_id=run.id, what=f"workflow ({run.workflow})")
    if not same(run.input, command.input):
        raise RunConflict(run_id=run.id, what="input")
    return run


def _first_due(command: Start, now: int) -> int:
    """A run that expires before it may begin is looked at when it expires."""
    due = at_once(now) if command.due_ms is None else command.due_ms
    return due if command.deadline_ms is None else min(due, command.deadline_ms)

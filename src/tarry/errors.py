"""Every error that Tarry raises, in one tree.

The docstring of a class *is* its message: what happened, why, and what to do. Its placeholders are the
fields that the error carries, so that a program reads them without parsing text. Errors are built with
keyword fields, compare by them, and survive pickling.

`Parked`, `RunCancelled` and `RunExpired` stand beside the tree, not in it: they are control flow inside a
workflow's body and derive from BaseException, so that `except Exception` lets them pass (rules 3.8, 3.12).
"""

from __future__ import annotations

import inspect
from typing import Any


class _Told(BaseException):
    """Formats the class's docstring with the fields given, and keeps the fields as attributes."""

    fields: dict[str, Any]

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)
        template = " ".join(inspect.cleandoc(type(self).__doc__ or "").split())
        super().__init__(template.format_map(_Missing(fields)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


class _Missing(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _rebuild(cls: type[_Told], fields: dict[str, Any]) -> _Told:
    return cls(**fields)


class TarryError(_Told, Exception):
    """Something in Tarry failed."""


# --- what a caller asked for -------------------------------------------------------------------------


class BadInput(TarryError, ValueError):
    """The call was refused before anything was queued."""


class InvalidName(BadInput):
    """The {what} {name} is not usable: {reason}. Nothing was stored; choose another one."""


class InvalidDuration(BadInput):
    """{value} is not a duration: {reason}. Give a timedelta, seconds, "1h30m" or ISO 8601 between 1 ms and
    10 years."""


class InvalidInstant(BadInput):
    """{value} is not an instant: {reason}. Give a datetime with a time zone."""


class BadArguments(BadInput, TypeError):
    """The arguments do not fit the workflow {workflow}: {reason}. No run was started."""


class BadLimit(BadInput):
    """The page limit {limit} is out of range. Ask for 1 to 1000 rows."""


class BadCursor(BadInput):
    """The cursor is not one that this list gave out. Start again without a cursor."""


class BadStoreUrl(BadInput):
    """{url} names no store: {reason}. Use "sqlite:///path/to/file.db" or set TARRY_STORE."""


class KeyRequired(BadInput):
    """{name} takes deliveries only with a key, so that a redelivery can be told from a new event. Pass key=."""


class ActorRequired(BadInput):
    """{name} takes deliveries only with an actor. Pass actor=: who did this, as the authenticated side knows."""


class Unencodable(BadInput, TypeError):
    """The value at {path} cannot be stored as JSON: {reason}."""


class PayloadTooLarge(BadInput):
    """The payload has {size} bytes; the limit is {limit}. Store it elsewhere and send a reference."""


class PayloadTooDeep(BadInput):
    """The payload is nested {depth} levels deep; the limit is {limit}. Flatten it."""


class LimitExceeded(TarryError):
    """Run {run_id} has reached its limit of {limit} {what}. The delivery was refused and nothing was lost:
    deliver again when the run has taken in what it has, or raise the limit."""


class DuplicateWorkflow(TarryError):
    """Two workflows of one App are called {name}. Give one of them another name: @app.workflow(name=…)."""


class UnknownWorkflow(TarryError):
    """No workflow called {name} is registered here{near}. Register it on this App, or start it by the function."""


class RunConflict(TarryError):
    """Run {run_id} exists with another {what}. An id names one run for ever: use another id, or the same
    workflow and input to get the existing run."""


class RunNotFound(TarryError):
    """There is no run {run_id}. Check the id, and that this process uses the store that the run was started in."""


class RunGone(TarryError):
    """Run {run_id} has ended and was pruned. Its id stays taken for a while; start a run with another id."""


class UnknownSignal(TarryError):
    """The workflow {workflow} of run {run_id} declares no {kind} called {name}{near}. The delivery is kept in
    the dead letters; deliver under a declared name, or add it to accepts=."""


class SignalModeConflict(TarryError):
    """{name} is used in another mode in run {run_id}. One name of a run is either a latch or a sequence."""


class ReceiptNotFound(TarryError):
    """No delivery under {name} to run {run_id} has taken the key {key}."""


class RunFailed(TarryError):
    """Run {run_id} ended as {status}: {error}{reason}"""


class ResultTimeout(TarryError, TimeoutError):
    """Run {run_id} has not ended within {timeout_s} s; it is {status} and goes on. Ask again later."""


class NotResolvable(TarryError):
    """Step {step} of run {run_id} has no unknown outcome to resolve: {reason}."""


class NotRetryable(TarryError):
    """Run {run_id} is {status}; only a blocked or failed run can be retried."""


# --- inside a workflow -------------------------------------------------------------------------------


class NotInRun(TarryError):
    """{call} works only inside a run. Start the workflow with app.start, or set outside="inert" to call it
    as plain code."""


class WrongThread(TarryError):
    """{call} was called from another thread or event loop than its run's. Nothing was done: call it from the
    workflow's own code, or from an async step."""


class NameReused(TarryError):
    """{kind} {name} was already used in this pass of run {run_id}. Names identify what is journaled: give it
    another name, or pass key= to tell the calls apart."""


class StepFailed(TarryError):
    """Step {step} failed with {type}: {message}"""

    def is_a(self, cls: type[BaseException] | str) -> bool:
        """Whether the original error was an instance of `cls` (by qualified name; rule 3.7)."""
        wanted = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
        return wanted in self.fields.get("mro", ())


class WaitTimeout(TarryError, TimeoutError):
    """Nothing came for {name} before its deadline."""


class OutcomeUnknown(TarryError):
    """Step {step} of run {run_id} was started and its outcome is not known ({reason}). It runs at most once, so
    it is not repeated: find out what happened and call app.resolve(run, step, result=… | failed=… | redo=True)."""


class ChannelClosed(TarryError):
    """Channel {channel} is closed and read to its end; no message will come. `async for` ends there by itself."""


class NotRetrySafe(TarryError):
    """{call} inside step {step}, which runs at most once: a wait there would repeat the step. Make the step
    IDEMPOTENT or READ_ONLY, or wait outside of it."""


class NotDurable(TarryError):
    """{call} in a workflow's body would be lost or repeated by a restart. Use {instead}."""


class Undecodable(TarryError):
    """A stored value does not fit {type_name}: {errors}. The stored bytes are kept as they are: bring back a type
    that fits, then retry the run."""


class JournalMismatch(TarryError):
    """Step {step} was recorded with other arguments. The code has changed under a waiting run: restore it, give
    the changed step a new name, or pass check=False, then retry the run."""


class NotOldest(TarryError):
    """{key} is not the oldest message of channel {channel}. Messages are acknowledged in order: ack {oldest}
    first."""


class NotAcked(TarryError):
    """Message {key} of channel {channel} was not acknowledged before the next receive. Call message.ack() (or
    message.handle) first."""


# --- workers and stores ------------------------------------------------------------------------------


class LeaseLost(TarryError):
    """Run {run_id} belongs to another worker by now (epoch {epoch} is over). Nothing was written."""


class WakeNotScheduled(TarryError):
    """Run {run_id} pauses and is due at {at}, but its wake-up could not be scheduled: {reason}. The pause is on
    file: drive the run again then, by app.drive or app.fire_due."""


class StoreError(TarryError):
    """The store failed: {reason}."""


class StoreBusy(StoreError):
    """The store stayed locked for {waited_s} s by another process. Nothing was written: try again."""


class StoreFull(StoreError):
    """The disk is full ({reason}). Nothing was written: free space and try again."""


class StoreReadOnly(StoreError):
    """The store cannot be written ({reason}). Check the permissions of the file and of its folder."""


class StoreCorrupt(StoreError):
    """The store at {path} is damaged or not a database ({reason}). Nothing was changed: restore a backup, or run
    `tarry doctor` to see more."""


class StoreForeign(StoreError):
    """{path} is a database of another program ({reason}). Nothing was changed: choose another file."""


class StoreTooNew(StoreError):
    """The store has schema {found}; this Tarry knows {known}. Upgrade Tarry in this process."""


class CommitUnknown(StoreError):
    """The connection broke during COMMIT; whether it took effect is looked up by the batch's id."""


class Closed(TarryError):
    """This {what} is closed. Open a new one."""


class InRunningLoop(TarryError):
    """app.sync.{call} was called inside a running event loop, where it would block it. Use: await app.{call}(…)."""


# --- control flow inside a body: never caught by `except Exception` ------------------------------------


class Parked(BaseException):
    """The run pauses and its body is unwound; it will be run again from the top (rule 3.8). Let it pass."""


class RunCancelled(_Told):
    """Run {run_id} was cancelled{by}."""


class RunExpired(_Told):
    """Run {run_id} has reached its deadline."""

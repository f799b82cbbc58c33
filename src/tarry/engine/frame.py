"""Where in which run the code at hand is executing.

A frame travels in a context variable: the body has one, each step opens one below it, and each message of a
fold. Durable calls take run, scope and step from it, so that a `Run` handed into a step works there as well.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tarry.errors import NotInRun

if TYPE_CHECKING:
    from tarry.engine.resume import Pass
    from tarry.engine.steps import StepCall


class Round(Protocol):
    """One message of a fold: names count within it until it is acknowledged."""

    @property
    def over(self) -> bool: ...


@dataclass(frozen=True)
class Frame:
    """`outer` is the frame that counts again once `round` is over: a loop may be left by `break`, unseen."""

    turn: Pass
    scope: str = ""
    step: StepCall | None = None
    round: Round | None = None
    outer: Frame | None = None


current: ContextVar[Frame | None] = ContextVar("tarry_frame", default=None)


def frame(call: str) -> Frame:
    """The frame of the code at hand; `call` is named in the error where there is none (rule 3.11)."""
    found = current.get()
    while found is not None and found.round is not None and found.round.over:
        found = found.outer
    if found is None:
        raise NotInRun(call=call)
    return found


@dataclass(frozen=True)
class CurrentStep:
    """The step that the code at hand runs in. `key` is the same text at every attempt: hand it to the outside
    world as its idempotency key (rule 3.5c)."""

    name: str
    key: str
    attempt: int


def current_step() -> CurrentStep:
    """The step that this code runs in; NotInRun outside of one."""
    step = frame("tarry.current_step()").step
    if step is None:
        raise NotInRun(call="tarry.current_step()")
    return CurrentStep(step.name, step.key, step.attempt)

"""Workflows drawn from a seed: trees of durable calls, as data.

Nobody would write most of these by hand, and that is the point. A tree is a pure function of its seed, so
that every pass of a run, in whatever process, interprets the same one. Half of all waits have no deadline:
where each has one, a lost wake-up shows itself as nothing worse than a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Literal

SIGNALS = ("a", "b", "c", "d")
CHANNELS = ("x1", "x2", "x3")
TIMEOUTS_MS = (1, 50, 1_000, 1_000, 5_000, 20_000)

StepMode = Literal["ok", "sync", "slow", "fail", "flaky", "patient", "once", "once_slow", "nested", "inner"]
LoopStyle = Literal["plain", "receive", "handle", "fold", "fold_handle", "inside"]


@dataclass(frozen=True)
class Step:
    label: str
    mode: StepMode


@dataclass(frozen=True)
class Wait:
    """`times`: how many rounds to wait on the name, each with the timeout, until a payload comes."""

    label: str
    name: str
    timeout_ms: int | None
    times: int = 1
    swallow: bool = False


@dataclass(frozen=True)
class Timer:
    label: str
    ms: int


@dataclass(frozen=True)
class First:
    """A race: of signals by name, of channels, and of timers by their milliseconds."""

    label: str
    names: tuple[str, ...]
    channels: tuple[str, ...]
    timers: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    label: str
    channel: str
    count: int
    style: LoopStyle


@dataclass(frozen=True)
class Both:
    """Branches side by side: `gather`, a task group, or with something handed from the first to the second."""

    label: str
    style: Literal["gather", "group", "event", "queue"]
    branches: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Drop:
    """A branch that waits and is cancelled by the body."""

    label: str
    name: str


@dataclass(frozen=True)
class Now:
    label: str


Node = Step | Wait | Timer | First | Loop | Both | Drop | Now


@dataclass
class _Draw:
    chance: Random
    channels: list[str] = field(default_factory=lambda: list(CHANNELS))
    beside: int = 0

    def nodes(self, path: str, depth: int, most: int) -> tuple[Node, ...]:
        return tuple(self.node(f"{path}{i}", depth) for i in range(1, 2 + self.chance.randrange(most)))

    def node(self, label: str, depth: int) -> Node:
        kind = self.chance.random()
        if kind < 0.28:
            return self.wait(label)
        if kind < 0.5:
            return Step(label, self.chance.choice(_MODES))
        if kind < 0.56:
            return Timer(label, self.chance.choice(TIMEOUTS_MS))
        if kind < 0.66:
            return self.first(label)
        if kind < 0.8 and self.channels:
            styles = _BESIDE if self.beside else (*_BESIDE, *_ALONE)
            return Loop(label, self.channels.pop(), 1 + self.chance.randrange(3), self.chance.choice(styles))
        if kind < 0.94 and depth:
            return self.both(label, depth - 1)
        if kind < 0.97:
            return Drop(label, self.chance.choice(SIGNALS))
        return Now(label)

    def wait(self, label: str) -> Wait:
        timeout = self.chance.choice(TIMEOUTS_MS) if self.chance.random() < 0.5 else None
        times = 1 if timeout is None else 1 + self.chance.randrange(3)
        return Wait(label, self.chance.choice(SIGNALS), timeout, times, self.chance.random() < 0.15)

    def first(self, label: str) -> First:
        names = tuple(self.chance.sample(SIGNALS, 1 + self.chance.randrange(2)))
        channels = (self.channels.pop(),) if self.channels and self.chance.random() < 0.3 else ()
        timers = (self.chance.choice(TIMEOUTS_MS),) if self.chance.random() < 0.5 else ()
        return First(label, names, channels, timers)

    def both(self, label: str, depth: int) -> Both:
        style = self.chance.choice(("gather", "group", "event", "queue"))
        width = 2 if style in ("event", "queue") else 2 + self.chance.randrange(2)
        self.beside += 1
        branches = tuple(self.nodes(f"{label}{'pqr'[i]}", depth, 2) for i in range(width))
        self.beside -= 1
        return Both(label, style, branches)


_MODES: tuple[StepMode, ...] = (
    "ok", "ok", "sync", "slow", "slow", "fail", "flaky", "patient", "once", "once_slow", "nested", "inner",
)  # fmt: skip
_BESIDE: tuple[LoopStyle, ...] = ("plain", "plain", "receive", "handle", "inside")
# What a fold has acked is not read again, so that its branch is further on in a later pass than it was among the
# outcomes of branches beside it: a fold is read alone.
_ALONE: tuple[LoopStyle, ...] = ("fold", "fold", "fold_handle")


@lru_cache(maxsize=256)
def tree(seed: int) -> tuple[Node, ...]:
    chance = Random(seed)
    return _Draw(chance).nodes("n", depth=2, most=4)


def every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, Both):
            for branch in node.branches:
                yield from every(branch)


def folds(nodes: tuple[Node, ...]) -> bool:
    """Whether some journal entries may go again: those of a fold's earlier rounds."""
    return any(isinstance(node, Loop) and node.style.startswith("fold") for node in every(nodes))


def drops(nodes: tuple[Node, ...]) -> bool:
    """Whether the body gives up a wait that may have been answered."""
    return any(isinstance(node, Drop) for node in every(nodes))

"""What a system must be able to do to be measured: a process that runs workflows, and one that delivers.

The words are those of the loads. Every run of the signal loads is named by its number; the signal of run `i`
and message `i` of the channel carry the payload `{"k": i}`, and whoever takes one in checks it. What does not
come out as it must raises: a fast wrong answer is no figure.

`at_once` says how many calls may be under way together. A system that does worse with as many takes fewer,
and says so in its notes. Instants are those of bench.pace; a Span is the instant before the first call and
after the last.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TypeAlias

from bench.pace import Pace

Span: TypeAlias = tuple[float, float]


class Role(ABC):
    """A process of a system, over a store in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store.db"

    @abstractmethod
    async def open(self) -> None:
        """Open the store and, for a worker, start to work: runs that a dead process left behind go on."""


class Worker(Role):
    """Runs workflows."""

    @abstractmethod
    async def about(self) -> dict[str, str]:
        """The versions and the settings of durability that the figures depend on."""

    @abstractmethod
    async def finish_runs(self, runs: int, at_once: int) -> Span:
        """Start runs of one step that adds 1 to the run's number, and await that all have ended."""

    @abstractmethod
    async def bring_to_wait(self, runs: int, at_once: int) -> Span:
        """Start runs that wait for one signal each; return when the last one waits."""

    @abstractmethod
    async def all_resumed(self, runs: int) -> float:
        """Await the end of those runs, each with the payload meant for it; the instant of the last end."""

    @abstractmethod
    async def bring_one(self, run: int) -> None:
        """Start one such run; return when it waits."""

    @abstractmethod
    async def one_resumed(self, run: int) -> float:
        """The instant at which the code after that run's wait went on."""

    @abstractmethod
    async def open_channel(self, messages: int, held: bool) -> None:
        """Start the run `channel`, which takes in so many messages in order, one after the other.

        Held, it takes in none before `channel_ended` is asked.
        """

    @abstractmethod
    async def channel_ended(self) -> Pace:
        """Await its end; the pace at which messages were handed to the code of the run."""

    @abstractmethod
    async def kept(self) -> int:
        """How many messages for the run `channel` are, or were, on file."""

    @abstractmethod
    async def take_steps(self, steps: int, crash_after: int | None) -> Pace:
        """One run of so many steps, one after the other; the process kills itself after the one named."""

    @abstractmethod
    async def recovered(self, steps: int, crash_after: int) -> float:
        """In a new process: the instant at which that run passed the step after which it was killed.

        Raises where a step that was on file was executed again.
        """


class Sender(Role):
    """Delivers, from a process that holds no workflow."""

    @abstractmethod
    async def signal_each(self, runs: int, at_once: int) -> Span:
        """One signal to each waiting run."""

    @abstractmethod
    async def signal_one(self, run: int) -> float:
        """One signal to one run; the instant before the call."""

    @abstractmethod
    async def send_all(self, messages: int, at_once: int) -> Span:
        """All messages of the channel, so that they arrive in order."""

    @abstractmethod
    async def send_same(self, sends: int, at_once: int) -> Span:
        """Message 0 of the channel, with the same key, again and again."""

"""What a pass knows to be on file for its run: waits, deliveries and messages."""

from __future__ import annotations

from collections.abc import Iterable

from tarry.core.commands import Advanced, Want
from tarry.core.inbox import Inbox
from tarry.core.journal import Journal
from tarry.model import Arrival, ArrivalKind, Slot, Wait, WaitId, WaitKind


class OnFile:
    """Begins with the claim's journal, and learns from the answer to each write."""

    def __init__(self, journal: Journal) -> None:
        self._run_id = journal.run.id
        self._journal = journal
        self._inboxes: dict[str, Inbox] = {}
        self._arrivals: dict[int, Arrival] = dict(journal.arrivals)
        for messages in journal.messages.values():
            self._keep(messages)
        self.waits: dict[WaitId, Wait] = {wait.id: wait for wait in journal.waits}

    def _keep(self, messages: Iterable[Arrival]) -> None:
        for message in messages:
            self._arrivals[message.no] = message

    def arrival(self, number: int) -> Arrival:
        return self._arrivals[number]

    def inbox(self, channel: str) -> Inbox:
        found = self._inboxes.get(channel)
        if found is None:
            slot = self._journal.slots.get(channel) or Slot(self._run_id, ArrivalKind.CHANNEL, channel)
            found = self._inboxes[channel] = Inbox(slot, self._journal.messages.get(channel, []))
        return found

    def learn(self, result: Advanced) -> list[Wait]:
        """The waits that have an outcome and had none before."""
        self._arrivals |= result.arrivals
        before, self.waits = self.waits, {wait.id: wait for wait in result.waits}
        for channel, page in result.pages.items():
            self._keep(page)
            self.inbox(channel).learn(page, closed=channel in result.closed)
        return [wait for wait in result.waits if wait.outcome is not None and not _settled(before.get(wait.id))]

    def wants(self, waiting: Iterable[WaitId]) -> tuple[Want, ...]:
        """The next messages of each channel that some code waits for, where none is known."""
        channels = {wait.name: None for wait in waiting if wait.kind is WaitKind.CHANNEL}
        return tuple(self.inbox(name).want() for name in channels if self.inbox(name).peek() is None)

    def hungry(self, wants: Iterable[Want]) -> bool:
        """Whether a channel may hold more than was read of it: its last page was a full one."""
        return any(self.inbox(want.channel).hungry for want in wants)

    def next_deadline_ms(self) -> int | None:
        deadlines = [w.deadline_ms for w in self.waits.values() if w.outcome is None and w.deadline_ms is not None]
        return min(deadlines, default=None)

    def forget(self, waits: Iterable[WaitId]) -> None:
        """The next write takes these waits, or their outcomes, off the table."""
        for wait in waits:
            self.waits.pop(wait, None)


def _settled(wait: Wait | None) -> bool:
    return wait is not None and wait.outcome is not None

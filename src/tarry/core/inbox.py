"""One pass's view of one channel: what it has read, what it has acknowledged, what comes next (rules 5.1-5.3).

A pass reads a channel from its beginning, a fold from its last acked message. Acks that are on file are
repeated without effect; the first unacked message is where new work begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tarry.core.commands import Want
from tarry.core.journal import PAGE
from tarry.errors import NotAcked, NotOldest
from tarry.model import Arrival, ArrivalStatus, Slot


class Inbox:
    def __init__(self, slot: Slot, messages: Sequence[Arrival] = ()) -> None:
        self.slot = slot
        self.acked = slot.acked
        self.closed = False
        self.hungry = False
        self._waiting: deque[Arrival] = deque()
        self._last_known = 0
        self._given: deque[Arrival] = deque()
        self._taken: dict[str, Arrival] = {}
        self.learn(messages, closed=slot.closed is not None)

    def learn(self, messages: Sequence[Arrival], *, closed: bool) -> None:
        """More of the channel, in order; what is known already is passed over."""
        self.hungry = len(messages) >= PAGE
        for message in messages:
            if message.no > self._last_known:
                self._last_known = message.no
                if message.status is not ArrivalStatus.INVALID:
                    self._waiting.append(message)
        self.closed = self.closed or closed

    def skip_acked(self) -> None:
        """A fold begins after what is acked."""
        while self._waiting and self._waiting[0].no <= self.acked:
            self._waiting.popleft()
        self._last_known = max(self._last_known, self.acked)

    def want(self) -> Want:
        return Want(self.slot.name, self._last_known, PAGE)

    @property
    def cursor(self) -> int:
        """A wait is answered by a message beyond it."""
        return self._waiting[0].no - 1 if self._waiting else self._last_known

    def peek(self) -> Arrival | None:
        return self._waiting[0] if self._waiting else None

    def take(self) -> Arrival:
        message = self._waiting.popleft()
        self._taken[message.key] = message
        if message.no > self.acked:
            self._given.append(message)
        return message

    def take_number(self, arrival: Arrival) -> None:
        """The same where a race has decided which message it is."""
        hungry = self.hungry
        self.learn((arrival,), closed=False)
        self.hungry = hungry
        while self._waiting and self._waiting[0].no <= arrival.no:
            self.take()

    def refuse_number(self, arrival: Arrival) -> None:
        """The message that won a race does not fit its type: it is not seen, here either."""
        self._last_known = max(self._last_known, arrival.no)
        while self._waiting and self._waiting[0].no <= arrival.no:
            self._waiting.popleft()

    def drop(self) -> None:
        """The next message does not fit its type: it is refused, and not seen."""
        self._waiting.popleft()

    def check_acked(self) -> None:
        if self._given:
            raise NotAcked(key=self._given[0].key, channel=self.slot.name)

    def ack(self, message: Arrival) -> bool:
        """Whether the ack is new; one that is on file, or repeated, has no effect."""
        if message.no <= self.acked:
            return False
        if not self._given or self._given[0].no != message.no:
            oldest = self._given[0].key if self._given else "the next one"
            raise NotOldest(key=message.key, channel=self.slot.name, oldest=oldest)
        self._given.popleft()
        self.acked = message.no
        return True

    def oldest_unacked(self) -> Arrival | None:
        return self._given[0] if self._given else None

    def taken(self, key: str) -> Arrival | None:
        """What this pass was given under the key, acked on file or not."""
        return self._taken.get(key)

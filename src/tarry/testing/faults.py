"""Faults at the seam of a store: what a disk, a network and other processes do to a commit.

    store = FaultStore(real, script(None, Fault.LANDED))     # the second transaction's answer is lost
    store = FaultStore(real, seeded(7, rate=0.2))            # one in five, the same ones each time

Each transaction takes the next step of the plan when it begins. Whatever the fault, `landed` tells the truth
afterwards, so that a caller which asks ends with the right answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from random import Random
from types import TracebackType

from tarry.errors import CommitUnknown, StoreBusy, StoreError, StoreFull
from tarry.store.protocol import Store, Transaction


class Fault(StrEnum):
    """What goes wrong with one transaction."""

    BUSY = "busy"
    """It does not begin: another process holds the lock for too long."""
    BROKEN = "broken"
    """The commit fails, and nothing has landed."""
    FULL = "full"
    """The same, for want of space."""
    LOST = "lost"
    """The connection breaks during COMMIT, before it took effect."""
    LANDED = "landed"
    """The connection breaks during COMMIT, after it took effect."""
    SLOW = "slow"
    """The commit takes long."""


Plan = Iterator[Fault | None]


def script(*faults: Fault | None) -> Plan:
    """One after another, then none any more."""
    yield from faults
    while True:
        yield None


def seeded(seed: int, rate: float, faults: Sequence[Fault] = tuple(Fault)) -> Plan:
    chance = Random(seed)
    while True:
        yield chance.choice(faults) if chance.random() < rate else None


class FaultStore:
    """A store with faults. `counts` tells how often each came; `slow` is what a slow commit waits for."""

    def __init__(self, store: Store, plan: Plan, slow: Callable[[], None] = lambda: time.sleep(0.05)) -> None:
        self._store = store
        self._plan = plan
        self.slow = slow
        self.counts = dict.fromkeys(Fault, 0)
        self.batches: set[str] = set()
        self._pass_on(store)

    def _pass_on(self, store: Store) -> None:
        """All that has no faults is the real store's own."""
        self.clock = store.clock
        self.run = store.run
        self.gone = store.gone
        self.statuses = store.statuses
        self.runs = store.runs
        self.waits = store.waits
        self.journal = store.journal
        self.arrivals = store.arrivals
        self.arrival = store.arrival
        self.winner = store.winner
        self.acked = store.acked
        self.letters = store.letters
        self.audit = store.audit
        self.workers = store.workers
        self.addresses = store.addresses
        self.due = store.due
        self.due_runs = store.due_runs
        self.next_due_ms = store.next_due_ms
        self.change = store.change
        self.document = store.document
        self.tidy = store.tidy
        self.close = store.close

    def begin(self, *, wait: bool = True) -> Transaction | None:
        fault = next(self._plan)
        if fault is not None:
            self.counts[fault] += 1
        if fault is Fault.BUSY:
            if wait:
                raise StoreBusy(waited_s=0)
            return None
        tx = self._store.begin(wait=wait)
        return None if tx is None else FaultTransaction(self, tx, fault)

    def landed(self, batch: str) -> bool:
        return batch in self.batches or self._store.landed(batch)


class FaultTransaction:
    def __init__(self, store: FaultStore, tx: Transaction, fault: Fault | None) -> None:
        self.now_ms = tx.now_ms
        self._store = store
        self._tx = tx
        self._fault = fault
        self.load = tx.load
        self.save = tx.save
        self.intern = tx.intern
        self.due = tx.due
        self.held = tx.held
        self.orphans = tx.orphans
        self.journals = tx.journals
        self.register = tx.register
        self.beat = tx.beat
        self.leave = tx.leave
        self.live = tx.live
        self.lapsed = tx.lapsed
        self.outgoing = tx.outgoing
        self.drop_outgoing = tx.drop_outgoing
        self.expire_letters = tx.expire_letters

    def __enter__(self) -> Transaction:
        self._tx.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tx.__exit__(kind, error, trace)

    def commit(self, batch: str = "") -> None:
        if self._fault is Fault.BROKEN:
            raise StoreError(reason="the connection broke")
        if self._fault is Fault.FULL:
            raise StoreFull(reason="no space left on device")
        if self._fault is Fault.LOST:
            raise CommitUnknown
        if self._fault is Fault.SLOW:
            self._store.slow()
        self._tx.commit(batch)
        self._store.batches.add(batch)
        if self._fault is Fault.LANDED:
            raise CommitUnknown

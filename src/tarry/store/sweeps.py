"""What a worker asks of the store that concerns no single run: it becomes commands on single runs, inside the
same transaction, decided by the same core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tarry.core.commands import Claim, Claimed, Reap
from tarry.core.journal import Journal
from tarry.errors import LeaseLost
from tarry.model import WorkerRecord
from tarry.store.fold import Fold
from tarry.store.protocol import Transaction


class Sweep:
    """Base of the closed set below: something that runs inside a transaction and returns a result."""

    def run(self, tx: Transaction) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Register(Sweep):
    """A new worker takes its lease."""

    worker: WorkerRecord

    def run(self, tx: Transaction) -> None:
        tx.register(self.worker)


@dataclass(frozen=True)
class Leave(Sweep):
    """A worker goes, having released its runs."""

    worker: str

    def run(self, tx: Transaction) -> None:
        tx.leave(self.worker)


@dataclass(frozen=True)
class Beat(Sweep):
    """Renews a worker's lease, reaps what dead workers left, and tells what is leased to this worker, so that it
    gives back what it does not hold (a claim whose answer was lost)."""

    worker: WorkerRecord
    reap: int = 500

    def run(self, tx: Transaction) -> list[tuple[str, int]] | LeaseLost:
        if not tx.beat(self.worker):
            return LeaseLost(run_id="*", epoch=0)
        orphans = [Reap(run_id, worker) for run_id, worker in tx.orphans(self.reap)]
        fold = Fold(tx, orphans)
        for orphan in orphans:
            fold.decide(orphan)
        fold.save()
        for lapsed in tx.lapsed():
            tx.leave(lapsed)
        tx.expire_letters(self.reap)
        return tx.held(self.worker.id)


@dataclass(frozen=True)
class ClaimDue(Sweep):
    """Takes up to `limit` due runs of the workflows known here, with all that their passes answer from."""

    worker: str
    limit: int
    accepts: Mapping[str, str | None]
    only: Sequence[tuple[str, str]] | None = None

    def run(self, tx: Transaction) -> list[Journal] | LeaseLost:
        if not tx.live(self.worker):
            return LeaseLost(run_id="*", epoch=0)
        due = tx.due(list(self.accepts), self.limit) if self.only is None else self.only
        claims = [Claim(run_id, self.worker, self.accepts[workflow]) for run_id, workflow in due]
        if not claims:
            return []
        fold = Fold(tx, claims)
        results: list[Claimed] = [fold.decide(claim) for claim in claims]
        fold.save()
        taken = [result.run.id for result in results if result.run is not None]
        return tx.journals([fold.views[run_id] for run_id in taken])

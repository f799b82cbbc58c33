"""A clock, commands in batches, and all that a store holds: what tests of a store say things with."""

from typing import Any

from tarry.core.commands import Advance, Command, Deliver, End, Open, Opening, Part, Start
from tarry.core.view import Needs
from tarry.model import ArrivalKind, NameId, RunRecord, Wait, WaitKind, WorkerRecord
from tarry.store.batch import Batch
from tarry.store.protocol import LetterFilter, RunFilter, Store, WaitFilter
from tarry.store.sweeps import ClaimDue, Register, Sweep

NOW_MS = 1_800_000_000_000
LEASE_MS = 10_000
ALL = 1000


class Clock:
    """Moves only when told to."""

    def __init__(self) -> None:
        self.boot = "boot-1"
        self.wall = NOW_MS
        self.up = 1_000_000

    def now_ms(self) -> int:
        return self.wall

    def lease_ms(self) -> int:
        return self.up

    def advance(self, ms: int) -> None:
        self.wall += ms
        self.up += ms


def commit(store: Store, *items: Command | Sweep) -> list[Any]:
    """One transaction; the result of each item."""
    tx = store.begin()
    assert tx is not None
    batch = Batch(items)
    with tx:
        batch.run(tx)
        tx.commit()
    return batch.results


def start(run_id: str, workflow: str = "order", **more: Any) -> Start:
    return Start(run_id, workflow, b'["o-42"]', **more)


def signal(run_id: str, key: str, name: str = "paid", payload: bytes = b'{"amount":5}') -> Deliver:
    return Deliver(run_id, ArrivalKind.SIGNAL, name, payload, key, "ann")


def message(run_id: str, key: str, channel: str = "events", payload: bytes = b"7") -> Deliver:
    return Deliver(run_id, ArrivalKind.CHANNEL, channel, payload, key)


def wait_on(run_id: str, name: str = "paid", timeout_ms: int | None = None) -> Open:
    return Open((Opening(Wait(run_id, WaitKind.SIGNAL, "", name, 0), timeout_ms),))


def worker(store: Store, name: str = "w1") -> WorkerRecord:
    clock = store.clock
    until = clock.lease_ms() + LEASE_MS
    return WorkerRecord(name, clock.boot, until, None, "host", 1, ("order",), clock.now_ms(), clock.now_ms())


def claim(store: Store, name: str = "w1", limit: int = 100) -> list[RunRecord]:
    """The worker's runs, newly taken; it is registered anew."""
    _, journals = commit(store, Register(worker(store, name)), ClaimDue(name, limit, {"order": None}))
    return [journal.run for journal in journals]


def advance(run: RunRecord, *parts: Part, end: End | None = None) -> Advance:
    assert run.worker is not None
    return Advance(run.id, run.worker, run.epoch, parts, end)


def everything(store: Store) -> dict[str, Any]:
    """All that lists and lookups show; two stores that were told the same show the same."""
    runs = sorted(store.runs(RunFilter(), None, ALL).rows, key=lambda run: run.id)
    return {
        "runs": runs,
        "journals": {run.id: store.journal(run.id, None, ALL).rows for run in runs},
        "arrivals": {run.id: store.arrivals(run.id, None, ALL).rows for run in runs},
        "waits": store.waits(WaitFilter(), None, ALL).rows,
        "letters": sorted(store.letters(LetterFilter(), None, ALL).rows, key=lambda letter: letter.id),
        "audit": store.audit(None, None, ALL).rows,
        "workers": sorted(store.workers(), key=lambda pair: pair[0].id),
    }


def views(store: Store, names: list[NameId], run_ids: list[str]) -> dict[str, Any]:
    """What a batch would load of these runs, and what a claim would read of those that a worker holds."""
    tx = store.begin()
    assert tx is not None
    with tx:
        loaded = tx.load({run_id: Needs(names=frozenset(names)) for run_id in run_ids})
        held = [view for view in loaded.values() if view.run is not None and view.run.worker is not None]
        journals = tx.journals(held)
    shown = {run_id: (v.run, v.gone, v.waits, dict(v.live), dict(v.slots), v.settled) for run_id, v in loaded.items()}
    return {"views": shown, "journals": journals}

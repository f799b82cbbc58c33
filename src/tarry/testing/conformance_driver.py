"""Drives a store through its seam: batches of commands in, results and rows out.

What it says is what a process says to its store, so that a test reads as a story: start, deliver, claim, turn.
`turn` speaks as the worker that owns the run, under its fence; whoever wants to speak as somebody else writes the
`Advance` by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tarry.core.commands import Advance, Command, Deliver, End, Open, Opening, Part, Record, Start, Want
from tarry.core.journal import Journal
from tarry.model import (
    Arrival,
    ArrivalKind,
    Entry,
    EntryKind,
    Outcome,
    RunRecord,
    Wait,
    WaitId,
    WaitKind,
    WorkerRecord,
)
from tarry.store.batch import Batch
from tarry.store.fold import Notes
from tarry.store.protocol import LetterFilter, Reads, RunFilter, Store, WaitFilter
from tarry.store.sweeps import ClaimDue, Register, Sweep
from tarry.testing.clock import ManualClock

LEASE_MS = 10_000
WORKFLOW = "job"
NO_DOCUMENTS: Mapping[str, bytes] = {}


class Driver:
    """One process at a store. `notes` are those of the last batch."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.notes = Notes()

    def batch(self, *items: Command | Sweep, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> list[Any]:
        """One transaction; the result, or the exception, of each item."""
        tx = self.store.begin()
        assert tx is not None
        batch = Batch(items, documents)
        with tx:
            batch.run(tx)
            tx.commit("batch")
        self.notes = batch.notes
        return batch.results

    def do(self, item: Command | Sweep, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> Any:
        """One item alone; an exception that is its result is raised."""
        (result,) = self.batch(item, documents=documents)
        if isinstance(result, Exception):
            raise result
        return result

    # --- workers ---

    def worker(self, name: str = "w1", boot: str | None = None) -> WorkerRecord:
        clock = self.clock
        until = clock.lease_ms() + LEASE_MS
        now = clock.now_ms()
        return WorkerRecord(name, boot or clock.boot, until, f"/run/{name}", "host", 7, (WORKFLOW,), now, now)

    def register(self, name: str = "w1") -> WorkerRecord:
        worker = self.worker(name)
        self.do(Register(worker))
        return worker

    def claim(self, name: str = "w1", limit: int = 100, accepts: str | None = None) -> list[Journal]:
        """What is due, newly leased to the worker."""
        _, journals = self.batch(Register(self.worker(name)), ClaimDue(name, limit, {WORKFLOW: accepts}))
        return journals

    def begin(self, run_id: str = "r", accepts: str | None = None, **more: Any) -> RunRecord:
        """A run that is started and, at once, running."""
        self.do(start(run_id, **more))
        self.claim(accepts=accepts)
        return self.run(run_id)

    def turn(
        self, run_id: str, *parts: Part, end: End | None = None, wants: Sequence[Want] = (), **documents: bytes
    ) -> Any:
        """One `Advance` of the run's owner."""
        return self.do(self.advance(run_id, *parts, end=end, wants=wants), documents)

    def advance(self, run_id: str, *parts: Part, end: End | None = None, wants: Sequence[Want] = ()) -> Advance:
        run = self.run(run_id)
        return Advance(run_id, run.worker or "nobody", run.epoch, parts, end, tuple(wants))

    # --- what is on file ---

    def run(self, run_id: str = "r") -> RunRecord:
        run = self.store.run(run_id)
        assert run is not None
        return run

    def entries(self, run_id: str = "r") -> list[Entry]:
        return list(self.store.journal(run_id, None, 1000).rows)

    def arrivals(self, run_id: str = "r") -> list[Arrival]:
        return list(self.store.arrivals(run_id, None, 1000).rows)

    def open_waits(self, run_id: str = "r") -> dict[WaitId, Wait]:
        rows = self.store.waits(WaitFilter(run_id=run_id), None, 1000).rows
        return {wait.id: wait for _, wait in rows}

    def reasons(self, run_id: str = "r") -> list[str]:
        """Why the run's dead letters are dead, in the order of names."""
        return sorted(letter.reason for letter in self.store.letters(LetterFilter(run_id), None, 1000).rows)


def visible(store: Reads, run_ids: Sequence[str]) -> dict[str, Any]:
    """All that can be read of these runs, so that two stores, or two moments of one, can be compared."""
    shown: dict[str, Any] = {}
    for run_id in run_ids:
        letters = store.letters(LetterFilter(run_id), None, 1000).rows
        shown[run_id] = {
            "run": store.run(run_id),
            "journal": store.journal(run_id, None, 1000).rows,
            "arrivals": store.arrivals(run_id, None, 1000).rows,
            "waits": store.waits(WaitFilter(run_id), None, 1000).rows,
            "letters": sorted(letters, key=lambda letter: letter.id),
            "audit": store.audit(run_id, None, 1000).rows,
        }
    shown["runs"] = sorted(run.id for run in store.runs(RunFilter(), None, 1000).rows)
    shown["workers"] = sorted(store.workers(), key=lambda row: row[0].id)
    shown["next due"] = store.next_due_ms([WORKFLOW])
    return shown


# --- words ---------------------------------------------------------------------------------------------


def start(run_id: str = "r", **more: Any) -> Start:
    return Start(run_id, WORKFLOW, b'["in"]', **more)


def signal(name: str = "paid", payload: bytes = b"1", key: str = "k1", run_id: str = "r", **more: Any) -> Deliver:
    return Deliver(run_id, ArrivalKind.SIGNAL, name, payload, key, **more)


def message(channel: str = "ev", payload: bytes = b"1", key: str = "k1", run_id: str = "r", **more: Any) -> Deliver:
    return Deliver(run_id, ArrivalKind.CHANNEL, channel, payload, key, **more)


def wait(name: str = "paid", kind: WaitKind = WaitKind.SIGNAL, run_id: str = "r", **more: Any) -> Wait:
    where: dict[str, Any] = {"scope": "", "round": 0} | more
    return Wait(run_id, kind, name=name, **where)


def opens(*waits: Wait, timeout_ms: int | None = None, until_ms: int | None = None) -> Open:
    """Opens waits in one call: a `first`, where they share a group. The deadline is that of the last one."""
    *others, last = waits
    return Open((*(Opening(other) for other in others), Opening(last, timeout_ms, until_ms)))


def step(no: int = 1, name: str = "work", value: bytes | None = b"1", run_id: str = "r", **more: Any) -> Entry:
    where: dict[str, Any] = {"kind": EntryKind.STEP, "scope": "", "round": 0, "outcome": Outcome.OK} | more
    return Entry(run_id, no, name=name, value=value, **where)


def record(no: int = 1, name: str = "work", value: bytes | None = b"1", run_id: str = "r", **more: Any) -> Record:
    return Record(step(no, name, value, run_id, **more))


def place(no: int, of: Wait, outcome: Outcome = Outcome.OK, arrival: int | None = None) -> Record:
    """The pass has taken a wait's outcome in: an entry, and the wait is off the table."""
    entry = Entry(of.run_id, no, EntryKind.WAIT, of.scope, of.name, of.round, outcome, arrival=arrival)
    return Record(entry, of.id)

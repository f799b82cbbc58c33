"""The store's rows as the history checker wants them."""

from __future__ import annotations

from tarry.core.decide.letters import shown
from tarry.store.memory_tables import Tables
from tarry.testing.history import ArrivalRow, EntryRow, Final, HeadRow, LetterRow, RunRow, WaitRow, fingerprint
from tarry.testing.sim.oracle import digest_of


def final(tables: Tables, now_ms: int, taken_ns: int, folding: frozenset[str]) -> Final:
    """`folding`: the runs with a fold, whose journals may lose what belongs to earlier rounds."""
    return Final(
        runs=tuple(_runs(tables)),
        waits=tuple(
            WaitRow(w.run_id, w.kind, w.name, w.scope, w.round, w.deadline_ms, w.outcome, w.arrival)
            for w in tables.waits.values()
        ),
        entries=tuple(_entries(tables, folding)),
        arrivals=tuple(
            ArrivalRow(a.run_id, a.no, a.kind, a.name, shown(a.key), fingerprint(a.payload), a.actor, a.status, a.at_ms)
            for a in tables.arrivals.values()
        ),
        heads=tuple(HeadRow(s.run_id, s.name, s.acked) for s in tables.slots.values() if s.kind == "channel"),
        letters=tuple(
            LetterRow(letter.run_id, letter.name, fingerprint(letter.payload), letter.reason, letter.key)
            for letter in tables.letters.values()
        ),
        now_ms=now_ms,
        taken_ns=taken_ns,
    )


def _runs(tables: Tables) -> list[RunRow]:
    return [
        RunRow(
            r.id,
            r.status.value,
            r.worker,
            r.epoch,
            r.due_ms,
            r.changed_ms,
            None if r.result is None else r.result.decode(),
            r.cancelling,
            r.expiring,
        )
        for r in tables.runs.values()
    ]


def _entries(tables: Tables, folding: frozenset[str]) -> list[EntryRow]:
    rows = [
        EntryRow(e.run_id, e.no, e.kind, e.name, e.outcome, e.scope, e.round, None, e.arrival, digest_of(e))
        for e in tables.entries.values()
    ]
    rows += [EntryRow(run_id, -1, "fold", "", "ok") for run_id in sorted(folding)]
    return rows

"""The judgement over a town's files and its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tarry.core.decide.letters import shown
from tarry.store.opening import open_store
from tarry.store.protocol import LetterFilter, RunFilter, WaitFilter
from tarry.testing.history import (
    ArrivalRow,
    Final,
    HeadRow,
    LetterRow,
    Report,
    RunRow,
    WaitRow,
    check,
    fingerprint,
    read,
)


def judge(url: str, folder: Path, lease_s: float) -> Report:
    history = read(sorted(folder.glob("*.jsonl")))
    store = open_store(url)
    try:
        final = dump(store)
    finally:
        store.close()
    return check(history, final, lease_s=lease_s, poll_s=1.0)


def dump(store: Any) -> Final:
    """All rows that the checker knows. (Journals are compared pass by pass in the simulator.)"""
    runs = list(_all(lambda cursor: store.runs(RunFilter(), cursor, 1000)))
    arrivals = [a for run in runs for a in _all(lambda cursor, run=run: store.arrivals(run.id, cursor, 1000))]
    heads = {(a.run_id, a.name) for a in arrivals if a.kind == "channel"}
    return Final(
        runs=tuple(
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
            for r in runs
        ),
        waits=tuple(
            WaitRow(w.run_id, w.kind, w.name, w.scope, w.round, w.deadline_ms, w.outcome, w.arrival)
            for _, w in _all(lambda cursor: store.waits(WaitFilter(), cursor, 1000))
        ),
        arrivals=tuple(
            ArrivalRow(a.run_id, a.no, a.kind, a.name, shown(a.key), fingerprint(a.payload), a.actor, a.status, a.at_ms)
            for a in arrivals
        ),
        heads=tuple(HeadRow(run, name, store.acked(run, name)) for run, name in sorted(heads)),
        letters=tuple(
            LetterRow(letter.run_id, letter.name, fingerprint(letter.payload), letter.reason, letter.key)
            for letter in _all(lambda cursor: store.letters(LetterFilter(), cursor, 1000))
        ),
        now_ms=store.clock.now_ms(),
    )


def _all(page: Any) -> Any:
    cursor = None
    while True:
        found = page(cursor)
        yield from found.rows
        cursor = found.next_cursor
        if cursor is None:
            return

"""The systems of a contest, and what makes a figure of theirs not like for like with the others."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.rival_environment import rival_python

OURS, RIVAL, LIMIT = "tarry", "dbos", "raw"


@dataclass(frozen=True)
class System:
    """`module` holds its Worker and Sender, `python` the interpreter that has what they import.

    `lease_s`: how long after a worker's death its runs are still taken for its own. `skips`: loads that it
    does not play, and why. `notes`: by load, or "all".
    """

    name: str
    module: str
    python: Callable[[], Path]
    lease_s: float = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def own_python() -> Path:
    return Path(sys.executable)


RAW = System(
    name="raw",
    module="bench.raw_sqlite",
    python=own_python,
    notes={
        "all": "rows and commits only: no types, leases, replay, code; write-ahead log, synchronous FULL",
        "W6": "holds no runs in memory",
    },
)
TARRY = System(
    name="tarry",
    module="bench.tarry_sqlite",
    python=own_python,
    lease_s=1.0,
    skips={"W4f": "a run of its own: python -m tests.faults.siege shows folds across kills"},
    notes={
        "all": "write-ahead log, synchronous FULL, its default",
        "W4": "message.handle: a step and the ack in one commit",
        "W6": "with a lease of 1 s: three heartbeats a second; the default of 10 s has one in three",
        "W5r": "the lease of the dead worker is over when the clock starts",
    },
)
DBOS = System(
    name="dbos",
    module="bench.dbos_sqlite",
    python=rival_python,
    environment={"BENCH_JOURNAL": "wal"},
    skips={"W4f": "at its rate of W4 a trial would take a quarter of an hour"},
    notes={
        "all": "write-ahead log, which suits it better than its default, synchronous FULL; polls once a second",
        "W1": "64 starts under way at a time",
        "W2": "8 sends under way at a time: it was no faster with 64",
        "W4": "one send at a time, as order asks; receiving records, there is no ack",
        "W7": "8 sends under way at a time: it was no faster with 64; a sender is not told of a duplicate",
    },
)
DBOS_ROLLBACK = replace(
    DBOS,
    name="dbos-rollback",
    environment={},
    notes={**DBOS.notes, "all": "all its defaults: rollback journal, under whose locks senders starve"},
)

SYSTEMS = {system.name: system for system in (RAW, TARRY, DBOS, DBOS_ROLLBACK)}
DEFAULT = ("raw", "tarry", "dbos")

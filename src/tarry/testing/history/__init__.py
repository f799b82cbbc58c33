"""A history checker: what a system of signals did under faults, judged by twelve rules.

Processes append what they see to files (`Recorder`); afterwards the files are read as one history, the
store is dumped (`Final`), and `check` names every rule that was broken, with the lines that show it.
"""

from tarry.testing.history.events import (
    Acked,
    Done,
    Effect,
    Ended,
    Event,
    Fail,
    Healed,
    History,
    Info,
    Invoke,
    Line,
    Ok,
    Outcome,
    Pass,
    Received,
    fingerprint,
)
from tarry.testing.history.final import ArrivalRow, EntryRow, Final, HeadRow, LetterRow, RunRow, WaitRow
from tarry.testing.history.linearize import linearizable
from tarry.testing.history.recorder import Recorder, read
from tarry.testing.history.report import Report, Violation
from tarry.testing.history.verdict import check, invariants

__all__ = [
    "Acked",
    "ArrivalRow",
    "Done",
    "Effect",
    "Ended",
    "EntryRow",
    "Event",
    "Fail",
    "Final",
    "HeadRow",
    "Healed",
    "History",
    "Info",
    "Invoke",
    "LetterRow",
    "Line",
    "Ok",
    "Outcome",
    "Pass",
    "Received",
    "Recorder",
    "Report",
    "RunRow",
    "Violation",
    "WaitRow",
    "check",
    "fingerprint",
    "invariants",
    "linearizable",
    "read",
]

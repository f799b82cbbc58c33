"""Faults to plant into a copy of the source, as data: a file, what it says, and what it says with the fault.

Each is a mistake that somebody has made, in one system or another. A simulator that does not find them would not
find the next one either.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`edits` are (file under src/tarry, old text, new text); an old text that is not there is an error."""

    name: str
    edits: tuple[tuple[str, str, str], ...]


def fault(name: str, file: str, old: str, new: str) -> Fault:
    return Fault(name, ((file, old, new),))


FAULTS = (
    fault(
        "no fence: a write under an old epoch is taken",
        "core/decide/advance.py",
        "    if run.worker != command.worker or run.epoch != command.epoch:\n",
        "    if over(run):\n",
    ),
    fault(
        "park in two steps: what came between is not looked at",
        "core/decide/advance.py",
        "    if _answerable(draft, part):\n        return\n",
        "",
    ),
    fault(
        "park only on what is newer than what was seen",
        "core/decide/advance.py",
        "        w.outcome is not None or ",
        "        (w.number is not None and w.number == draft.run.arrivals) or ",
    ),
    fault(
        "the deadline is computed again on replay",
        "engine/inflight.py",
        "            if wait not in on_file:\n",
        "            if True:\n",
    ),
    fault(
        "a timer is not bound to its wait: it takes all waits on the name with it",
        "core/decide/wait.py",
        '        if not fired:\n            draft.close_name(wait, "timeout")\n',
        '        if not fired:\n            draft.close_name(wait, "timeout")\n'
        "            for other in draft.open_waits(wait.kind, wait.name):\n"
        "                settle(draft, other, Outcome.TIMEOUT, draft.number())\n",
    ),
    fault(
        "a key without a digest: a changed payload under it is a duplicate",
        "core/decide/deliver.py",
        "    equal = same(command.payload, known.payload) and command.actor == known.actor\n",
        "    equal = True\n",
    ),
    fault(
        "a worker that was reaped renews its lease",
        "store/memory.py",
        "        if worker.id not in self._tables.workers:\n            return False\n",
        "",
    ),
    fault(
        "an outcome is decided during replay, by the local clock",
        "engine/waits.py",
        "            if on_file is not None:\n                self.settled(on_file)\n",
        "            if on_file is not None:\n"
        "                if on_file.outcome is None and (on_file.deadline_ms or 1 << 60) <= self.turn.now_ms() + 50:\n"
        "                    on_file = replace(on_file, outcome=Outcome.TIMEOUT, number=self.turn.run.arrivals)\n"
        "                self.settled(on_file)\n",
    ),
    Fault(
        "wake-ups without a poll: a lost datagram is a lost wake-up",
        (
            (
                "engine/worker.py",
                "        return before != self._change\n",
                "        return False\n",
            ),
            (
                "engine/worker.py",
                "LONGEST_S = 60.0\n",
                "LONGEST_S = 1_000_000.0\n",
            ),
            (
                "engine/hosting.py",
                "        self._strays = strays\n        self._worker.look()\n",
                "        self._strays = strays\n",
            ),
        ),
    ),
    Fault(
        "outcomes are given back in the order of calls",
        (
            (
                "core/replay.py",
                "(self._queue, (rank, number, self._calls, call))",
                "(self._queue, (rank, self._calls, number, call))",
            ),
            (
                "core/replay.py",
                "        rank, number, _, call = self._queue[0]\n",
                "        rank, _, number, call = self._queue[0]\n",
            ),
        ),
    ),
)

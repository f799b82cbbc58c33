"""What a schedule is judged by: the history that the checker reads, and the order in which passes took things in.

The bodies tell what they were given, the senders what they were answered. The order of outcomes is compared
between all passes of a run: each must be the beginning of the longest.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tarry.core.journal import Journal
from tarry.engine.channels import Message
from tarry.model import Entry, RunRecord
from tarry.testing.history import Acked, Done, Effect, Ended, Event, History, Line, Outcome, Pass, Received, fingerprint
from tarry.testing.sim.loop import PROCESS, SimLoop
from tarry.testing.sim.names import payload_text


class Oracle:
    """An `Observer` of bodies, and the recorder of everybody else."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._lines: list[Line] = []
        self._last_ns = 0
        self.muted = False
        self._orders: dict[str, dict[int, list[str]]] = defaultdict(dict)
        self._ended: dict[str, int] = {}

    @property
    def history(self) -> History:
        return History(tuple(self._lines))

    def write(self, event: Event) -> None:
        """Instants are unique, so that what happened first is before what happened next, however short the time."""
        if self.muted:
            return
        process = PROCESS.get() or self._loop.world
        now_ns = round(self._loop.time() * 1e9)
        self._last_ns = max(self._last_ns + 1, now_ns)
        self._lines.append(Line(process.name, now_ns, self._last_ns, event))

    @property
    def last_ns(self) -> int:
        return self._last_ns

    # --- bodies ---

    def took(self, run_id: str, epoch: int, label: str, what: str) -> None:
        if not self.muted:
            self._orders[run_id].setdefault(epoch, []).append(f"{label}: {what}")

    def outcome(self, run_id: str, epoch: int, label: str, name: str, what: str, payload: object) -> None:
        text = payload_text(payload) if what == "payload" else None
        deadline_ms = 0 if what == "timeout" else None  # that it was due is judged by the rows
        self.write(Outcome(run_id, name, what, text, label, 0, deadline_ms, pass_id=f"{run_id}@{epoch}"))
        if "/" not in label:  # what a step takes in is not given again once the step is on record
            self.took(run_id, epoch, label, f"{what} {text}")

    def received(self, run_id: str, epoch: int, message: Message[Any], fold: bool) -> None:
        arrival = message.arrival
        text = fingerprint(arrival.payload)
        pass_id = f"{run_id}@{epoch}"
        self.write(Received(run_id, arrival.name, arrival.key, arrival.no, text, pass_id, fold))

    def acked(self, run_id: str, epoch: int, message: Message[Any]) -> None:
        arrival = message.arrival
        self.write(Acked(run_id, arrival.name, arrival.key, arrival.no, f"{run_id}@{epoch}"))

    def effect(self, run_id: str, epoch: int, step: str, key: str, attempt: int, once: bool) -> None:
        scope = key[len(run_id) + 1 : len(key) - len(step)]
        self.write(Effect(run_id, step, key, attempt, epoch, scope=scope, once=once))

    def done(self, run_id: str, epoch: int, step: str, key: str, attempt: int) -> None:
        scope = key[len(run_id) + 1 : len(key) - len(step)]
        self.write(Done(run_id, step, key, attempt, epoch, scope))

    # --- the engine's seams ---

    def claimed(self, worker: str, journal: Journal) -> None:
        run = journal.run
        stays = [entry for entry in journal.entries if ":" not in entry.scope]  # a fold's rounds go, and their numbers
        read = tuple((entry.no, digest_of(entry)) for entry in stays)
        heads = tuple((name, slot.acked) for name, slot in journal.slots.items())
        self.write(Pass(run.id, f"{run.id}@{run.epoch}", worker, run.epoch, read, heads))

    def ended(self, run: RunRecord) -> None:
        result = None if run.result is None else run.result.decode()
        self.write(Ended(run.id, run.status.value, result))

    # --- the verdict on orders ---

    def disorders(self) -> list[str]:
        """Passes of a run that took outcomes in, in another order than the longest of them."""
        found: list[str] = []
        for run_id, orders in self._orders.items():
            longest = max(orders.values(), key=len)
            for epoch, order in orders.items():
                if order != longest[: len(order)]:
                    at = next(i for i, text in enumerate(order) if text != longest[i])
                    told = f"outcome {at} was {order[at]!r}, and {longest[at]!r} in the longest pass"
                    found.append(f"order: {run_id}: in the pass of epoch {epoch} {told}")
        return found

    def order(self, run_id: str) -> list[str]:
        """The order of the longest pass."""
        return max(self._orders[run_id].values(), key=len, default=_NOTHING)


_NOTHING: list[str] = []


def digest_of(entry: Entry) -> str:
    """Tells entries apart; when it was written does not count."""
    value = "" if entry.value is None else entry.value.decode()
    return "|".join((entry.kind, entry.scope, entry.name, str(entry.round), entry.outcome, value, str(entry.arrival)))

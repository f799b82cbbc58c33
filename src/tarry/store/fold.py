"""The fold: commands decided in order over the runs as loaded, each seeing the changes before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tarry.core.commands import Advance, Claim, Command
from tarry.core.decide import decide, needs
from tarry.core.view import Needs, View, Write
from tarry.errors import StoreError, TarryError
from tarry.model import RunRecord, Status
from tarry.store.protocol import Transaction


@dataclass(frozen=True)
class Notes:
    """Who has to hear of a commit: runs that became ready, the owners of running runs that were touched, and
    runs that ended."""

    ready: frozenset[str] = frozenset()
    nudges: frozenset[tuple[str, str]] = frozenset()
    ended: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ready or self.nudges or self.ended)


class Fold:
    """Decides commands in order over views loaded once, and collects what they write."""

    def __init__(self, tx: Transaction, commands: Sequence[Command]) -> None:
        self._tx = tx
        self._now = tx.now_ms
        self.views = tx.load(_needs(commands)) if commands else {}
        self._before = {run_id: view.run for run_id, view in self.views.items()}
        self._writes: list[Write] = []
        self._touched: set[tuple[str, str]] = set()

    def decide(self, command: Command) -> Any:
        """The command's result; an exception of ours is a result too."""
        view = self.views[command.run_id]
        try:
            decision = decide(view, command, self._now)
        except StoreError:
            raise
        except TarryError as refused:
            return refused
        if decision.writes:
            self._note(view, command)
            view.put(decision.writes)
            self._writes.extend(decision.writes)
        return decision.result

    def _note(self, view: View, command: Command) -> None:
        owned = view.run is not None and view.run.worker is not None
        if owned and not isinstance(command, (Advance, Claim)):
            assert view.run is not None
            assert view.run.worker is not None
            self._touched.add((view.run.id, view.run.worker))

    def save(self) -> None:
        if self._writes:
            self._tx.save(self._writes)

    def notes(self) -> Notes:
        ready: set[str] = set()
        ended: set[str] = set()
        for run_id, view in self.views.items():
            _compare(self._before[run_id], view.run, ready, ended)
        return Notes(frozenset(ready), frozenset(self._touched), frozenset(ended))


def _compare(before: RunRecord | None, after: RunRecord | None, ready: set[str], ended: set[str]) -> None:
    if after is None or after is before:
        return
    if after.status is Status.READY:
        ready.add(after.id)
    elif after.ended_ms is not None:
        ended.add(after.id)


def _needs(commands: Sequence[Command]) -> dict[str, Needs]:
    wanted: dict[str, Needs] = {}
    for command in commands:
        more = needs(command)
        known = wanted.get(command.run_id)
        wanted[command.run_id] = more if known is None else known | more
    return wanted

"""load → decide → save: a batch of commands as one transaction.

Sweeps (claim, reap, heartbeat …) concern a worker, not one run: they run first and become commands on single
runs. The commands of one run are folded in order, each seeing the changes before it; one that is refused
fails alone. A database error rolls all of it back, and the commands are then tried one by one, so that only
the guilty one fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarry.core.commands import Command
from tarry.store.fold import Fold, Notes
from tarry.store.protocol import Transaction
from tarry.store.sweeps import Sweep


@dataclass
class Batch:
    """One transaction's work. `results` has a value or an exception for each item, in order."""

    items: Sequence[Command | Sweep]
    documents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    results: list[Any] = field(default_factory=list[Any])
    notes: Notes = field(default_factory=Notes)

    def run(self, tx: Transaction) -> None:
        """Does all of it inside `tx`, short of the commit."""
        if self.documents:
            tx.intern(self.documents)
        swept = {i: item.run(tx) for i, item in enumerate(self.items) if isinstance(item, Sweep)}
        commands = [item for item in self.items if not isinstance(item, Sweep)]
        fold = Fold(tx, commands)
        decided = iter([fold.decide(command) for command in commands])
        fold.save()
        self.results = [swept[i] if i in swept else next(decided) for i in range(len(self.items))]
        self.notes = fold.notes()

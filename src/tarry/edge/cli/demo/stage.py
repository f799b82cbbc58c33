"""How the demo looks: scenes, receipts, and the tables at the end. Readable at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tarry.edge.cli.demo.count import Count, Delivery
from tarry.edge.cli.demo.world import Entry
from tarry.edge.cli.look import console
from tarry.edge.cli.text import clean

INDENT = (0, 0, 0, 4)
STYLES = {"duplicate": "cyan", "conflict": "yellow", "invalid": "yellow", "stale": "yellow"}


class Stage:
    def __init__(self) -> None:
        self.out = console()
        self._scenes = 0

    def title(self, text: str, more: str) -> None:
        self.out.print(Text(text, style="bold"))
        self.say(more)

    def scene(self, title: str, look: str) -> None:
        """A scene, and what to look at."""
        self._scenes += 1
        self.out.print(Text.assemble((f"\n{self._scenes}  ", "bold cyan"), (title, "bold")))
        self.say(look, "dim")

    def say(self, text: str, style: str = "") -> None:
        self.out.print(Padding(Text(text, style=style), INDENT, expand=False))

    def killed(self, pid: int, when: str) -> None:
        self.out.print(Padding(Text.assemble((f"kill -9 {pid}", "bold red"), f"  {when}"), INDENT, expand=False))

    def delivery(self, sent: Delivery) -> None:
        """One event and the receipts of its copies, with the fields that did not fit."""
        line = Text(f"{sent.run}  {sent.what}  → ")
        for number, status in enumerate(sent.statuses):
            line.append(", " if number else "").append(status, STYLES.get(status, "green"))
        reasons = {str(receipt["reason"]) for receipt in sent.receipts if receipt["reason"]} - {*sent.statuses}
        line.append(f" ({', '.join(sorted(reasons))})" if reasons else "", "dim")
        self.out.print(Padding(line, INDENT, expand=False))
        for error in (error for receipt in sent.receipts for error in receipt["errors"]):
            self.say(f"    {clean(error['path'])}: {clean(error['reason'])}", "dim")

    def effects(self, entries: Iterable[Entry]) -> None:
        """A row per run: each of its steps, attempts / effects."""
        table = Table("run", "steps: attempts / effects", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for run, steps in groupby(entries, lambda entry: entry.key.partition("/")[0]):
            cells = Text("   ").join(_cell(entry) for entry in steps)
            table.add_row(Text(run), cells)
        self.out.print(Padding(table, INDENT, expand=False))

    def receipts(self, deliveries: Iterable[Delivery]) -> None:
        told = [status for sent in deliveries for status in sent.statuses]
        summary = ", ".join(f"{told.count(status)} {status}" for status in sorted(set(told)))
        self.say(f"\n{len(told)} deliveries: {summary}\n")

    def verdict(self, result: Count, kills: int) -> None:
        for name, found in (("lost", result.lost), ("applied twice", result.twice), ("wrong receipt", result.wrong)):
            for text in found:
                self.out.print(Text(f"{name}: {text}", style="bold red"))
        told = f"{kills} kills, {result.repeated} attempts repeated: "
        told += f"{len(result.lost)} lost, {len(result.twice)} applied twice, {len(result.wrong)} receipts wrong"
        self.out.print(Text(f"\n{told}", style="bold green" if result.good else "bold red"))


def _cell(entry: Entry) -> Text:
    name = entry.key.rpartition("/")[2].replace("thank:", "")
    style = "bold red" if entry.effects != 1 else "yellow" if entry.attempts != 1 else ""
    return Text(f"{name} {entry.attempts}/{entry.effects}", style=style)

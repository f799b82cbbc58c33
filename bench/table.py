"""What is shown on the terminal and what is kept as JSON.

A ratio says how many times better than the rival a system is, in both directions alike: more of what is to be
more, less of what is to be less.
"""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.contest import Entry
from bench.loads import Measure
from bench.systems import LIMIT, OURS, RIVAL

Pair = tuple[str, str]


def number(value: float) -> str:
    """Three figures that count, and no more digits than they need."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}" if value >= 0.001 else f"{value:.1g}"


def better(measure: Measure, value: float | None, other: float | None) -> float | None:
    """How many times better the value is than the other one; None where that means nothing."""
    if not value or not other:
        return None
    return value / other if measure.more_is_better else other / value


def met(measure: Measure, value: float, ratio: float | None) -> bool:
    reached = value >= measure.goal if measure.more_is_better else value <= measure.goal
    return reached and (measure.ratio is None or ratio is None or ratio >= measure.ratio)


class Results:
    """The entries of a contest, read by measure and system."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.systems = list(dict.fromkeys(entry.system.name for entry in entries))
        self.loads = list(dict.fromkeys(entry.load for entry in entries))

    def entry(self, load: str, system: str) -> Entry | None:
        found = (e for e in self.entries if e.load.name == load and e.system.name == system)
        return next(found, None)

    def median(self, load: str, system: str, measure: Measure) -> float | None:
        entry = self.entry(load, system)
        return entry.median(measure.name) if entry else None

    def ratio(self, load: str, pair: Pair, measure: Measure) -> float | None:
        value, other = (self.median(load, system, measure) for system in pair)
        return better(measure, value, other)

    def pairs(self) -> list[Pair]:
        """Who is compared with whom: each with the rival, and ours with what the machine allows."""
        wanted = [(name, RIVAL) for name in self.systems if name != RIVAL] + [(OURS, LIMIT)]
        return [pair for pair in wanted if set(pair) <= set(self.systems)]

    def show(self, console: Console) -> None:
        table = Table("load", "what", "unit", title="medians, and half the spread in percent")
        for heading in [*self.systems, *map(" : ".join, self.pairs()), "goal"]:
            table.add_column(heading, justify="right", no_wrap=True)
        for load in self.loads:
            for measure in load.measures:
                table.add_row(*self.row(load.name, measure))
        console.print(table)
        for line in self.remarks():
            console.print(line, highlight=False, style="dim")

    def row(self, load: str, measure: Measure) -> list[str]:
        cells = [self.cell(load, system, measure) for system in self.systems]
        for pair in self.pairs():
            ratio = self.ratio(load, pair, measure)
            cells.append("–" if ratio is None else f"{number(ratio)}x")
        return [measure.name, measure.what, measure.unit, *cells, self.goal(load, measure)]

    def cell(self, load: str, system: str, measure: Measure) -> str:
        entry = self.entry(load, system)
        value = entry.median(measure.name) if entry else None
        if entry is None or value is None:
            return "failed" if entry and entry.failure else "–"
        if len(entry.trials) == 1:
            return number(value)
        return f"{number(value)} [dim]±{50 * entry.spread(measure.name):.0f}[/]"

    def goal(self, load: str, measure: Measure) -> str:
        text = number(measure.goal) + (f", {measure.ratio:g}x" if measure.ratio else "")
        value = self.median(load, OURS, measure)
        if value is None:
            return text
        return f"{text} {'✓' if met(measure, value, self.ratio(load, (OURS, RIVAL), measure)) else '✗'}"

    def remarks(self) -> list[str]:
        """What each figure is not like for like with, what was left out, and what failed."""
        systems = {entry.system.name: entry.system for entry in self.entries}
        lines = [f"{name}: {s.notes['all']}" for name, s in systems.items() if "all" in s.notes]
        for entry in self.entries:
            where = f"{entry.load.name} {entry.system.name}"
            lines += [f"{where}: {note}" for note in entry.notes]
            lines += [f"{where}: not played: {entry.skipped}"] if entry.skipped else []
            lines += [f"{where}: FAILED: {entry.failure}"] if entry.failure else []
        return lines

    def kept(self) -> list[dict[str, Any]]:
        return [self.record(entry, measure) for entry in self.entries for measure in entry.load.measures]

    def record(self, entry: Entry, measure: Measure) -> dict[str, Any]:
        return {
            "measure": measure.name,
            "what": measure.what,
            "unit": measure.unit,
            "goal": measure.goal,
            "load": entry.load.name,
            "sizes": {name: value for name, value in vars(entry.load).items() if name != "name"},
            "system": entry.system.name,
            "about": entry.about,
            "median": entry.median(measure.name),
            "ratio": self.ratio(entry.load.name, (entry.system.name, RIVAL), measure),
            "values": entry.values(measure.name),
            "notes": [entry.system.notes.get("all", ""), *entry.notes],
            "skipped": entry.skipped,
            "failure": entry.failure,
        }

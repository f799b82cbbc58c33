"""The order of play: load by load, the systems in turn, several times over; what counts is the median.

In turn, so that an hour in which the machine is slow is slow for all. A trial that fails or passes its limit
is told and not repeated; it ends nothing but itself.
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.crew import Crew, Failed, Gone
from bench.loads import Figures, Load
from bench.pace import percentile, spread
from bench.systems import System


@dataclass(frozen=True)
class Trial:
    """One load, once, by one system: figures, or why there are none."""

    figures: Figures = field(default_factory=dict)
    failure: str = ""


@dataclass
class Entry:
    """All trials of one load by one system."""

    load: Load
    system: System
    about: dict[str, str] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)

    @property
    def failure(self) -> str:
        return next((trial.failure for trial in self.trials if trial.failure), "")

    @property
    def over(self) -> bool:
        return bool(self.skipped or self.failure)

    @property
    def skipped(self) -> str:
        return self.system.skips.get(self.load.name, "")

    @property
    def notes(self) -> list[str]:
        return [note for load, note in self.system.notes.items() if load == self.load.name]

    def values(self, measure: str) -> list[float]:
        return [trial.figures[measure] for trial in self.trials if measure in trial.figures]

    def median(self, measure: str) -> float | None:
        values = self.values(measure)
        return percentile(values, 50) if values else None

    def spread(self, measure: str) -> float:
        return spread(self.values(measure))


async def contest(
    loads: Sequence[Load], systems: Sequence[System], times: int, work: Path, tell: Callable[[str], None]
) -> list[Entry]:
    """Play it; the entries in the order of loads and systems."""
    entries: list[Entry] = []
    for load in loads:
        playing = [Entry(load, system) for system in systems]
        entries += playing
        for turn in range(times):
            for entry in playing:
                if not entry.over:
                    tell(f"{load.name} {entry.system.name} {turn + 1}/{times}")
                    entry.trials.append(await trial(entry, work))
    return entries


async def trial(entry: Entry, work: Path) -> Trial:
    """Play a load once in a fresh folder, within its limit."""
    folder = work / f"{entry.load.name}-{entry.system.name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        async with asyncio.timeout(entry.load.limit_s), Crew(entry.system, folder) as crew:
            figures = await entry.load.run(crew)
            entry.about = crew.about
            return Trial(figures)
    except TimeoutError:
        return Trial(failure=f"not done within {entry.load.limit_s:g} s")
    except (Failed, Gone, AssertionError) as error:
        return Trial(failure=str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)

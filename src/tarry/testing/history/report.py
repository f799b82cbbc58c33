"""What the checker says: each violation with its rule, its harm and the lines that show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Harm = Literal["lost", "applied twice", "stuck", "wrong"]


@dataclass(frozen=True)
class Violation:
    """A rule that was broken. `harm` is what it costs; `wrong` is an answer or a row that is not true."""

    rule: str
    run: str
    name: str
    harm: Harm
    text: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = "".join(f"\n    {line}" for line in self.evidence)
        return f"{self.rule} {self.harm}: {self.run}/{self.name}: {self.text}{shown}"


@dataclass(frozen=True)
class Report:
    """All violations, and how much there was to violate: a clean report about nothing proves nothing."""

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return not self.violations

    def of(self, harm: Harm) -> int:
        return sum(violation.harm == harm for violation in self.violations)

    def summary(self) -> str:
        """One line: "0 lost, 0 applied twice, 0 stuck", and what else is wrong, if anything is."""
        line = f"{self.of('lost')} lost, {self.of('applied twice')} applied twice, {self.of('stuck')} stuck"
        if wrong := self.of("wrong"):
            rules = sorted({v.rule for v in self.violations if v.harm == "wrong"}, key=lambda rule: int(rule[1:]))
            line += f", {wrong} wrong ({', '.join(rules)})"
        return line

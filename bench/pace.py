"""Instants into figures. All processes of a machine read one monotonic clock, so instants of two compare."""

import time
from collections.abc import Sequence
from typing import TypedDict

instant = time.monotonic


class Pace(TypedDict):
    """How a sequence went: its ends, and seconds per item over its first and its last tenth."""

    began: float
    ended: float
    first_s: float
    last_s: float


def pace(began: float, instants: Sequence[float]) -> Pace:
    """The pace of items that were done at these instants; a cost that grows shows as a slow last tenth."""
    tenth = len(instants) // 10
    first = (instants[tenth] - instants[0]) / tenth
    last = (instants[-1] - instants[-1 - tenth]) / tenth
    return Pace(began=began, ended=instants[-1], first_s=first, last_s=last)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least so many percent of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100).__int__() - 1)]


def spread(values: Sequence[float]) -> float:
    """The distance between the extremes, as a part of the middle."""
    middle = percentile(values, 50)
    return (max(values) - min(values)) / middle if middle else 0.0

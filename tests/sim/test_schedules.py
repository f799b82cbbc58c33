"""Simulated clusters: every schedule is whole, and the same seed is the same schedule."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarry.testing.sim.campaign import tally
from tarry.testing.sim.schedule import play

SEEDS = Path(__file__).with_name("seeds.txt")
FAILED_BEFORE = [
    int(line.split()[0]) for line in SEEDS.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
]


@pytest.mark.parametrize("seed", FAILED_BEFORE)
def test_what_once_failed_stays_whole(seed: int):
    """SPEC 3-5, 11: see seeds.txt for what each of them found."""
    assert tally([seed]).broken == {}


def test_schedules_are_whole():
    """SPEC 3-5, 11: the rest of them is played by `make campaign`."""
    told = tally(range(60))
    assert told.broken == {}
    assert told.counts["commits"] > 1_000
    assert told.counts["kill"] > 10


def test_one_seed_is_one_schedule():
    first, again = (play(9, tracing=True) for _ in range(2))
    assert first.digest == again.digest
    assert first.trace == again.trace
    assert first.digest != play(10).digest


def test_the_order_of_sets_of_text_does_not_matter():
    """Two hash seeds, one trace."""
    ask = "from tarry.testing.sim.campaign import tally; print(tally(range(100, 112)).digest)"
    told = {
        subprocess.run(
            [sys.executable, "-c", ask],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1

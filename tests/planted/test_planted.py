"""Planted faults: the simulator finds each, and says after how many seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.faults import FAULTS, Fault, fault
from tests.planted.hunt import NotPlanted, hunt, plant

QUICK = 60


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name)
def test_each_fault_can_be_planted(planted: Fault, tmp_path: Path):
    """The source still says what the fault changes."""
    src = plant(planted, tmp_path)
    for file, _, new in planted.edits:
        assert new in (src / "tarry" / file).read_text(encoding="utf-8")


def test_a_fault_that_does_not_fit_is_an_error(tmp_path: Path):
    with pytest.raises(NotPlanted, match="0 times"):
        plant(fault("old", "model.py", "what is not there", ""), tmp_path)


@pytest.mark.parametrize("name", ["park in two steps", "a key without a digest"])
def test_the_quick_ones_are_found(name: str):
    planted = next(known for known in FAULTS if known.name.startswith(name))
    assert hunt(planted, QUICK) is not None


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name)
def test_each_fault_is_found(planted: Fault):
    found = hunt(planted)
    assert found is not None
    print(f"{planted.name}: {found[0]} seeds, by {found[1]}")

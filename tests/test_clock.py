"""The machine's clocks and ids."""

import os
import subprocess
import sys

import pytest

from tarry import clock

COUNT = 2_000


def test_deadlines_and_leases_have_clocks_of_their_own():
    """SPEC 6.5: a lease counts within one boot, by a clock that nobody sets."""
    now = clock.SystemClock()
    assert now.now_ms() > 1_600_000_000_000
    first = now.lease_ms()
    assert 0 < first <= now.lease_ms() < now.now_ms()


def test_every_process_of_a_boot_sees_the_same_boot():
    """SPEC 6.5"""
    ask = [sys.executable, "-c", "from tarry.clock import SystemClock; print(SystemClock().boot)"]
    told = subprocess.run(ask, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout.strip()
    assert told == clock.SystemClock().boot != ""


def test_where_no_boot_can_be_told_all_are_one(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(clock, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setattr(clock, "_SYSCTL", ("kern.nothing_of_this_name",))
    clock.boot_id.cache_clear()
    try:
        assert clock.boot_id() == "unknown"
    finally:
        clock.boot_id.cache_clear()


def test_ids_are_unique_printable_and_sort_by_time(monkeypatch: pytest.MonkeyPatch):
    made = {clock.new_id("run") for _ in range(COUNT)}
    assert len(made) == COUNT
    assert all(len(one) == 28 and one.startswith("run_") and one[4:].isalnum() for one in made)
    monkeypatch.setattr(clock.time, "time_ns", lambda: 2_000_000_000_000_000_000)
    assert clock.new_id("run") > max(made)

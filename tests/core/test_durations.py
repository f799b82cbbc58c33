"""Durations and instants as whole milliseconds."""

import math
import os
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.durations import LONGEST, at_least_zero_ms, duration_ms, from_ms, instant_ms
from tarry.errors import InvalidDuration, InvalidInstant

BERLIN = ZoneInfo("Europe/Berlin")
LONGEST_MS = LONGEST // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("1h30m", 5_400_000),
        ("90s", 90_000),
        ("1d", 86_400_000),
        ("500ms", 500),
        ("1m500ms", 60_500),
        ("2w", 1_209_600_000),
        ("1.5h", 5_400_000),
        ("0.05s", 50),
        ("PT24H", 86_400_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("P2W", 1_209_600_000),
        ("PT0,5S", 500),
        (60, 60_000),
        (0.05, 50),
        (1.1, 1_100),
        (1e-3, 1),
        (timedelta(milliseconds=50), 50),
        (timedelta(days=60), 5_184_000_000),
        (timedelta(microseconds=1_500), 2),
        ("3653d", LONGEST_MS),
        (LONGEST, LONGEST_MS),
    ],
)
def test_durations(value: Any, ms: int):
    """SPEC 6.1, S38, S63: a timedelta, seconds, text with units or ISO 8601; to the millisecond."""
    assert duration_ms(value) == ms
    assert at_least_zero_ms(value) == ms


NONSENSE: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    2**63,
    10**6_000,
    timedelta.max,
    LONGEST + timedelta(milliseconds=1),
    "3654d",
    "99999999999999w",
    "1000000000000000w",
    True,
    None,
    b"1h",
    [1],
    "",
    "P",
    "PT",
    "P1DT",
    "1y",
    "P1Y",
    "P1M",
    "90",
    "1h 30m",
    "30m1h",
    "1h1h",
    "-1h",
    "1e3s",
    "1_0s",
    "١h",
    "1H",
    "ms",
    " 1h",
    "1h\n",
    "x" * 10_000,
]


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: str(type(value)))
def test_nonsense_is_refused_at_the_call(value: Any):
    """SPEC 6.1, S38: no bad value reaches a timer; the error says which forms there are."""
    for read in (duration_ms, at_least_zero_ms):
        with pytest.raises(InvalidDuration, match="1h30m") as caught:
            read(value)
        assert isinstance(caught.value, ValueError)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "value", [0, -5, 0.0, -0.1, 0.0004, "0s", timedelta(0), timedelta(-1), timedelta.min, -(2**63)]
)
def test_only_what_may_be_overdue_may_be_nothing(value: Any):
    """SPEC 6.1, S38: a sleep of nothing, or less, fires at once; a timeout of nothing is refused."""
    assert at_least_zero_ms(value) == 0
    with pytest.raises(InvalidDuration, match="shorter than 1 ms"):
        duration_ms(value)


@given(st.timedeltas(timedelta(milliseconds=1), LONGEST))
def test_a_timedelta_is_its_text(value: timedelta):
    """SPEC 6.1: however it is said, it is one duration."""
    ms = duration_ms(value)
    assert abs(timedelta(milliseconds=ms) - value) <= timedelta(microseconds=500)
    assert duration_ms(f"{ms}ms") == ms
    assert duration_ms(f"PT{ms // 1000}.{ms % 1000:03}S") == ms
    assert duration_ms(ms / 1000) == ms


# --- instants ----------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.timezones(), min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))
def test_an_instant_comes_back_in_utc(value: datetime):
    """SPEC 6.1, S39: never before what was said, and less than a millisecond after."""
    late = from_ms(instant_ms(value)) - value
    assert timedelta(0) <= late < timedelta(milliseconds=1)
    assert from_ms(instant_ms(value)).tzinfo is UTC


class Timeless(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None


class Broken(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1),
        datetime(2026, 1, 1, tzinfo=Timeless()),
        datetime(2026, 1, 1, tzinfo=Broken()),
        date(2026, 1, 1),
        time(1),
        1_700_000_000,
        "2026-01-01T00:00:00Z",
        None,
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_instant_is_refused(value: Any):
    """SPEC 6.1, S39: naive datetimes first of all; the error says what to give."""
    with pytest.raises(InvalidInstant, match="time zone"):
        instant_ms(value)


def test_an_instant_is_the_same_wherever_the_process_is():
    """SPEC 6.1, S39: the process's own zone says nothing."""
    code = (
        "from datetime import *\nfrom tarry.core.durations import *\n"
        "print(instant_ms(datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))), from_ms(1))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"TZ": zone}, capture_output=True, text=True, check=True
        ).stdout
        for zone in ("Europe/Berlin", "America/New_York", "UTC")
    }
    assert told == {"1782900000000 1970-01-01 00:00:00.001000+00:00\n"}


def test_clocks_that_are_put_forward_and_back():
    """SPEC 6.1, S90: a local time that is not there is taken once, shifted forward; one that is there twice is two
    instants, told apart by `fold`."""
    gap = instant_ms(datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN))
    assert from_ms(gap).astimezone(BERLIN) == datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN)
    first, second = (instant_ms(datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=BERLIN)) for fold in (0, 1))
    assert second - first == 3_600_000

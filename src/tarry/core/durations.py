"""Durations and instants as whole milliseconds (rule 6.1).

A duration is time that elapses, never time on a clock's face: years and months, which have no fixed length, are
refused, and a day has 24 hours. An instant has a time zone, so that it is the same in every process. What is out of
range is refused at the call: no bad value can reach a timer.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from tarry.core.shown import shown, type_name
from tarry.errors import InvalidDuration, InvalidInstant

LONGEST = timedelta(days=3653)
"""Ten years, leap days included."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MS
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MS

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = r"(?:([0-9]{1,15}(?:[.][0-9]{1,9})?)%s)?"
_TEXT = re.compile("".join(_PART % unit for unit in _UNITS))
_ISO = re.compile(f"P{_PART % 'W'}{_PART % 'D'}(?:T(?!$){_PART % 'H'}{_PART % 'M'}{_PART % 'S'})?")
_FORM = 'give text like "1h30m", "500ms" or "PT24H", with units; years and months have no fixed length'


def duration_ms(value: timedelta | int | float | str) -> int:
    """A timedelta, seconds, "1h30m" or ISO 8601 ("PT24H"), from 1 ms to 10 years; else InvalidDuration."""
    ms = _milliseconds(value)
    if ms < 1:
        raise InvalidDuration(value=shown(value), reason="it is shorter than 1 ms")
    return ms


def at_least_zero_ms(value: timedelta | int | float | str) -> int:
    """The same for what may be overdue: nothing and less than nothing are 0."""
    return max(0, _milliseconds(value))


def instant_ms(value: datetime) -> int:
    """Milliseconds since 1970 of a datetime with a time zone, rounded up: nothing fires before its instant."""
    if reason := _no_instant(value):
        raise InvalidInstant(value=shown(value), reason=reason)
    ms = -((EPOCH - value) // _MS)
    if not _FIRST_MS <= ms <= _LAST_MS:
        raise InvalidInstant(value=shown(value), reason="in UTC it is outside of the years 1 to 9999")
    return ms


def from_ms(ms: int) -> datetime:
    """The instant as a datetime in UTC."""
    return EPOCH + timedelta(milliseconds=ms)


def _milliseconds(value: object) -> int:
    told = _told(value)
    if isinstance(told, str):
        raise InvalidDuration(value=shown(value), reason=told)
    if told > LONGEST // _MS:
        raise InvalidDuration(value=shown(value), reason="it is longer than 10 years")
    return told


def _told(value: object) -> int | str:
    """The milliseconds, or why it is none."""
    if isinstance(value, timedelta):
        return round(value / _MS)
    if isinstance(value, bool):
        return "it is a bool"
    if isinstance(value, int):
        return value * 1_000
    if isinstance(value, float):
        return round(value * 1_000) if math.isfinite(value * 1_000) else "it is not a finite number of seconds"
    if isinstance(value, str):
        ms = _from_text(value)
        return _FORM if ms is None else ms
    return f"it is of type {type_name(type(value))}"


@lru_cache(maxsize=1024)
def _from_text(text: str) -> int | None:
    iso = text.startswith("P")
    found = (_ISO if iso else _TEXT).fullmatch(text.replace(",", ".") if iso else text)
    if found is None or not any(found.groups()):
        return None
    parts = zip(found.groups(), _UNITS.values(), strict=False)
    return round(sum(Decimal(number) * ms for number, ms in parts if number))


def _no_instant(value: object) -> str | None:
    if not isinstance(value, datetime):
        return f"it is of type {type_name(type(value))}"
    try:
        offset = value.utcoffset()
    except Exception as error:
        return f"its time zone tells no offset ({type(error).__name__})"
    if offset is None:
        return "it has no time zone, so that it would be another instant in another process"
    return None

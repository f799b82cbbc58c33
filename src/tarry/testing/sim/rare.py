"""States that a campaign must have reached, or it has shown nothing about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tarry.core.commands import Advance, Advanced, Park, Record, Refuse, Release
from tarry.errors import LeaseLost
from tarry.model import EntryKind, Outcome, Receipt
from tarry.store.sweeps import Beat, ClaimDue

SOMETIMES = (
    "timeout placed",
    "payload placed",
    "race placed",
    "closed channel placed",
    "unknown outcome recorded",
    "attempt recorded",
    "payload withdrawn",
    "park refused",
    "fence rejected a write",
    "reaped worker told",
    "claim of a lapsed worker",
    "run given back",
    "receipt delivered",
    "receipt buffered",
    "receipt duplicate",
    "receipt conflict",
    "receipt already_settled",
    "receipt not_waiting",
    "receipt invalid",
    "stale: timeout",
    "stale: lost_race",
    "stale: cancel",
    "stale: ended",
    "unknown, landed",
    "unknown, not landed",
    "look-up failed",
    "datagram lost",
    "zombie",
)


def rare(item: Any, result: Any) -> Iterator[str]:
    """What one committed command shows of them."""
    if isinstance(item, Advance):
        yield from _of_advance(item, result)
    elif isinstance(item, Beat) and isinstance(result, LeaseLost):
        yield "reaped worker told"
    elif isinstance(item, ClaimDue) and isinstance(result, LeaseLost):
        yield "claim of a lapsed worker"
    elif isinstance(result, Receipt):
        status = result.status
        yield f"stale: {result.reason}" if status == "stale" else f"receipt {status}"


def _of_advance(item: Advance, result: Any) -> Iterator[str]:
    if isinstance(result, LeaseLost):
        yield "fence rejected a write"
        return
    if not isinstance(result, Advanced):
        return
    if isinstance(item.end, Park) and not result.over:
        yield "park refused"
    if item.end == Release() and result.over:
        yield "run given back"
    for part in item.parts:
        if isinstance(part, Refuse):
            yield "payload withdrawn"
        if isinstance(part, Record):
            yield from _of_entry(part.entry.kind, part.entry.outcome)


def _of_entry(kind: EntryKind, outcome: Outcome) -> Iterator[str]:
    if kind is EntryKind.WAIT:
        yield "timeout placed" if outcome is Outcome.TIMEOUT else "payload placed"
    elif kind is EntryKind.FIRST:
        yield "race placed"
    elif kind is EntryKind.RECEIVE and outcome is Outcome.CLOSED:
        yield "closed channel placed"
    elif kind is EntryKind.STEP and outcome is Outcome.UNKNOWN:
        yield "unknown outcome recorded"
    elif kind is EntryKind.ATTEMPT:
        yield "attempt recorded"

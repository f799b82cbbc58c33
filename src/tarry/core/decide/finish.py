"""A run's end, however it comes: its waits go, what it never read becomes dead letters."""

from __future__ import annotations

from tarry.core.decide.draft import LETTER_TTL_MS, Draft
from tarry.core.states import closing
from tarry.core.view import Sweep
from tarry.model import Status


def end(
    draft: Draft,
    status: Status,
    result: bytes | None = None,
    error: bytes | None = None,
    culprit: int | None = None,
) -> None:
    """Ends the run. A cancel or a deadline that is on file has won over what the body came to (rule 3.12)."""
    if draft.run.cancelling:
        status, result = Status.CANCELLED, None
    elif draft.run.expiring:
        status, result = Status.EXPIRED, None
    unread = draft.run.buffered > 0
    draft.move(
        status,
        ended_ms=draft.now,
        result=result,
        error=error,
        culprit=culprit,
        buffered=0,
        buffered_bytes=0,
    )
    if unread or draft.waits:
        reason = closing(draft.run) or "ended"
        draft.put(Sweep(draft.run.id, reason, draft.now, draft.now + LETTER_TTL_MS, unread))
        draft.waits.clear()

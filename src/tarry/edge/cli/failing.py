"""What a failed call says and exits with: a line that helps, never a traceback unless asked for one."""

from __future__ import annotations

import os
import sys
import traceback

from tarry.edge.cli.text import clean
from tarry.errors import (
    BadInput,
    ReceiptNotFound,
    ResultTimeout,
    RunConflict,
    RunGone,
    RunNotFound,
    StoreBusy,
    StoreFull,
    TarryError,
)
from tarry.model import ReceiptStatus

OK, FAILED, USAGE, TIMED_OUT, NOT_FOUND, CONFLICT, TRY_LATER, INTERRUPTED = 0, 1, 2, 3, 4, 5, 75, 130

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (BadInput, USAGE),
    (ResultTimeout, TIMED_OUT),
    (RunNotFound, NOT_FOUND),
    (ReceiptNotFound, NOT_FOUND),
    (RunGone, CONFLICT),
    (RunConflict, CONFLICT),
    (StoreBusy, TRY_LATER),
    (StoreFull, TRY_LATER),
)

_FINE = (ReceiptStatus.DELIVERED, ReceiptStatus.BUFFERED, ReceiptStatus.DUPLICATE)


class Usage(Exception):
    """The command was called in a way that cannot work."""


def of_receipt(status: ReceiptStatus) -> int:
    return OK if status in _FINE else CONFLICT


def tell(error: Exception) -> int:
    """Says on standard error what went wrong; the exit code."""
    if os.environ.get("TARRY_LOG_LEVEL", "").lower() == "debug":
        traceback.print_exception(error)
    known = isinstance(error, (TarryError, Usage))
    text = str(error) if known else f"{type(error).__name__}: {error} (TARRY_LOG_LEVEL=debug shows where)"
    print(f"tarry: {clean(text)}", file=sys.stderr)
    if isinstance(error, Usage):
        return USAGE
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)

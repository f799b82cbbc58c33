"""What a failed call says and exits with: a line that helps, never a traceback unless asked for one."""

from __future__ import annotations

import os
import sys
import traceback

from tarry.edge.cli.text import clean
from tarry.errors import (
    BadInput,
    LimitExceeded,
    NotResolvable,
    NotRetryable,
    ReceiptNotFound,
    ResultTimeout,
    RunConflict,
    RunGone,
    RunNotFound,
    SignalModeConflict,
    StoreBusy,
    StoreFull,
    TarryError,
    UnknownSignal,
    UnknownWorkflow,
)
from tarry.model import ReceiptStatus

OK, FAILED, USAGE, TIMED_OUT, NOT_FOUND, CONFLICT, TRY_LATER, INTERRUPTED = 0, 1, 2, 3, 4, 5, 75, 130


class Usage(Exception):
    """The command was called in a way that cannot work."""


class Missing(Exception):
    """What the command is about is not there."""


_CODES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    ((Usage, BadInput), USAGE),
    (ResultTimeout, TIMED_OUT),
    ((Missing, RunNotFound, ReceiptNotFound, UnknownSignal, UnknownWorkflow), NOT_FOUND),
    ((RunGone, RunConflict, SignalModeConflict, NotResolvable, NotRetryable), CONFLICT),
    ((StoreBusy, StoreFull, LimitExceeded), TRY_LATER),
)

_FINE = (ReceiptStatus.DELIVERED, ReceiptStatus.BUFFERED, ReceiptStatus.DUPLICATE)


def of_receipt(status: ReceiptStatus) -> int:
    return OK if status in _FINE else CONFLICT


def tell(error: Exception) -> int:
    """Says on standard error what went wrong; the exit code."""
    if debugging():
        traceback.print_exception(error)
    known = isinstance(error, (TarryError, Usage, Missing))
    text = str(error) if known else f"{type(error).__name__}: {error} (--debug shows where)"
    print(f"tarry: {clean(text)}", file=sys.stderr)
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def debugging() -> bool:
    return os.environ.get("TARRY_LOG_LEVEL", "").lower() == "debug"

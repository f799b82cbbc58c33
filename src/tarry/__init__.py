"""Tarry: durable signals for Python.

The names are loaded when the first of them is used, so that a command which needs none answers at once.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from tarry.face import (
        App,
        CancelReceipt,
        Channel,
        CurrentStep,
        DriveResult,
        Fold,
        FoldMessage,
        Handle,
        Json,
        Message,
        NotRetrySafe,
        OutcomeUnknown,
        Page,
        Parked,
        Receipt,
        ReceiptStatus,
        Retry,
        Run,
        RunCancelled,
        RunConflict,
        RunExpired,
        RunFailed,
        RunNotFound,
        Safety,
        Signal,
        Status,
        StepFailed,
        SyncApp,
        TarryError,
        WaitTimeout,
        current_run,
        current_step,
    )

__all__ = [
    "App",
    "CancelReceipt",
    "Channel",
    "CurrentStep",
    "DriveResult",
    "Fold",
    "FoldMessage",
    "Handle",
    "Json",
    "Message",
    "NotRetrySafe",
    "OutcomeUnknown",
    "Page",
    "Parked",
    "Receipt",
    "ReceiptStatus",
    "Retry",
    "Run",
    "RunCancelled",
    "RunConflict",
    "RunExpired",
    "RunFailed",
    "RunNotFound",
    "Safety",
    "Signal",
    "Status",
    "StepFailed",
    "SyncApp",
    "TarryError",
    "WaitTimeout",
    "current_run",
    "current_step",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'tarry' has no attribute {name!r}")
    from tarry.face import named

    return named(name)


def __dir__() -> list[str]:
    return __all__

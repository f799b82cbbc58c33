"""Tarry: durable signals for Python.

The names below are loaded when they are first used, so that a command which needs none of them answers at
once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarry.app import App, DriveResult, Handle, SyncApp
    from tarry.app.parcels import Json
    from tarry.core.retry import Retry
    from tarry.engine.channels import Fold, FoldMessage, Message
    from tarry.engine.context import Run
    from tarry.engine.frame import CurrentStep, current_step
    from tarry.engine.names import Channel, Signal
    from tarry.engine.outside import current_run
    from tarry.errors import (
        NotRetrySafe,
        OutcomeUnknown,
        Parked,
        RunCancelled,
        RunConflict,
        RunExpired,
        RunFailed,
        RunNotFound,
        StepFailed,
        TarryError,
        WaitTimeout,
    )
    from tarry.model import CancelReceipt, Page, Receipt, ReceiptStatus, Safety, Status

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

_HOMES = {
    "tarry.app": (
        "App",
        "DriveResult",
        "Handle",
        "SyncApp",
    ),
    "tarry.app.parcels": ("Json",),
    "tarry.core.retry": ("Retry",),
    "tarry.engine.channels": (
        "Fold",
        "FoldMessage",
        "Message",
    ),
    "tarry.engine.context": ("Run",),
    "tarry.engine.frame": (
        "CurrentStep",
        "current_step",
    ),
    "tarry.engine.names": (
        "Channel",
        "Signal",
    ),
    "tarry.engine.outside": ("current_run",),
    "tarry.errors": (
        "NotRetrySafe",
        "OutcomeUnknown",
        "Parked",
        "RunCancelled",
        "RunConflict",
        "RunExpired",
        "RunFailed",
        "RunNotFound",
        "StepFailed",
        "TarryError",
        "WaitTimeout",
    ),
    "tarry.model": (
        "CancelReceipt",
        "Page",
        "Receipt",
        "ReceiptStatus",
        "Safety",
        "Status",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tarry' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__

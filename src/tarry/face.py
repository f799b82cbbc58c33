"""The public names, gathered: what `tarry` hands out when one of them is first used."""

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


def named(name: str) -> object:
    return globals()[name]

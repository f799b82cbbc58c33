"""What a program sees of Tarry: App, and SyncApp for code without an event loop."""

from tarry.app.app import App
from tarry.app.drive import DriveResult
from tarry.app.handle import Handle
from tarry.app.rows import JournalRow, LetterRow, RunRow, WaitRow, WorkerRow
from tarry.app.sync import SyncApp

__all__ = [
    "App",
    "DriveResult",
    "Handle",
    "JournalRow",
    "LetterRow",
    "RunRow",
    "SyncApp",
    "WaitRow",
    "WorkerRow",
]

"""doctor: is this store, this machine and this process fit for Tarry, and what to do where not."""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from rich.text import Text

from tarry.app import App
from tarry.edge.cli import failing, given
from tarry.edge.cli.look import console
from tarry.edge.cli.text import clean
from tarry.engine.wake import Mailbox

WAL_LARGE = 256 << 20
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Finding(NamedTuple):
    grade: str
    what: str
    remedy: str = ""


def doctor(*, as_json: given.AsJson = False, store: given.Store = None) -> int:
    """Check the store, the machine and this process; exit 1 if something is wrong."""

    async def work(app: App) -> list[Finding]:
        facts: dict[str, Any] = getattr(app.store, "facts", dict)()
        return [*_process(), *_wakes(), *_file(facts), *_workers(app)]

    findings = given.with_app(store, work)
    for finding in findings:
        if as_json:
            print(json.dumps(finding._asdict()))
        else:
            line = Text.assemble((f"{finding.grade:<5}", STYLES[finding.grade]), clean(finding.what))
            console().print(line.append(f"  {finding.remedy}", style="dim") if finding.remedy else line)
    return failing.FAILED if any(finding.grade == "fail" for finding in findings) else failing.OK


def _process() -> Iterator[Finding]:
    yield Finding("ok", f"tarry {version('tarry')}, Python {platform.python_version()}, {platform.system()}")


def _wakes() -> Iterator[Finding]:
    mailbox = Mailbox(asyncio.get_running_loop(), lambda data: None)
    if mailbox.address is not None:
        yield Finding("ok", "sockets for wake-ups can be made")
    else:
        yield Finding("warn", "no socket for wake-ups can be made", "Workers look every 100 ms instead.")
    mailbox.close()


def _file(facts: dict[str, Any]) -> Iterator[Finding]:
    if not facts:
        return
    yield Finding("ok", f"store {facts['path']}, {facts['file_size']} bytes, schema {facts['schema_version']}")
    wal = facts.get("journal_mode") == "wal" and facts.get("synchronous") in (2, "full", "FULL")
    mode = f"journal {facts.get('journal_mode')}, synchronous {facts.get('synchronous')}"
    yield Finding(
        "ok" if wal else "fail",
        f"SQLite {facts['sqlite_version']}, {mode}",
        "" if wal else "Only WAL with synchronous FULL survives a power failure: is this a network file system?",
    )
    large = (facts.get("wal_size") or 0) > WAL_LARGE
    remedy = "A reader keeps a transaction open: find and end it." if large else ""
    yield Finding("warn" if large else "ok", f"write-ahead log of {facts.get('wal_size') or 0} bytes", remedy)
    if facts.get("other_library"):
        yield Finding("fail", "another SQLite library has the file open in this process", "Close it there.")


def _workers(app: App) -> Iterator[Finding]:
    workers = app.store.workers()
    live = [worker for worker, alive in workers if alive]
    if live:
        yield Finding("ok", f"{len(live)} live workers")
    else:
        yield Finding("warn", "no live worker", "Nothing goes on until one runs: tarry worker MODULE:APP")

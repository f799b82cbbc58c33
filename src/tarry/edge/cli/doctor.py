"""doctor: is this store, this machine and this process fit for Tarry, and what to do where not."""

from __future__ import annotations

import asyncio
import json
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from rich.text import Text

from tarry.app import App
from tarry.core.durations import from_ms
from tarry.edge.cli import failing, given
from tarry.edge.cli.look import console
from tarry.edge.cli.text import ago, clean
from tarry.engine.wake import Mailbox
from tarry.errors import StoreError
from tarry.model import RunRecord, Status
from tarry.store.protocol import RunFilter, Store

WAL_LARGE = 256 << 20
DISK_SMALL = 256 << 20
LATE_MS = 60_000
PAGE = 1000
WAL_SAFE = (3, 51, 3)
"""The first SQLite in which a checkpoint beside a writer cannot corrupt a write-ahead log that is started anew."""

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Finding(NamedTuple):
    grade: str
    what: str
    remedy: str = ""


def doctor(*, as_json: given.AsJson = False, at: given.Place = given.HERE) -> int:
    """Check the store, the machine and this process; exit 1 if something is wrong."""
    findings: list[Finding] = [*_process()]

    async def work(app: App) -> None:
        store = app.store
        facts: dict[str, Any] = getattr(store, "facts", dict)()
        findings.extend([*_wakes(), *file_findings(facts), *_sound(store), *_workers(store), *_backlog(store)])

    try:
        given.with_app(at, work)
    except StoreError as error:
        findings.append(Finding("fail", str(error)))
    for finding in findings:
        _tell(finding, as_json)
    return failing.FAILED if any(finding.grade == "fail" for finding in findings) else failing.OK


def _tell(finding: Finding, as_json: bool) -> None:
    if as_json:
        print(json.dumps(finding._asdict()))
        return
    line = Text.assemble((f"{finding.grade:<5}", STYLES[finding.grade]), clean(finding.what))
    console().print(line.append(f". {clean(finding.remedy)}", style="bold") if finding.remedy else line)


def _process() -> Iterator[Finding]:
    yield Finding(
        "ok", f"tarry {version('tarry')}, Python {platform.python_version()}, {platform.platform(terse=True)}"
    )


def _wakes() -> Iterator[Finding]:
    mailbox = Mailbox(asyncio.get_running_loop(), lambda data: None)
    if mailbox.address is not None:
        yield Finding("ok", "sockets for wake-ups can be made")
    else:
        yield Finding("warn", "no socket for wake-ups can be made", "Workers look every 100 ms instead")
    mailbox.close()


def file_findings(facts: dict[str, Any]) -> Iterator[Finding]:
    """What the store tells about its file, judged."""
    if not facts:
        return
    yield Finding("ok", f"store {facts['path']}, {_size(facts['file_size'])}, schema {facts['schema_version']}")
    yield from _library(facts)
    yield from _durable(facts)
    wal = facts["wal_size"]
    remedy = "A reader keeps a transaction open: find it and end it" if wal > WAL_LARGE else ""
    yield Finding("warn" if remedy else "ok", f"write-ahead log of {_size(wal)}", remedy)
    if facts["file_mode"] is not None and int(facts["file_mode"], 8) & 0o077:
        yield Finding("warn", f"the file's mode is {facts['file_mode']}", "Payloads are in it: chmod 600")
    if facts["path"] is not None and (free := shutil.disk_usage(facts["path"]).free) < DISK_SMALL:
        yield Finding("warn", f"{_size(free)} are free on its disk", "Free space before writes are refused")


def _library(facts: dict[str, Any]) -> Iterator[Finding]:
    number = tuple(int(part) for part in facts["sqlite_version"].split("."))
    remedy = "" if number >= WAL_SAFE else "It can corrupt a write-ahead log: install apsw 3.51.3 or later"
    yield Finding("fail" if remedy else "ok", f"SQLite {facts['sqlite_version']}", remedy)
    if facts["other_library"]:
        remedy = "Two libraries break each other's locks: close it there"
        yield Finding("fail", "the sqlite3 module has the file open in this process too", remedy)


def _durable(facts: dict[str, Any]) -> Iterator[Finding]:
    found = f"journal mode {facts['journal_mode']}, synchronous {facts['synchronous']}"
    fine = (facts["journal_mode"] == "wal" or facts["path"] is None) and facts["synchronous"] == 2
    remedy = "" if fine else "Only wal with synchronous 2 (full) survives a power failure: is this a network disk?"
    yield Finding("ok" if fine else "fail", found, remedy)


def _sound(store: Store) -> Iterator[Finding]:
    check = getattr(store, "quick_check", None)
    if check is not None:
        told: str = check()
        remedy = "" if told == "ok" else "Stop writing to it and restore a backup"
        yield Finding("fail" if remedy else "ok", f"integrity: {told}", remedy)


def _workers(store: Store) -> Iterator[Finding]:
    workers = store.workers()
    live = [worker for worker, alive in workers if alive]
    remedy = "" if live else "Nothing goes on until one runs: tarry worker MODULE:APP"
    yield Finding("ok" if live else "warn", f"live workers: {len(live)}", remedy)
    if dead := len(workers) - len(live):
        remedy = "Their runs go to others within seconds" if live else "Their runs wait for a worker"
        yield Finding("warn", f"workers that died or hang: {dead}", remedy)


def _backlog(store: Store) -> Iterator[Finding]:
    now = store.clock.now_ms()
    known = {name for worker, alive in store.workers() if alive for name in worker.workflows}
    ready = [run for run in _page(store, Status.READY) if run.due_ms is None or run.due_ms <= now]
    late = [run for run in ready if now - run.changed_ms > LATE_MS]
    oldest = f", the oldest for {ago(from_ms(min(run.changed_ms for run in ready)), from_ms(now))}" if ready else ""
    remedy = "Workers are too few, or lack their code" if late else ""
    yield Finding("warn" if late else "ok", f"due now: {_count(ready)}{oldest}", remedy)
    if strange := sorted({run.workflow for run in ready} - known):
        yield Finding("warn", f"no live worker has the code of {', '.join(strange)}", "Start one that registers it")
    if blocked := _page(store, Status.BLOCKED):
        yield Finding("warn", f"blocked: {_count(blocked)}", "See why: tarry runs --status blocked")


def _page(store: Store, status: Status) -> tuple[RunRecord, ...]:
    return store.runs(RunFilter(status=status), None, PAGE).rows


def _count(runs: tuple[RunRecord, ...] | list[RunRecord]) -> str:
    return f"{len(runs)}" if len(runs) < PAGE else f"{PAGE} or more"


def _size(count: int) -> str:
    for limit, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} bytes"

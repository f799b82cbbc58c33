"""receipt, runs, waits, letters, workers: tables for people, one JSON object per line for programs."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tarry.app import App, LetterRow, RunRow, WaitRow, WorkerRow
from tarry.core.durations import from_ms
from tarry.edge.cli import failing, given
from tarry.edge.cli.deliver import told
from tarry.edge.cli.text import ago, clean, instant
from tarry.model import Page, Status, WaitKind

T = TypeVar("T")
Cells = Callable[[T, datetime], list[str | Text]]

COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "ready": "cyan",
    "waiting": "blue",
    "blocked": "bold yellow",
    "failed": "bold red",
    "cancelled": "magenta",
    "expired": "magenta",
}


def receipt(run: str, name: str, key: str, *, as_json: given.AsJson = False, at: given.Place = given.HERE) -> int:
    """What became of the delivery that took KEY."""

    async def work(app: App) -> int:
        return told(await app.receipt(run, name, key), as_json)

    return given.with_app(at, work)


def runs(
    *,
    workflow: str | None = None,
    status: str | None = None,
    tag: Annotated[str | None, Parameter(help="NAME=VALUE")] = None,
    prefix: Annotated[str | None, Parameter(help="How the id begins.")] = None,
    pages: given.Pages = given.FIRST,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """List runs, oldest first."""
    state = given.one_of(Status, status)
    pair = given.tag(tag) if tag else None

    async def work(app: App) -> int:
        read = partial(app.runs, workflow=workflow, status=state, tag=pair, prefix=prefix)
        return await listed(app, read, pages, as_json, ("run", "workflow", "status", "changed", "why"), _run)

    return given.with_app(at, work)


def waits(
    *,
    run: str | None = None,
    workflow: str | None = None,
    name: str | None = None,
    kind: Annotated[str | None, Parameter(help="signal, channel, timer or retry")] = None,
    tag: Annotated[str | None, Parameter(help="NAME=VALUE")] = None,
    age: Annotated[str | None, Parameter(help="Open for at least so long, like 1h.")] = None,
    overdue: Annotated[bool, given.Flag, Parameter(help="Past their deadline.")] = False,
    pages: given.Pages = given.FIRST,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """List who waits for what, oldest first."""
    sort = given.one_of(WaitKind, kind)
    pair = given.tag(tag) if tag else None

    async def work(app: App) -> int:
        read = partial(app.waits, run=run, workflow=workflow, name=name, kind=sort, tag=pair, age=age, overdue=overdue)
        columns = ("run", "workflow", "kind", "waits for", "since", "deadline")
        return await listed(app, read, pages, as_json, columns, _wait)

    return given.with_app(at, work)


def letters(
    *,
    run: str | None = None,
    name: str | None = None,
    reason: str | None = None,
    pages: given.Pages = given.FIRST,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """List dead letters: what could not be applied, and why."""

    async def work(app: App) -> int:
        read = partial(app.dead_letters, run=run, name=name, reason=reason)
        return await listed(app, read, pages, as_json, ("run", "name", "key", "reason", "actor", "age"), _letter)

    return given.with_app(at, work)


def workers(*, as_json: given.AsJson = False, at: given.Place = given.HERE) -> int:
    """List the workers on file, and whether their leases are live."""

    async def work(app: App) -> int:
        columns = ("worker", "host", "pid", "lease", "last beat", "workflows")
        show_rows(app, await app.workers(), as_json, columns, _worker)
        return failing.OK

    return given.with_app(at, work)


async def listed(
    app: App,
    read: Callable[..., Awaitable[Page[T]]],
    pages: given.Paging,
    as_json: bool,
    columns: Sequence[str],
    cells: Cells[T],
) -> int:
    """Shows a page, or every one: as it comes to a program, in one table to a person."""
    page = await read(cursor=pages.cursor, limit=pages.limit)
    rows = list(page.rows)
    while pages.every and page.next_cursor is not None:
        if as_json:
            show_rows(app, rows, as_json, columns, cells)
            rows.clear()
        page = await read(cursor=page.next_cursor, limit=pages.limit)
        rows += page.rows
    show_rows(app, rows, as_json, columns, cells)
    if page.next_cursor is not None:
        print(f"there is more: --all, or --cursor {page.next_cursor}", file=sys.stderr)
    return failing.OK


def show_rows(app: App, rows: Sequence[T], as_json: bool, columns: Sequence[str], cells: Cells[T]) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(plain(row)))
        return
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    now = from_ms(app.store.clock.now_ms())
    for row in rows:
        table.add_row(*cells(row, now))
    console().print(table if rows else Text("nothing", style="dim"))


def console() -> Console:
    """A terminal's width, or room enough for whoever reads a pipe. Text is text: no markup in it is followed."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    return Screen(width=width, highlight=False, markup=False, emoji=False)


class Screen(Console):
    """A reader that goes away is nobody's failure: the command decides what becomes of it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def status_text(status: str) -> Text:
    return Text(status, style=COLOURS.get(status, ""))


def plain(row: Any) -> Any:
    """A row as JSON's own types."""
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: plain(getattr(row, field.name)) for field in dataclasses.fields(row)}
    if isinstance(row, datetime):
        return row.isoformat()
    if isinstance(row, Enum):
        return row.value
    if isinstance(row, bytes):
        return json.loads(row)
    if isinstance(row, (tuple, list)):
        return [plain(item) for item in row]  # pyright: ignore[reportUnknownVariableType]
    return row


def _run(row: RunRow, now: datetime) -> list[str | Text]:
    why = row.error or (f"{row.blocked}: {row.reason}" if row.blocked else "")
    changed = f"{ago(row.changed_at, now)} ago"
    return [clean(row.id), clean(row.workflow), status_text(row.status.value), changed, clean(why)]


def _wait(row: WaitRow, now: datetime) -> list[str | Text]:
    late = row.deadline is not None and row.deadline < now
    deadline = Text(instant(row.deadline), style="bold red" if late else "")
    name = clean(row.scope + row.name)
    return [clean(row.run), clean(row.workflow), row.kind, name, ago(row.opened_at, now), deadline]


def _letter(row: LetterRow, now: datetime) -> list[str | Text]:
    texts = (row.run, row.name, row.key or "", row.reason, row.actor or "")
    return [*(clean(text) for text in texts), ago(row.at, now)]


def _worker(row: WorkerRow, now: datetime) -> list[str | Text]:
    lease = Text("live", style="green") if row.live else Text("over", style="bold red")
    names = clean(", ".join(row.workflows))
    return [clean(row.id), clean(row.host), str(row.pid), lease, f"{ago(row.beat_at, now)} ago", names]

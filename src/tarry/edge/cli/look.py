"""receipt, runs, waits, letters, workers: tables for people, one JSON object per line for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tarry.app import App, LetterRow, RunRow, WaitRow, WorkerRow
from tarry.edge.cli import failing, given
from tarry.edge.cli.deliver import told
from tarry.edge.cli.text import ago, clean, instant
from tarry.model import Page

T = TypeVar("T")

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


def receipt(run: str, name: str, key: str, *, as_json: given.AsJson = False, store: given.Store = None) -> int:
    """What became of the delivery that took KEY."""

    async def work(app: App) -> int:
        return told(await app.receipt(run, name, key), as_json)

    return given.with_app(store, work)


def runs(
    *,
    workflow: str | None = None,
    status: str | None = None,
    tag: Annotated[str | None, Parameter(help="NAME=VALUE")] = None,
    prefix: Annotated[str | None, Parameter(help="How the id begins.")] = None,
    cursor: given.Cursor = None,
    limit: given.Limit = 100,
    as_json: given.AsJson = False,
    store: given.Store = None,
) -> int:
    """List runs, oldest first."""
    pair = next(iter(given.tags([tag]).items())) if tag else None

    async def work(app: App) -> int:
        page = await app.runs(workflow=workflow, status=status, tag=pair, prefix=prefix, cursor=cursor, limit=limit)
        return show_page(page, as_json, ("run", "workflow", "status", "changed", "why"), _run)

    return given.with_app(store, work)


def waits(
    *,
    run: str | None = None,
    workflow: str | None = None,
    name: str | None = None,
    kind: Annotated[str | None, Parameter(help="signal, channel, timer or retry")] = None,
    age: Annotated[str | None, Parameter(help="Open for at least so long, like 1h.")] = None,
    overdue: Annotated[bool, given.Flag, Parameter(help="Past their deadline.")] = False,
    cursor: given.Cursor = None,
    limit: given.Limit = 100,
    as_json: given.AsJson = False,
    store: given.Store = None,
) -> int:
    """List who waits for what, oldest first."""

    async def work(app: App) -> int:
        page = await app.waits(
            run=run, workflow=workflow, name=name, kind=kind, age=age, overdue=overdue, cursor=cursor, limit=limit
        )
        return show_page(page, as_json, ("run", "workflow", "kind", "waits for", "since", "deadline"), _wait)

    return given.with_app(store, work)


def letters(
    *,
    run: str | None = None,
    name: str | None = None,
    reason: str | None = None,
    cursor: given.Cursor = None,
    limit: given.Limit = 100,
    as_json: given.AsJson = False,
    store: given.Store = None,
) -> int:
    """List dead letters: what could not be applied, and why."""

    async def work(app: App) -> int:
        page = await app.dead_letters(run=run, name=name, reason=reason, cursor=cursor, limit=limit)
        return show_page(page, as_json, ("run", "name", "key", "reason", "actor", "age"), _letter)

    return given.with_app(store, work)


def workers(*, as_json: given.AsJson = False, store: given.Store = None) -> int:
    """List the workers on file, and whether their leases are live."""

    async def work(app: App) -> int:
        page = Page(await app.workers(), None)
        return show_page(page, as_json, ("worker", "host", "pid", "lease", "last beat", "workflows"), _worker)

    return given.with_app(store, work)


def show_page(
    page: Page[T], as_json: bool, columns: Sequence[str], cells: Callable[[T, datetime], list[str | Text]]
) -> int:
    if as_json:
        for row in page.rows:
            print(json.dumps(plain(row)))
    else:
        table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        now = datetime.now(UTC)
        for row in page.rows:
            table.add_row(*cells(row, now))
        console().print(table if page.rows else Text("nothing", style="dim"))
    if page.next_cursor is not None:
        print(f"there is more: --cursor {page.next_cursor}", file=sys.stderr)
    return failing.OK


def console() -> Console:
    """A terminal's width, or room enough for whoever reads a pipe."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 140)


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

"""show RUN: one run as a timeline: what it recorded, waits for, was sent, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarry.app import App, JournalRow, RunRow
from tarry.core.decide.letters import shown
from tarry.core.durations import from_ms
from tarry.edge.cli import failing, given
from tarry.edge.cli.look import console, status_text
from tarry.edge.cli.text import ago, clean, instant, short
from tarry.model import Arrival, Audit, Letter
from tarry.store.protocol import LetterFilter, WaitFilter

PREVIEW = 48
MOST = 1000


@dataclass(frozen=True)
class Line:
    at: datetime
    order: int
    mark: str
    what: str
    detail: str
    style: str = ""


def show(
    run: str,
    *,
    payloads: Annotated[bool, given.Flag, Parameter(help="Preview payloads and results.")] = False,
    store: given.Store = None,
) -> int:
    """Show one run: its state, and its timeline."""

    async def work(app: App) -> int:
        print_run(app, await app.run(run), console(), payloads=payloads)
        return failing.OK

    return given.with_app(store, work)


def print_run(app: App, row: RunRow, target: Console, *, payloads: bool = False) -> None:
    target.print(Group(_head(row), _timeline(app, row, payloads), *_open_waits(app, row)))


def _head(row: RunRow) -> RenderableType:
    title = Text.assemble((clean(row.id), "bold"), "  ", clean(row.workflow), "  ", status_text(row.status.value))
    if row.cancelling and row.ended_at is None:
        title.append("  cancelling", style="magenta")
    lines = [title]
    if row.tags:
        lines.append(Text(clean("  ".join(f"{name}={value}" for name, value in row.tags.items())), style="dim"))
    if row.blocked:
        lines.append(Text(f"blocked: {row.blocked}. {clean(row.reason or '')}", style="yellow"))
    if row.error:
        lines.append(Text(clean(row.error), style="red"))
    return Group(*lines)


def _timeline(app: App, row: RunRow, payloads: bool) -> RenderableType:
    lines = [Line(row.created_at, 0, "●", "started", "")]
    lines += [_entry(entry, payloads) for entry in _journal(app, row.id)]
    lines += [_arrival(arrival, payloads) for arrival in app.store.arrivals(row.id, None, MOST).rows]
    lines += [_letter(letter) for letter in app.store.letters(LetterFilter(run_id=row.id), None, MOST).rows]
    lines += [_audit(audit) for audit in app.store.audit(row.id, None, MOST).rows]
    if row.ended_at is not None:
        lines.append(Line(row.ended_at, 9, "●", row.status.value, "", "bold"))
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, show_edge=False)
    for column in ("time", "mark", "what", "detail"):
        table.add_column(column, no_wrap=column != "detail")
    for line in sorted(lines, key=lambda line: (line.at, line.order)):
        after = f"+{ago(line.at, row.created_at)}"
        table.add_row(Text(after, style="dim"), line.mark, Text(line.what, style=line.style), line.detail)
    return table


def _journal(app: App, run_id: str) -> list[JournalRow]:
    from tarry.app.rows import journal_row

    return [journal_row(entry) for entry in app.store.journal(run_id, None, MOST).rows]


_MARKS = {"step": "■", "attempt": "□", "intent": "□", "resolve": "■", "wait": "◀", "first": "◀", "receive": "◀"}


def _entry(row: JournalRow, payloads: bool) -> Line:
    style = "red" if row.outcome in ("failed", "unknown") else "yellow" if row.outcome == "timeout" else ""
    preview = f"  {short(row.value.decode(), PREVIEW)}" if payloads and row.value is not None else ""
    outcome = "" if row.outcome == "ok" else f"{row.outcome}"
    what = f"{row.kind} {clean(row.scope + row.name)}"
    return Line(row.at, 2, _MARKS.get(row.kind, "·"), what, outcome + preview, style)


def _arrival(row: Arrival, payloads: bool) -> Line:
    key = shown(row.key)
    parts = [row.status.value, f"key {key}" if key else "no key", f"by {row.actor}" if row.actor else ""]
    preview = short(row.payload.decode(), PREVIEW) if payloads else ""
    detail = clean("  ".join(part for part in (*parts, preview) if part))
    return Line(from_ms(row.at_ms), 1, "▶", f"{row.kind.value} {clean(row.name)} came", detail, "cyan")


def _letter(row: Letter) -> Line:
    detail = f"{row.reason}" + (f"  key {row.key}" if row.key else "")
    return Line(from_ms(row.at_ms), 1, "✗", f"{row.kind.value} {clean(row.name)} refused", clean(detail), "magenta")


def _audit(row: Audit) -> Line:
    by = f"by {row.actor}" if row.actor else ""
    return Line(from_ms(row.at_ms), 3, "!", row.action, clean(f"{row.detail}  {by}".strip()), "bold")


def _open_waits(app: App, row: RunRow) -> list[RenderableType]:
    page = app.store.waits(WaitFilter(run_id=row.id), None, MOST)
    lines: list[RenderableType] = []
    for _, wait in page.rows:
        deadline = "" if wait.deadline_ms is None else f", until {instant(from_ms(wait.deadline_ms))}"
        lines.append(Text(f"waits for {wait.kind.value} {clean(wait.scope + wait.name)}{deadline}", style="blue"))
    return lines

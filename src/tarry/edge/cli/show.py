"""show RUN: one run as a timeline, for a person who asks why it stands where it stands."""

from __future__ import annotations

import json
import shlex
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarry.app import App, RunRow
from tarry.core.durations import from_ms
from tarry.edge.cli import failing, given
from tarry.edge.cli.look import console, plain, status_text
from tarry.edge.cli.text import after, ago, clean, instant, short
from tarry.edge.cli.timeline import Event, events

PREVIEW = 60
DETAIL = 200
MARKS = {"run": "●", "delivery": "▶", "letter": "✗", "entry": "■", "operator": "!", "open": "…"}
STYLES = {"run": "bold", "delivery": "cyan", "operator": "magenta", "open": "blue"}
VERBS = {"delivery": "came", "letter": "refused", "open": "open"}


def show(
    run: str,
    *,
    payloads: Annotated[bool, given.Flag, Parameter(help="Preview payloads and results.")] = False,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """Show one run: where it stands and what to do about it, then all that happened, in order."""

    async def work(app: App) -> int:
        row = await app.run(run)
        if as_json:
            print_json(app, row, payloads)
        else:
            print_run(app, row, console(), payloads=payloads)
        return failing.OK

    return given.with_app(at, work)


def print_json(app: App, row: RunRow, payloads: bool) -> None:
    """The run, then its events."""
    print(json.dumps({"sort": "state", **plain(row)}))
    for event in _events(app, row):
        facts = {"sort": event.sort, "at": from_ms(event.at_ms).isoformat(), "what": event.what, "detail": event.detail}
        text = json.dumps(facts)
        print(f'{text[:-1]}, "payload": {event.payload or "null"}}}' if payloads else text)


def print_run(app: App, row: RunRow, target: Console, *, payloads: bool = False) -> None:
    """Its head, and its timeline. `…` marks what it waits for."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column("time", no_wrap=True, justify="right", style="dim")
    table.add_column("mark", no_wrap=True)
    table.add_column("what", overflow="fold", max_width=max(24, target.width // 2 - 12))
    table.add_column("detail", overflow="fold")
    for event in _events(app, row):
        style = "red" if event.bad else STYLES.get(event.sort, "")
        what = f"{event.what} {VERBS[event.sort]}" if event.sort in VERBS else event.what
        mark, told = Text(MARKS[event.sort], style=style), Text(clean(what), style=style)
        table.add_row(after(from_ms(event.at_ms), row.created_at), mark, told, _detail(event, payloads))
    target.print(Group(*_head(app, row), Text(), table))


def _events(app: App, row: RunRow) -> list[Event]:
    run = app.store.run(row.id)
    return [] if run is None else events(app.store, run)


def _detail(event: Event, payloads: bool) -> Text:
    text = Text(short(event.detail, DETAIL), style="red" if event.bad else "")
    if payloads and event.payload is not None:
        text.append(("  " if event.detail else "") + short(event.payload, PREVIEW), style="dim")
    return text


def _head(app: App, row: RunRow) -> list[RenderableType]:
    now = from_ms(app.store.clock.now_ms())
    title = Text.assemble((clean(row.id), "bold"), "  ", clean(row.workflow), "  ", status_text(row.status.value))
    if row.ended_at is None and (row.cancelling or row.expiring):
        title.append("  cancelling" if row.cancelling else "  expiring", style="magenta")
    lines = [title, Text(f"started {instant(row.created_at)}, {ago(row.created_at, now)} ago", style="dim")]
    if row.ended_at is not None:
        lines[1].append(f"; ended {ago(row.ended_at, now)} ago, after {ago(row.created_at, row.ended_at)}")
    elif row.deadline is not None:
        lines[1].append(f"; to end by {instant(row.deadline)}")
    if row.worker is not None:
        lines.append(Text(f"on {clean(row.worker)}", style="dim"))
    if row.tags:
        lines.append(Text(clean("  ".join(f"{name}={value}" for name, value in row.tags.items()))))
    if row.blocked:
        lines.append(Text(f"blocked: {row.blocked}. {clean(row.reason or '')}", style="yellow"))
        lines.append(Text(f"then: {_remedy(row)}", style="yellow"))
    if row.error:
        lines.append(Text(clean(row.error), style="red"))
    return [*lines]


def _remedy(row: RunRow) -> str:
    run = clean(shlex.quote(row.id))
    if row.blocked == "unknown outcome":
        return f"tarry resolve {run} STEP --result JSON | --failed TEXT | --redo"
    return f"put the code right, then tarry retry {run}"

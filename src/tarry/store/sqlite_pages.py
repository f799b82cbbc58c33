"""Lists, a page at a time, by key: a page begins where the last one ended, and costs what it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tarry.model import Arrival, Audit, Entry, Letter, Page, RunRecord, Wait
from tarry.store import cursor as cursors
from tarry.store.protocol import LetterFilter, RunFilter, WaitFilter
from tarry.store.sqlite_link import Row
from tarry.store.sqlite_links import Links
from tarry.store.sqlite_rows import Rows, phase

R = TypeVar("R")
Key = Callable[[Row], tuple[str | int, ...]]

_RUN = 28
_WAIT = 16
_FIRST_WAIT = (-1, "", "", "", "", -1)


class SqlitePages:
    def __init__(self, links: Links, rows: Rows) -> None:
        self._links = links
        self._rows = rows

    def runs(self, where: RunFilter, cursor: str | None, limit: int) -> Page[RunRecord]:
        """Oldest first by when they were started; with a prefix alone, by id."""
        cursors.check_limit(limit)
        args = _run_args(where)
        if where.prefix and where.tag is None:
            (after,) = cursors.read(cursor, (str,)) or ("",)
            args |= {"first": after or where.prefix, "after": after, "limit": limit + 1}
            rows = self._links.rows("page_runs_by_prefix", args)
            return self._page(rows, limit, self._rows.run, lambda row: (row[0],))
        (after,) = cursors.read(cursor, (int,)) or (0,)
        rows = self._links.rows(_runs_statement(where), args | {"after": after, "limit": limit + 1})
        return self._page(rows, limit, self._rows.run, lambda row: (row[26],))

    def waits(self, where: WaitFilter, cursor: str | None, limit: int) -> Page[tuple[RunRecord, Wait]]:
        """Oldest first by when they were opened."""
        cursors.check_limit(limit)
        after = cursors.read(cursor, (int, str, str, str, str, int)) or _FIRST_WAIT
        args = _wait_args(where) | dict(zip(_WAIT_AFTER, after, strict=True)) | {"limit": limit + 1}
        rows = self._links.rows(_waits_statement(where), args)
        return self._page(rows, limit, self._run_and_wait, lambda row: (row[12], *row[:5]))

    def _run_and_wait(self, row: Row) -> tuple[RunRecord, Wait]:
        return self._rows.run(row[_WAIT:]), self._rows.wait(row[:_WAIT])

    def journal(self, run_id: str, cursor: str | None, limit: int) -> Page[Entry]:
        after = _number(cursor, limit)
        rows = self._links.rows("page_entries", (run_id, after, limit + 1))
        return self._page(rows, limit, self._rows.entry, lambda row: (row[1],))

    def arrivals(self, run_id: str, cursor: str | None, limit: int) -> Page[Arrival]:
        """By number, over all names: each channel gives its next ones, as signals are few."""
        after = _number(cursor, limit)
        rows = self._links.rows("page_signals", (run_id, after, limit + 1))
        for _, channel in self._links.rows("load_channels", (run_id,)):
            rows += [row[2:] for row in self._links.rows("load_page", (run_id, channel, after, limit + 1))]
        rows.sort(key=lambda row: row[1])
        return self._page(rows[: limit + 1], limit, self._rows.arrival, lambda row: (row[1],))

    def letters(self, where: LetterFilter, cursor: str | None, limit: int) -> Page[Letter]:
        args = {
            "after": _number(cursor, limit),
            "limit": limit + 1,
            "name": where.name,
            "reason": where.reason,
        }
        if where.run_id is None:
            rows = self._links.rows("page_letters", args)
        else:
            rows = self._links.rows("page_letters_of_run", args | {"run_id": where.run_id})
        return self._page(rows, limit, self._rows.letter, lambda row: (row[11],))

    def audit(self, run_id: str | None, cursor: str | None, limit: int) -> Page[Audit]:
        args = {"after": _number(cursor, limit), "limit": limit + 1}
        if run_id is None:
            rows = self._links.rows("page_audits", args)
        else:
            rows = self._links.rows("page_audits_of_run", args | {"run_id": run_id})
        return self._page(rows, limit, lambda row: Audit(*row[:5]), lambda row: (row[5],))

    def _page(self, rows: list[Row], limit: int, make: Callable[[Row], R], key: Key) -> Page[R]:
        """One row more than asked for says that there is another page."""
        taken = rows[:limit]
        more = cursors.write(*key(taken[-1])) if len(rows) > limit else None
        return Page(tuple(self._rows.read(make, taken)), more)


def _number(cursor: str | None, limit: int) -> int:
    cursors.check_limit(limit)
    (after,) = cursors.read(cursor, (int,)) or (0,)
    assert isinstance(after, int)
    return after


def _runs_statement(where: RunFilter) -> str:
    """By what narrows most."""
    if where.tag is not None:
        return "page_runs_by_tag"
    if where.status is not None:
        return "page_runs_by_status"
    return "page_runs" if where.workflow is None else "page_runs_by_workflow"


def _run_args(where: RunFilter) -> dict[str, Any]:
    tag, value = where.tag or (None, None)
    return {
        "workflow": where.workflow,
        "status": where.status,
        "phase": None if where.status is None else phase(where.status),
        "tag": tag,
        "value": value,
        "prefix": where.prefix or "",
    }


_WAIT_AFTER = ("opened", "run", "kind_after", "scope", "name_after", "round")


def _waits_statement(where: WaitFilter) -> str:
    if where.run_id is not None:
        return "page_waits_of_run"
    return "page_waits" if where.tag is None else "page_waits_by_tag"


def _wait_args(where: WaitFilter) -> dict[str, Any]:
    tag, value = where.tag or (None, None)
    return {
        "run_id": where.run_id,
        "workflow": where.workflow,
        "name": where.name,
        "kind": where.kind,
        "tag": tag,
        "value": value,
        "overdue_at": where.overdue_at_ms,
        "opened_before": where.opened_before_ms,
    }

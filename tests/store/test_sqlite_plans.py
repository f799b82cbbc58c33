"""How each statement reaches its rows: by an index, and by the same one whatever the tables' statistics say."""

import re
from functools import cache
from typing import Any

import apsw
import pytest

from tarry.store.statements import sql_file, statements

SQL = statements("sqlite")
PLANNED = sorted(set(SQL) - {"begin", "commit", "rollback", "change"})
# A queue read from its head, a table of a handful of rows, a list that a statement itself has made.
MAY_SCAN = {"outgoing": "outgoing", "workers": "workers", "lapsed": "w", "tables": "sqlite_master"}
MADE = {"channel", "owner", "c"}
# A few rows of one run or of one tag, put in order.
MAY_SORT = {"page_signals", "page_waits_of_run", "page_waits_by_tag", "workers"}


@cache
def database(counted: bool) -> apsw.Connection:
    made = apsw.Connection(":memory:")
    made.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    made.execute(sql_file("sqlite", "schema.sql"))
    if counted:
        made.execute(FILL)
        made.execute("analyze")
    return made


FILL = """
insert into runs with recursive n(n) as (select 1 union all select n + 1 from n where n < 500)
select n, 'r' || n, 'order', 'ready', 'live', null, null, 1, null, 0, 'w', 0, 0, 0, 0, 1, 0, 0, null, null, null, null,
    0, 0, null from n;
insert into run_data select num, x'00', null, null from runs;
insert into run_tags select 'team', 'x', num from runs;
insert into entries select id, 1, 'step', 'f:', 's', 0, 'ok', null, null, null, 0 from runs;
insert into waits select id, 'signal', '', 'paid', 0, null, 0, null, null, 1, 0, 0, 0, null, null, null from runs;
insert into arrivals select id, 1, 'signal', 'paid', 'k', x'00', null, 'delivered', 1, null, 0 from runs;
insert into slots select id, 'channel', 'events', 0, null, null, null from runs;
insert into letters select num, id, id, 'signal', 'paid', 'k', x'00', null, 'ended', null, 0, 0 from runs;
insert into audits select num, id, 'ann', 'cancel', '', 0 from runs;
insert into outgoing select num, id, 1, id, 'notify', x'00', 0 from runs;
insert into tombstones select id, 0 from runs;
"""


def values(text: str) -> Any:
    """Something for each parameter: its name or number decides nothing about the plan."""
    if named := set(re.findall(r":(\w+)", text)):
        return dict.fromkeys(named)
    return (None,) * max([int(n) for n in re.findall(r"\?(\d+)", text)] or [text.count("?")])


def plan(name: str, counted: bool) -> list[str]:
    rows = database(counted).execute("explain query plan " + SQL[name], values(SQL[name]))
    return [row[3] for row in rows]


@pytest.mark.parametrize("name", PLANNED)
def test_no_statement_walks_a_table(name: str):
    """S76, and a page of a list costs what it holds however long the list is (SPEC 12.1)."""
    walked = {line.split()[1] for line in plan(name, counted=False) if line.startswith("SCAN")}
    assert walked <= MADE | {MAY_SCAN.get(name)}
    sorts = any("TEMP B-TREE" in line for line in plan(name, counted=False))
    assert not sorts or name in MAY_SORT


@pytest.mark.parametrize("name", PLANNED)
def test_statistics_change_no_plan(name: str):
    assert plan(name, counted=True) == plan(name, counted=False)


def test_what_may_scan_or_sort_does():
    """An exception that nothing needs would hide the next walk."""
    scanning = {name for name in PLANNED if any(line.startswith("SCAN") for line in plan(name, counted=False))}
    assert set(MAY_SCAN) <= scanning
    assert {name for name in PLANNED if any("TEMP B" in line for line in plan(name, counted=False))} == MAY_SORT


def test_the_rule_sees_a_walk():
    rows = database(counted=False).execute("explain query plan select * from arrivals where payload = x'00'")
    assert [row[3] for row in rows] == ["SCAN arrivals"]

"""SQL is constant text with bound values: nothing is formatted into a statement (a name is never input).

Statements live in .sql files, by name; what a store passes to the database is one of them, whole.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.house.tree import Source, built, sources

RUNS_SQL = {"execute", "executemany", "executescript", "prepare", "exec", "stream", "copy"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def formatted(node: ast.AST) -> bool:
    """Whether an expression puts text together: an f-string with a field, %, +, .format, .join, .replace."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join" | "replace" | "format_map")):
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return formatted(body) or formatted(orelse)
    return False


def made_up(source: Source) -> Iterator[str]:
    for function in (node for node in ast.walk(source.tree) if isinstance(node, Function | ast.Module)):
        names = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
            and (isinstance(node, ast.AugAssign) or (node.value and formatted(node.value)))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNS_SQL:
                for given in [*node.args[:1], *(k.value for k in node.keywords)]:
                    if formatted(given) or (isinstance(given, ast.Name) and given.id in names):
                        yield f"{source.name}:{node.lineno}: {ast.unparse(node)}"


def test_no_statement_is_put_together():
    found = sources("src/tarry/store")
    assert found
    assert sorted({line for source in found for line in made_up(source)}) == []


def test_the_rule_looks_where_statements_run():
    """If the stores ran their SQL by a call that the rule does not know, it would see nothing."""
    text = "".join(source.text for source in sources("src/tarry/store"))
    assert not built("store/sqlite.py") or any(f".{call}(" in text for call in RUNS_SQL)


@pytest.mark.parametrize(
    "text",
    [
        "def f(c, t):\n    c.execute(f'select * from {t}')",
        "def f(c, t):\n    c.execute('select * from %s' % t)",
        "def f(c, t):\n    c.executemany('select ' + t, [])",
        "def f(c, t):\n    c.execute('select {}'.format(t))",
        "def f(c, n):\n    q = f'in ({n})'\n    c.execute(q)",
        "def f(c, n):\n    q = 'select 1'\n    q += n\n    c.execute(q)",
        "async def f(c, n):\n    await c.execute(','.join(n))",
    ],
)
def test_the_rule_sees(text: str):
    assert [*made_up(Source("a.py", text))]


def test_named_statements_are_allowed():
    text = "def f(c, sql, x):\n    c.execute(sql.claim, (x + 1,))\n    c.execute('select 1')"
    assert [*made_up(Source("a.py", text))] == []

"""A file holds one noun and a function one thought: at most 400 lines and 50 lines."""

import ast
from collections.abc import Iterator

from tests.house.tree import Source, sources

FILE_LINES = 400
FUNCTION_LINES = 50


def too_long(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > FILE_LINES:
        yield f"{source.name}: {lines} lines, {FILE_LINES} at most"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{source.name}:{node.lineno}: {node.name} has {length} lines, {FUNCTION_LINES} at most"


def test_files_and_functions_are_short():
    found = sources("src")
    assert found
    assert [line for source in found for line in too_long(source)] == []


def test_the_rule_sees_a_long_function():
    body = "    x = 1\n" * FUNCTION_LINES
    assert [*too_long(Source("a.py", f"async def f():\n{body}"))] == ["a.py:1: f has 51 lines, 50 at most"]


def test_the_rule_sees_a_long_file():
    assert [*too_long(Source("a.py", "x = 1\n" * 401))] == ["a.py: 401 lines, 400 at most"]

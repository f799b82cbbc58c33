"""Every rule that the guarantees list is cited by a test, in its docstring ("SPEC 4.7", "rule 4.7") or name.

docs/guarantees.md gives a rule as a heading ("### 4.7 Timeouts") or as a row of a table ("| 4.7 | …"). What
stands under a heading with "not built" or "not yet" in it promises nothing, and needs no test.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.tree import ROOT, Source, built, sources

GUARANTEES = ROOT / "docs" / "guarantees.md"
NUMBER = r"\d{1,2}\.\d{1,2}[a-z]?"
HEADING = re.compile(r"^#+\s")
LATER = re.compile(r"\bnot (?:yet|built)\b", re.IGNORECASE)
RULE = re.compile(rf"^(?:#+\s+|\|\s*)[`*]*({NUMBER})\b")
CITED = re.compile(rf"\b(?:SPEC|rules?)\s+({NUMBER}(?:(?:\s*,\s*|\s+(?:and|or|to)\s+){NUMBER})*)", re.IGNORECASE)
IN_NAME = re.compile(r"(?:spec|rule)_(\d{1,2})_(\d{1,2}[a-z]?)(?=_|$)", re.IGNORECASE)


def promised(text: str) -> set[str]:
    rules: set[str] = set()
    later = False
    for line in text.splitlines():
        if HEADING.match(line):
            later = bool(LATER.search(line))
        found = RULE.match(line)
        if found and not later:
            rules.add(found[1])
    return rules


def cited(source: Source) -> Iterator[str]:
    """The rules that the test functions of a file cite, and the test classes around them."""
    for node in ast.walk(source.tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named and node.name.lower().startswith("test"):
            yield from (f"{major}.{minor}" for major, minor in IN_NAME.findall(node.name))
            for group in CITED.findall(ast.get_docstring(node) or ""):
                yield from re.findall(NUMBER, group)


def test_every_promise_has_a_test():
    if not GUARANTEES.exists():
        assert not (built("app/app.py") and built("edge/cli/main.py")), "docs/guarantees.md is missing"
        return
    rules = promised(GUARANTEES.read_text("utf-8"))
    assert len(rules) >= 30
    tests = (*sources("tests"), *sources("src/tarry/testing"))
    proven = {rule for source in tests if "/house/" not in source.name for rule in cited(source)}
    untested = sorted(rules - proven, key=lambda rule: [int(n) for n in re.findall(r"\d+", rule)])
    assert untested == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("# Guarantees\n\n### 4.7 Timeouts\n\ntext\n\n### `3.4b` Retries", {"4.7", "3.4b"}),
        ("| rule | what |\n|---|---|\n| 4.7 | instants |\n| **11.3** | epochs |", {"4.7", "11.3"}),
        ("## Not built yet\n\n### 7.1 Questions: not yet\n\n| 7.2 | x |\n\n## Built\n\n| 4.1 | y |", {"4.1"}),
        ("Rule 4.7 in running text, version 3.11", set[str]()),
    ],
)
def test_promises_are_read(text: str, rules: set[str]):
    assert promised(text) == rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("def test_a():\n    '''A timeout is an instant (SPEC 4.7).'''", {"4.7"}),
        ("async def test_a():\n    '''rules 4.1, 4.2 and 3.4b'''", {"4.1", "4.2", "3.4b"}),
        ("def test_rule_11_3_fences():\n    pass", {"11.3"}),
        ("class TestA:\n    '''SPEC 5.1'''\n    def test_a(self): ...", {"5.1"}),
        ("def helper():\n    '''SPEC 4.7'''", set[str]()),
        ("'''SPEC 4.7: a module alone proves nothing.'''", set[str]()),
    ],
)
def test_citations_are_read(text: str, rules: set[str]):
    assert {*cited(Source("a.py", text))} == rules

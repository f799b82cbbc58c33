"""No test sleeps: it steps a clock or awaits an event, and so is fast and never a coin toss.

The files listed under MAY are the exception, each with its reason: they drive real processes, and look again
until a bound; or they assert that a sleep is refused.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.house.tree import Source, sources

MAY = {
    "tests/house/test_sleep.py": "the samples below",
    "tests/engine/test_pauses.py": "asserts that a body which sleeps is blocked",
    "tests/engine/test_steps.py": "asserts that a body which sleeps is blocked",
    "tests/edge/shop.py": "a workflow for real processes: its step takes time",
    "tests/sim/test_loop.py": "virtual time, on the simulator's own loop",
    "tests/faults/town.py": "real processes: a step takes time, a sender waits for a run to be started",
    "tests/faults/siege.py": "real processes: breathes between kills",
    "tests/engine/test_loop.py": "asserts that a run's own loop refuses to sleep",
}
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "anyio.sleep_until", "anyio.sleep_forever"}


def naps(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and source.dotted(node.func) in SLEEPS:
            turns = source.dotted(node.func) != "time.sleep" and [ast.unparse(a) for a in node.args] == ["0"]
            if not turns:
                yield f"{source.name}:{node.lineno}: {ast.unparse(node)}"


def test_no_test_sleeps():
    found = [source for source in sources("tests") if source.name not in MAY]
    assert found
    assert [line for source in found for line in naps(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(0)",
        "from time import sleep\nsleep(1)",
        "import asyncio as a\nasync def f():\n    await a.sleep(0.01)",
        "import asyncio\nasync def f(s):\n    await asyncio.sleep(delay=s)",
        "import anyio\nasync def f():\n    await anyio.sleep_forever()",
    ],
)
def test_the_rule_sees(text: str):
    assert [*naps(Source("a.py", text))]


def test_giving_others_a_turn_is_no_sleep():
    text = "import asyncio\nasync def f():\n    await asyncio.sleep(0)"
    assert [*naps(Source("a.py", text))] == []

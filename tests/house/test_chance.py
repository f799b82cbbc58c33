"""`now` is a value. Clock and chance of the machine are read in one file, and in the public test tools.

Everything else is told the time and given its ids, so that a test can step the one and fix the other, and a
replay sees what the first pass saw.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.house.tree import Source, built, sources

MAY = ("src/tarry/clock.py", "src/tarry/testing/")
MODULES = ("time", "random", "secrets")
NAMES = {
    "os.urandom",
    "os.getrandom",
    "uuid.uuid1",
    "uuid.uuid3",
    "uuid.uuid4",
    "uuid.uuid5",
    "uuid.uuid6",
    "uuid.uuid7",
    "uuid.uuid8",
    "uuid.getnode",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "datetime.date.today",
}


def chance(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield f"{source.name}:{node.lineno}: from {node.module} import"
        elif isinstance(node, ast.Attribute | ast.Name):
            name = source.dotted(node)
            if name in NAMES or ("." in name and name.split(".")[0] in MODULES):
                yield f"{source.name}:{node.lineno}: {name}"


def test_clock_and_chance_are_read_in_one_place():
    found = [source for source in sources("src") if not source.name.startswith(MAY)]
    assert found
    assert [line for source in found for line in chance(source)] == []


def test_the_one_place_is_there():
    """A rule about an exception that is never used would be a rule about nothing."""
    clocks = [source for source in sources("src") if source.name.startswith(MAY[0])]
    assert not built("store/sqlite.py") or [*chance(*clocks)]


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.monotonic()",
        "import time as t\nclock = t.time",
        "from time import time_ns",
        "from datetime import datetime\ndatetime.now(None)",
        "import datetime as dt\ndt.datetime.utcnow()",
        "import random\nrandom.Random(1)",
        "import os\nos.urandom(8)",
        "from uuid import uuid4\nuuid4()",
        "def f():\n    import secrets\n    return secrets.token_hex()",
    ],
)
def test_the_rule_sees(text: str):
    assert [*chance(Source("a.py", text))]


def test_types_of_time_and_ids_are_allowed():
    text = "from datetime import datetime\nfrom uuid import UUID\nx: UUID\ny = datetime.fromtimestamp(0)"
    assert [*chance(Source("a.py", text))] == []

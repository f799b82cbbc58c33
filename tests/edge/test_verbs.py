"""Each verb: what it does, and what it prints for people and for programs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarry.edge.cli.main import VERBS
from tests.edge.conftest import Command, Drive


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("verb", VERBS)
def test_help(tarry: Command, verb: str) -> None:
    """SPEC 14: every verb explains itself."""
    ran = tarry(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: tarry {verb}" in ran.out


def test_the_verbs_are_listed(tarry: Command) -> None:
    """SPEC 14: with one line each, and completion among them."""
    ran = tarry("--help")
    assert ran.code == 0
    assert all(tells in " ".join(ran.out.replace("│", "").split()) for _, tells in VERBS.values())
    assert "--install-completion" in ran.out


def test_version_loads_nothing() -> None:
    """SPEC 14: it answers at once, without what draws and parses."""
    script = (
        "import sys; from tarry.edge.cli.main import main; main(['--version']);"
        "print(sorted({'cyclopts', 'rich', 'pydantic', 'apsw', 'asyncio'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[1:] == ["[]"]


def test_payloads_come_from_files_and_standard_input(
    tarry: Command, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC 14: @file and -."""
    (tmp_path / "id.json").write_text('"o-1"\n')
    assert tarry("start", "order", "@id.json", "--id", "r").code == 0
    drive("r")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"amount": 5}\n')))
    assert tarry("signal", "r", "paid", "-").out == "delivered\n"
    drive("r")
    assert tarry("start", "order", '"o-1"', "--id", "r", "--wait").out == '"invoice-o-1: 5"\n'


def test_numbers_stay_what_they_are(tarry: Command) -> None:
    """SPEC 13, 14: what a float cannot hold passes through the command unchanged, in both directions."""
    big = '{"amount": 123456789012345678901234567890.12345678901234567890}'
    tarry("start", "order", '"o-1"', "--id", "r")
    tarry("signal", "r", "other", big, "--key", "k")
    assert f'"payload": {big}' in tarry("receipt", "r", "other", "k", "--json").out


def test_a_negative_number_is_no_option(tarry: Command) -> None:
    """SPEC 14: JSON may begin with a hyphen."""
    tarry("start", "basket", "--id", "r")
    assert tarry("send", "r", "items", "-5", "--key", "k").out == "buffered\n"


def test_a_channel(tarry: Command, drive: Drive) -> None:
    """SPEC 5.1, 5.6, 14: send, close-channel; the actor is cli:USER where none is given."""
    tarry("start", "basket", "--id", "r")
    for key in ("a", "b", "a"):
        tarry("send", "r", "items", "2", "--key", key)
    assert tarry("close-channel", "r", "items", "--actor", "ann").out == "closed\n"
    assert tarry("close-channel", "r", "items").out == "it was closed already\n"
    drive("r")
    assert tarry("start", "basket", "--id", "r", "--wait").out == "4\n"
    receipt = json.loads(tarry("receipt", "r", "items", "a", "--json").out)
    assert receipt["status"] == "delivered"
    assert receipt["actor"].startswith("cli:")


def test_cancel(tarry: Command, drive: Drive) -> None:
    """SPEC 3.12, 14: what is on its way is told from what is over."""
    tarry("start", "order", '"o-1"', "--id", "r")
    tarry("start", "order", '"o-1"', "--id", "s")
    drive("r")
    assert tarry("cancel", "s").out == "cancelled\n"
    assert tarry("cancel", "r")[:2] == (0, "cancelling\n")
    drive("r")
    assert [row["status"] for row in lines(tarry("runs", "--json").out)] == ["cancelled", "cancelled"]


def test_retry_and_resolve(tarry: Command, drive: Drive) -> None:
    """SPEC 3.5, 12.2, 14: a blocked run goes on once its step's outcome is known."""
    tarry("start", "unsure", "--id", "r")
    drive("r")
    blocked = tarry("show", "r").out
    assert "blocked: unknown outcome" in blocked
    assert "tarry resolve r STEP" in blocked
    assert tarry("resolve", "r", "charge", "--result", "seven").code == 2
    assert tarry("resolve", "r", "charge", "--result", "7", "--actor", "ann")[:2] == (0, "ready\n")
    drive("r")
    assert tarry("start", "unsure", "--id", "r", "--wait").out == "7\n"
    assert "by ann" in tarry("show", "r").out


def test_lists_are_filtered_and_paged(tarry: Command, drive: Drive) -> None:
    """SPEC 12.1, 14: a page, the next one, or all; rows are objects, one a line."""
    for number in range(5):
        tarry("start", "order", f'"o-{number}"', "--id", f"r-{number}", "--tag", f"odd={number % 2}")
    drive("r-3")
    page = tarry("runs", "--json", "--limit", "2")
    assert [row["id"] for row in lines(page.out)] == ["r-0", "r-1"]
    cursor = page.err.split("--cursor ")[1].strip()
    page = tarry("runs", "--json", "--limit", "2", "--cursor", cursor)
    assert [row["id"] for row in lines(page.out)] == ["r-2", "r-3"]
    every = tarry("runs", "--json", "--limit", "2", "--all")
    assert [row["id"] for row in lines(every.out)] == [f"r-{number}" for number in range(5)]
    assert every.err == ""
    assert [row["id"] for row in lines(tarry("runs", "--json", "--tag", "odd=1").out)] == ["r-1", "r-3"]
    assert [row["id"] for row in lines(tarry("runs", "--json", "--status", "waiting").out)] == ["r-3"]
    assert tarry("runs", "--limit", "2", "--all").out.count("order") == 5
    assert tarry("runs", "--prefix", "x").out == "nothing\n"
    (wait,) = lines(tarry("waits", "--json", "--tag", "odd=1", "--workflow", "order").out)
    assert (wait["run"], wait["name"], wait["kind"]) == ("r-3", "paid", "signal")
    assert lines(tarry("waits", "--json", "--age", "1h").out) == []
    assert lines(tarry("waits", "--json", "--overdue").out) == []
    assert lines(tarry("workers", "--json").out) == []


def test_dead_letters(tarry: Command, drive: Drive) -> None:
    """SPEC 4.16, 14: listed with their reason, never with their payload."""
    tarry("start", "order", '"o-1"', "--id", "r")
    drive("r")
    tarry("signal", "r", "paid", '{"amount": "secret"}', "--key", "k")
    (letter,) = lines(tarry("letters", "--json", "--run", "r", "--reason", "invalid").out)
    assert (letter["name"], letter["key"], letter["errors"][0][0]) == ("paid", "k", "amount")
    assert "secret" not in tarry("letters").out + json.dumps(letter)


def test_the_app_names_the_store(tarry: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC 14: the store is --store, else TARRY_STORE, else that of MODULE:APP, whose types check the input too."""
    code = "from tests.edge.shop import opened\napp = opened('sqlite:///own.db')\n"
    (tmp_path / "shop_of_its_own.py").write_text(code)
    monkeypatch.setattr(sys, "path", [*sys.path])
    here = ("--app", "shop_of_its_own:app")
    assert tarry("start", "order", '"o-1"', "--id", "r", *here).code == 0
    assert (tmp_path / "shop.db").exists()
    assert not (tmp_path / "own.db").exists()
    sys.modules.pop("shop_of_its_own")
    monkeypatch.delenv("TARRY_STORE")
    refused = tarry("start", "order", "5", "--id", "s", *here)
    assert (refused.code, "order_id" in refused.err) == (2, True)
    assert (tmp_path / "own.db").exists()
    sys.modules.pop("shop_of_its_own")
    assert tarry("runs", *here).out == "nothing\n"


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("order", "is not MODULE:APP"),
        ("nowhere.at_all:app", "there is no module nowhere.at_all here"),
        ("tests/edge/shop.py:app", "tests.edge.shop:app"),
        ("tests.edge.shop:app", "it has none at all"),
    ],
)
def test_what_is_no_app(tarry: Command, target: str, told: str) -> None:
    """SPEC 14: a mistyped MODULE:APP is explained."""
    ran = tarry("worker", target)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_module_that_fails_is_told_as_it_is(tarry: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC 14: what is wrong inside MODULE is not called a missing MODULE."""
    (tmp_path / "needs_another.py").write_text("import not_installed_anywhere\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    ran = tarry("worker", "needs_another:app")
    assert ran.code == 1
    assert "No module named 'not_installed_anywhere'" in ran.err

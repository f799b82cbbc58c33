"""What a call says and exits with."""

from __future__ import annotations

import json

import pytest

from tarry.edge.cli import failing
from tarry.errors import LimitExceeded, RunGone, StoreBusy, StoreFull, TarryError
from tarry.model import ReceiptStatus
from tests.edge.conftest import Command, Drive


def test_done(tarry: Command) -> None:
    """SPEC 14: data on standard output, 0."""
    assert tarry("start", "order", '"o-1"', "--id", "r").out == "r\n"
    again = tarry("start", "order", '"o-1"', "--id", "r", "--json")
    assert (again.code, json.loads(again.out)) == (0, {"run": "r", "created": False})


def test_a_run_that_failed(tarry: Command, drive: Drive) -> None:
    """SPEC 14: 1, and what it failed with, harmless to the terminal."""
    tarry("start", "fails", "--id", "r")
    drive("r")
    ran = tarry("start", "fails", "--id", "r", "--wait")
    assert (ran.code, ran.out) == (1, "")
    assert "Run r ended as failed: StepFailed" in ran.err
    assert "ValueError: \\x1b[31m\\x9b2J[bold]:smile: \\u202eevil" in ran.err


def test_a_result_is_printed(tarry: Command, drive: Drive) -> None:
    """SPEC 14: --wait prints the result as JSON."""
    tarry("start", "order", '"o\\u009b1"', "--id", "r")
    drive("r")
    assert tarry("signal", "r", "paid", '{"amount": 5}').out == "delivered\n"
    drive("r")
    ran = tarry("start", "order", '"o\\u009b1"', "--id", "r", "--wait")
    assert (ran.code, ran.out) == (0, '"invoice-o\\u009b1: 5"\n')


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["start", "order", "o-42"], "'o-42' is not JSON; did you mean '\"o-42\"'?"),
        (["signal", "r", "paid", "{amount: 5}"], "double quotes"),
        (["signal", "r", "paid", "@nowhere.json"], "nowhere.json cannot be read"),
        (["signal", "r", "paid", "[NaN]"], "cannot be stored as JSON"),
        (["signal", "r", "paid", "[" * 5000 + "]" * 5000], "levels deep"),
        (["signal", "r", " paid", "1"], "white space"),
        (["send", "r", "items", "1"], "--key"),
        (["start", "order", "--tag", "kind"], "NAME=VALUE"),
        (["start", "order", "--deadline", "soon"], "not a duration"),
        (["runs", "--status", "lost"], "'lost' is none of ready, running"),
        (["waits", "--kind", "bus"], "none of signal, channel"),
        (["runs", "--limit", "0"], "1 to 1000"),
        (["runs", "--store", "mysql://u:secret@h/d"], "sqlite://"),
        (["runs", "--colour"], "--colour"),
        (["sginal", "r", "paid"], 'Did you mean "signal"?'),
        (["resolve", "r", "charge"], "one of --result"),
        (["resolve", "r", "charge", "--redo", "--failed", "x"], "one of --result"),
    ],
)
def test_usage(tarry: Command, arguments: list[str], told: str) -> None:
    """SPEC 14: 2, and what to write instead."""
    tarry("start", "order", '"o-1"', "--id", "r")
    ran = tarry(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in " ".join(ran.err.replace("│", "").split())
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err


def test_no_store(tarry: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC 14: --store, else TARRY_STORE: one of the two is told."""
    monkeypatch.delenv("TARRY_STORE")
    ran = tarry("runs")
    assert ran.code == 2
    assert "set TARRY_STORE" in ran.err


def test_timed_out(tarry: Command) -> None:
    """SPEC 14: 3; the run goes on."""
    ran = tarry("start", "order", '"o-1"', "--id", "r", "--wait", "--timeout", "1ms")
    assert (ran.code, ran.out) == (3, "")
    assert "goes on" in ran.err


def test_not_there(tarry: Command) -> None:
    """SPEC 14: 4. A store that is not there is not made by looking for it."""
    ran = tarry("runs")
    assert (ran.code, "there is no store at" in ran.err) == (4, True)
    assert tarry("signal", "r", "paid", "1").code == 4
    tarry("start", "order", '"o-1"', "--id", "r")
    assert tarry("runs").code == 0
    for arguments in (["show", "x"], ["signal", "x", "paid"], ["cancel", "x"], ["receipt", "r", "paid", "k"]):
        assert tarry(*arguments).code == 4


def test_an_undeclared_name(tarry: Command, drive: Drive) -> None:
    """SPEC 4.4, 14: 4, with near misses, once the workflow's code has said what it accepts."""
    tarry("start", "order", '"o-1"', "--id", "r")
    drive("r")
    ran = tarry("signal", "r", "piad", "1")
    assert ran.code == 4
    assert "did you mean 'paid'?" in ran.err


def test_conflicts(tarry: Command, drive: Drive) -> None:
    """SPEC 4.4, 14: what the run did not take is 5, with the receipt on standard output."""
    tarry("start", "order", '"o-1"', "--id", "r")
    drive("r")
    assert tarry("start", "order", '"o-2"', "--id", "r").code == 5
    assert tarry("retry", "r").code == 5
    assert tarry("resolve", "r", "invoice", "--redo").code == 5
    assert tarry("signal", "r", "picky", "1")[:2] == (5, "not_waiting\n")
    invalid = tarry("signal", "r", "paid", '{"amount": "five"}', "--key", "k")
    assert (invalid.code, invalid.out) == (5, "invalid\n")
    assert "amount: " in invalid.err
    assert tarry("signal", "r", "paid", '{"amount": 5}', "--key", "k").out == "delivered\n"
    assert tarry("signal", "r", "paid", '{"amount": 5}', "--key", "k")[:2] == (0, "duplicate\n")
    assert tarry("signal", "r", "paid", '{"amount": 6}', "--key", "k")[:2] == (5, "conflict\n")
    assert tarry("signal", "r", "paid", '{"amount": 6}', "--key", "l")[:2] == (5, "already_settled\n")
    drive("r")
    assert tarry("signal", "r", "paid", '{"amount": 7}', "--key", "m").code == 5
    assert tarry("cancel", "r").code == 5


@pytest.mark.parametrize("status", ReceiptStatus)
def test_each_receipt_has_a_code(status: ReceiptStatus) -> None:
    """SPEC 4.4, 14: 0 exactly where the run has the delivery."""
    assert failing.of_receipt(status) == (0 if status in ("delivered", "buffered", "duplicate") else 5)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreBusy(waited_s=30), 75),
        (StoreFull(reason="x"), 75),
        (LimitExceeded(run_id="r", limit=1, what="open waits"), 75),
        (RunGone(run_id="r"), 5),
        (TarryError(), 1),
        (RuntimeError("x"), 1),
    ],
)
def test_codes_of_errors(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """SPEC 14: 75 where the same call may work later; a line, and no traceback."""
    assert failing.tell(error) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1


def test_a_traceback_is_there_for_who_asks(tarry: Command) -> None:
    """SPEC 14: --debug and TARRY_LOG_LEVEL=debug."""
    tarry("start", "order", '"o-1"', "--id", "r")
    assert "Traceback" not in tarry("show", "x").err
    assert "Traceback" in tarry("show", "x", "--debug").err

"""What a person sees of a run, and what a terminal must never see."""

from __future__ import annotations

import json

import pytest

from tarry.core.durations import from_ms
from tarry.edge.cli.text import after, clean, json_text, short
from tests.edge.conftest import Command, Drive
from tests.edge.shop import HOSTILE


@pytest.fixture
def told(tarry: Command, drive: Drive) -> Command:
    """A run to which everything has happened."""
    tarry("start", "order", '"o-1"', "--id", "r", "--tag", "kind=[red]big[/red]")
    tarry("signal", "r", "paid", '{"amount": "no"}', "--key", "[bold]k", "--actor", "[link=x]ann")
    drive("r")
    tarry("signal", "r", "paid", '{"amount": "five"}', "--key", "l")
    tarry("signal", "r", "paid", '{"amount": 5}', "--key", "m")
    drive("r")
    tarry("signal", "r", "paid", '{"amount": 6}', "--key", "n")
    return tarry


def test_a_run_from_beginning_to_end(told: Command) -> None:
    """SPEC 12.1, 12.4: in order of time, with what came, what became of it, and why."""
    out = told("show", "r").out
    order = ["started", "step invoice", "refused", "key l", "key m", "wait paid", "●  succeeded", "key n"]
    places = [out.index(mark, out.index("●")) for mark in order]
    assert places == sorted(places)
    assert "kind=[red]big[/red]" in out
    assert "key [bold]k  by [link=x]ann" in out
    assert "amount: " in out


def test_payloads_are_shown_to_who_asks(told: Command) -> None:
    """SPEC 12.1: they are secret; then a short preview, or all of it as JSON."""
    assert "five" not in told("show", "r").out + told("show", "r", "--json").out
    assert '{"amount": "five"}' in told("show", "r", "--payloads").out
    rows = [json.loads(line) for line in told("show", "r", "--json", "--payloads").out.splitlines()]
    assert (rows[0]["sort"], rows[0]["id"], rows[0]["status"]) == ("state", "r", "succeeded")
    assert {"amount": "five"} in [row["payload"] for row in rows[1:]]


def test_open_waits_are_in_it(tarry: Command, drive: Drive) -> None:
    """SPEC 12.1: what the run stands at, and until when."""
    tarry("start", "order", '"o-1"', "--id", "r")
    drive("r")
    (line,) = [line for line in tarry("show", "r").out.splitlines() if "…" in line]
    assert "signal paid open" in line
    assert "until 2" in line


@pytest.mark.parametrize("width", [80, 140])
def test_it_fits_the_terminal(told: Command, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """SPEC 14: nothing is cut off at the edge of a narrow terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (["show", "r", "--payloads"], ["runs"], ["letters"]):
        out = told(*arguments).out
        assert max(map(len, out.splitlines())) <= width
    assert '{"amount": 6}' in told("show", "r", "--payloads").out.replace("\n", "")


def test_no_colour_where_none_is_wanted(told: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC 14: colour on a terminal, not in a pipe; NO_COLOR is heeded."""
    assert "\x1b" not in told("show", "r").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[3" in told("show", "r").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in told("show", "r").out


def test_text_of_a_run_cannot_control_the_terminal(tarry: Command, drive: Drive) -> None:
    """SPEC 14: escapes, C1 controls and marks of direction are made visible; markup and emoji names stay text."""
    tarry("start", "fails", "--id", "[bold]r")
    drive("[bold]r")
    tarry("start", "order", json.dumps(HOSTILE, ensure_ascii=False), "--id", "s")
    outs = [
        tarry("show", "[bold]r", "--payloads").out,
        tarry("show", "s", "--payloads").out,
        tarry("show", "[bold]r", "--json", "--payloads").out,
        tarry("runs").out,
        tarry("runs", "--json").out,
    ]
    for out in outs:
        assert not {"\x1b", "\x9b", "\u202e"} & set(out)
    assert "[bold]r" in outs[0]
    assert "[bold]:smile:" in outs[0].replace("\n", "")
    assert "[bold]r" in outs[3]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\x1b[0m", "a\\x1b[0m"),
        ("a\nb", "a\\x0ab"),
        ("\u2028\u200d", "\\u2028\\u200d"),
        ("\U000e0001", "\\U000e0001"),
        ("naïve 漢 🙂", "naïve 漢 🙂"),
    ],
)
def test_clean(text: str, seen: str) -> None:
    """SPEC 14: on one line, and harmless; letters of every language stay."""
    assert clean(text) == seen


def test_escaped_json_is_the_same_json() -> None:
    """SPEC 14: made harmless, it is still the value that was stored."""
    value = {"a\u202e": "\x9b\U000e0001\u2028", "b": [1, None]}
    text = json_text(json.dumps(value, ensure_ascii=False, indent=1).encode())
    assert text.isprintable()
    assert json.loads(text) == value


def test_short() -> None:
    """SPEC 14: a preview is one line of at most so many characters."""
    assert short("abcdef", 4) == "abc…"
    assert short("a\nb", 9) == "a\\x0ab"


@pytest.mark.parametrize(
    ("ms", "text"),
    [(14, "+0.014s"), (-5, "-0.005s"), (125_000, "+2m05s"), (7_380_000, "+2h03m"), (270_000_000, "+3d03h")],
)
def test_after(ms: int, text: str) -> None:
    """SPEC 14: times of a timeline count from its start."""
    assert after(from_ms(10**12 + ms), from_ms(10**12)) == text

"""What may be a name, a run's id, a key or an actor."""

from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.names import check_actor, check_key, check_name, check_run_id
from tarry.core.shown import place, shown, type_name
from tarry.errors import InvalidName
from tarry.model import Limits


def check_signal(text: str) -> str:
    return check_name("signal", text)


CHECKS = [check_signal, check_run_id, check_actor, check_key]
every = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
Check = Callable[[str], str]


@every
@pytest.mark.parametrize(
    "text",
    [
        "a",
        "ab",
        "order-42",
        "a b",
        "größe",
        "日本",
        "a/b?c=d%20&e",
        "💶",
        "👨‍👩‍👧",
        "می‌خواهم",
        "e\u0301",
        "'; DROP",
        "\\u0000",
    ],
)
def test_any_printable_text_is_taken(check: Check, text: str):
    """SPEC 5.5, 13: and comes back as it is."""
    assert check(text) == text


@every
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " a",
        "a ",
        "\u3000a",
        "a\u00a0",
        "a\n",
        "a\nb",
        "a\tb",
        "\0",
        "a\0b",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "a\u2028b",
        "\u202eabc",
        "a\u2066b",
        "\ufeffa",
        "\ud800",
        "a\udfffb",
    ],
    ids=ascii,
)
def test_what_cannot_be_printed_is_refused(check: Check, text: str):
    """SPEC 3.1, 13: no control characters, no edge white space, no halves of pairs; the error shows which."""
    with pytest.raises(InvalidName) as caught:
        check(text)
    assert str(caught.value).isprintable()
    assert str(caught.value).encode()


@every
@pytest.mark.parametrize("value", [None, 5, b"a", ["a"], object()], ids=lambda value: type(value).__name__)
def test_what_is_no_text_is_refused(check: Check, value: Any):
    """SPEC 13"""
    with pytest.raises(InvalidName, match="it is not text"):
        check(value)


def test_lengths():
    """SPEC 13: names, ids and actors count characters, keys bytes."""
    for check in (check_signal, check_run_id, check_actor):
        assert check("ä" * 200)
        with pytest.raises(InvalidName, match="201 characters, 200 at most"):
            check("ä" * 201)
    assert check_key("x" * 512)
    assert check_key("ä" * 256)
    with pytest.raises(InvalidName, match="513 characters, 512 at most"):
        check_key("x" * 513)
    with pytest.raises(InvalidName, match="514 bytes, 512 at most"):
        check_key("ä" * 257)
    with pytest.raises(InvalidName):
        check_key("x" * 10_000_000)
    assert check_name("signal", "abc", Limits(name_chars=3)) == "abc"
    with pytest.raises(InvalidName):
        check_name("signal", "abcd", Limits(name_chars=3))


def test_the_error_says_what_it_is_about():
    with pytest.raises(InvalidName, match=r"The signal 'a\\n' is not usable: it holds '\\n'"):
        check_signal("a\n")
    with pytest.raises(InvalidName, match="The run id '' is not usable: it is empty"):
        check_run_id("")


def test_names_are_plain_text():
    """SPEC 13: an enum's member is its text, on file as in memory."""

    class Names(StrEnum):
        PAID = "paid"

    class Mixed(str, Enum):  # noqa: UP042
        PAID = "paid"

    for name in (Names.PAID, Mixed.PAID):
        for check in CHECKS:
            assert type(check(name)) is str
            assert check(name) == "paid"


@given(st.text())
def test_a_name_is_taken_as_it_is_or_refused(text: str):
    """SPEC 5.5: matching is exact, so nothing about a name is ever changed."""
    try:
        assert check_signal(text) is text
    except InvalidName:
        return
    assert text == text.strip()
    assert text.encode().decode() == text
    assert "\n" not in text


# --- how it is told ----------------------------------------------------------------------------------


def test_whatever_is_shown_is_short_and_on_one_line():
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    class Long:
        def __repr__(self) -> str:
            return "a\nb\ud800" * 1_000

    assert shown("a\nb") == r"'a\nb'"
    assert shown("x" * 100, 10) == "'xxxxxxxx…"
    assert shown(10**6_000) == "<int>"
    assert shown(Rude(), 200).endswith("Rude>")
    assert shown(Long(), 10) == r"a b\ud800…"[:9] + "…"


def test_places():
    assert place([]) == "$"
    assert place(["a", "b", 0]) == "a.b[0]"
    assert place([0, "a"]) == "[0].a"
    assert place(["odd key", 1]) == "['odd key'][1]"
    assert len(place(["k" * 1_000] * 1_000)) == 200


def test_type_names():
    assert type_name(int) == "int"
    assert type_name(list[int]) == "list[int]"
    assert type_name(int | None) == "int | None"
    assert len(type_name(tuple[(int,) * 500])) == 120

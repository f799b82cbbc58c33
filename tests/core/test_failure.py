"""Any exception can be written; what is written is read without running anything."""

import json
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.codec import decode_error, encode_error
from tarry.errors import StepFailed
from tarry.model import ErrorRecord


class Rejected(ValueError):
    def __init__(self, code: int, *, lock: Any) -> None:
        self.lock = lock
        super().__init__(f"rejected with {code}")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def raised(do: Callable[[], Any]) -> BaseException:
    try:
        do()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def divide() -> None:
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        raise Rejected(4, lock=threading.Lock()) from error


def record(error: BaseException) -> ErrorRecord:
    return decode_error(encode_error(error))


def test_an_error_is_told_as_it_was():
    """SPEC 3.7: type, message, traceback, bases and cause."""
    told = record(raised(divide))
    assert (told.type, told.message) == ("Rejected", "rejected with 4")
    assert told.mro[:2] == (f"{__name__}.Rejected", "builtins.ValueError")
    assert "raise Rejected(4, lock=threading.Lock()) from error" in told.traceback
    assert told.traceback.rstrip().endswith("Rejected: rejected with 4")
    assert "ZeroDivisionError" in told.traceback
    assert told.cause is not None
    assert (told.cause.type, told.cause.message) == ("ZeroDivisionError", "division by zero")
    failed = StepFailed(step="s", type=told.type, message=told.message, mro=told.mro)
    assert failed.is_a(ValueError)
    assert failed.is_a(Rejected)
    assert not failed.is_a(KeyError)


def test_what_was_raised_while_another_was_handled():
    """SPEC 3.7: as Python tells it, unless the author has hidden it."""

    def during() -> None:
        try:
            divide()
        except Rejected:
            raise KeyError("k")  # noqa: B904

    def hidden() -> None:
        try:
            divide()
        except Rejected:
            raise KeyError("k") from None

    told = record(raised(during))
    assert told.cause is not None
    assert told.cause.type == "Rejected"
    assert told.cause.cause is not None
    assert record(raised(hidden)).cause is None


ODD: list[Callable[[], BaseException]] = [
    lambda: raised(divide),
    lambda: Unspeakable("x"),
    lambda: ExceptionGroup("many", [ValueError(1), Unspeakable(), ExceptionGroup("in", [OSError(2, "x")])]),
    lambda: ValueError("a\0b\ud800" * 100_000),
    lambda: Exception(socket, lambda: 1, threading.Lock()),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    lambda: SystemExit(3),
    KeyboardInterrupt,
    lambda: SyntaxError("bad", ("<x>", 1, 1, "text\ud800", 1, 2)),
    lambda: type("Long" * 1_000, (Exception,), {})("x"),
    lambda: type("Moduleless", (Exception,), {"__module__": None})("x"),
    lambda: type("Half", (Exception,), {"__module__": "a\ud800"})("x"),
    lambda: raised(lambda: raised(divide).missing),  # type: ignore[attr-defined]
    lambda: raised(endless),
]


def endless() -> None:
    endless()


@pytest.mark.parametrize("make", ODD)
def test_any_exception_can_be_written(make: Callable[[], BaseException]):
    """SPEC 3.7, S15, S16: whatever its own code does; bounded; as text that every store takes."""
    error = make()
    data = encode_error(error)
    assert len(data) < 150_000
    assert json.dumps(json.loads(data), ensure_ascii=False).encode()
    told = decode_error(data)
    assert told.type
    assert told.mro[-1] == "builtins.object"
    assert len(told.message) <= 4_000
    assert len(told.traceback) <= 16_000


def test_a_chain_of_causes_ends():
    """SPEC 3.7: a ring of causes, and a chain of a thousand."""
    a, b = ValueError("a"), ValueError("b")
    a.__cause__, b.__cause__ = b, a
    told = record(a)
    assert told.cause is not None
    assert told.cause.cause is None
    link: Exception | None = None
    for n in range(1_000):
        link, below = ValueError(n), link
        link.__cause__ = below
    depth = 0
    cause: ErrorRecord | None = record(link or a)
    while cause is not None:
        cause, depth = cause.cause, depth + 1
    assert depth == 6


def test_a_note_is_told():
    error = ValueError("x")
    error.add_note("what to do")
    assert "what to do" in record(error).traceback


def test_a_traceback_that_fails_costs_the_traceback_alone(monkeypatch: pytest.MonkeyPatch):
    """SPEC 3.7"""

    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no traceback")

    monkeypatch.setattr(traceback, "TracebackException", broken)
    told = record(ValueError("x"))
    assert told.message == "x"
    assert told.traceback == "(the traceback cannot be told: RuntimeError)"


def test_a_long_traceback_keeps_its_end():
    told = record(raised(endless))
    assert "RecursionError" in told.traceback[-500:]


json_values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "message", "traceback", "mro", "cause", "x"]), inner, max_size=5)
    ),
)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_reading_never_fails(data: bytes):
    """SPEC 3.7, 13: a row that somebody has changed is told as far as it can be."""
    told = decode_error(data)
    assert isinstance(told.type, str)
    assert isinstance(told.message, str)


def test_reading_imports_nothing():
    """SPEC 13: a row can never choose a class, nor have a module loaded."""
    data = json.dumps({"type": "Oops", "module": "antigravity", "mro": ["antigravity.Oops"]})
    code = (
        "import sys\nfrom tarry.core.codec import decode_error\nbefore = set(sys.modules)\n"
        f"decode_error({data.encode()!r})\nprint(sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_deep_record_is_no_trouble():
    assert decode_error(b'{"cause":' * 50_000 + b"{}" + b"}" * 50_000) == ErrorRecord("?", "")

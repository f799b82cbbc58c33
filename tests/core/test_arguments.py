"""Arguments by the annotations of the function that takes them."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tarry.core.annotations import hints
from tarry.core.codec import args_digest, decode_args, encode_args, return_type, typed
from tarry.errors import BadArguments, PayloadTooLarge, Undecodable, Unencodable
from tarry.model import Limits

SECRET = "tomato-4711"


@dataclass
class Payment:
    amount: Decimal
    note: str = ""


class Model(BaseModel):
    n: int = 0


async def order(run: Any, order_id: str, payment: Payment, count: int = 1) -> str: ...


async def bare(run, a, b=None): ...


async def many(run: Any, first: int, *rest: Payment) -> None: ...


async def keyword(run: Any, a: int, *, b: int) -> None: ...


async def all_in(*args: int) -> None: ...


async def alone(run: Any) -> None: ...


@pytest.mark.parametrize(
    ("fn", "args", "data"),
    [
        (order, ("o", Payment(Decimal("1.10"))), b'["o",{"amount":"1.10","note":""}]'),
        (order, ("o", Payment(Decimal(1)), 5), b'["o",{"amount":"1","note":""},5]'),
        (bare, ({"a": [1, None]},), b'[{"a":[1,null]}]'),
        (many, (1,), b"[1]"),
        (many, (1, Payment(Decimal(1)), Payment(Decimal(2))), None),
        (all_in, (1, 2), b"[1,2]"),
        (alone, (), b"[]"),
    ],
)
def test_arguments_come_back(fn: Any, args: tuple[Any, ...], data: bytes | None):
    """SPEC 3.1, 13: one array, without the run, by the annotations; what was not given is not on file."""
    told = encode_args(fn, args)
    assert data is None or told == data
    assert decode_args(fn, told) == args


@pytest.mark.parametrize(
    ("fn", "args", "reason"),
    [
        (order, (), "order_id and payment missing"),
        (order, ("o",), "payment missing"),
        (order, (1, 2, 3, 4), "it takes 3 beside the run, and 4 were given"),
        (alone, (1,), "it takes 0 beside the run, and 1 were given"),
        (keyword, (1,), "its parameter b is taken by keyword only; give it a default"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(fn: Any, args: tuple[Any, ...], reason: str):
    """SPEC 3.1: told at the start, as the call itself would tell it."""
    with pytest.raises(BadArguments) as caught:
        encode_args(fn, args)
    assert caught.value.fields == {"workflow": fn.__name__, "reason": reason}


@pytest.mark.parametrize(
    ("fn", "args", "path"),
    [
        (order, (5, Payment(Decimal(1))), "order_id"),
        (order, ("o", {"amount": SECRET}), "payment"),
        (order, ("o", Payment(SECRET)), "payment.amount"),  # type: ignore[arg-type]
        (bare, ((1, 2),), "a"),
        (bare, (1, {"x": [SECRET, {1}]}), "b.x[1]"),
        (many, (1, Payment(Decimal(1)), SECRET), "[2]"),
    ],
)
def test_an_argument_that_cannot_be_stored_is_named(fn: Any, args: tuple[Any, ...], path: str):
    """SPEC 13: by its parameter, and what it holds is not told."""
    with pytest.raises(Unencodable) as caught:
        encode_args(fn, args)
    assert caught.value.fields["path"] == path
    assert SECRET not in str(caught.value)


def test_arguments_have_the_payload_s_limits():
    """SPEC 13"""
    with pytest.raises(PayloadTooLarge):
        encode_args(bare, ("x" * 100,), Limits(payload_bytes=50))


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"[]", "$"),
        (b'["o"]', "$"),
        (b'["o",{"amount":"1"},1,2]', "$"),
        (b'["o",{"amount":"tomato-4711"}]', "payment.amount"),
        (b'["o",{},1]', "payment.amount"),
        (b'{"a":1}', "$"),
        (b"5", "$"),
        (b"nope", "$"),
        (b'{"a":1,"b":2}', "$"),
    ],
)
def test_stored_arguments_that_no_longer_fit(data: bytes, path: str):
    """SPEC 3.3, S12: the code has changed under a waiting run; which parameter is told, and nothing is guessed."""
    with pytest.raises(Undecodable) as caught:
        decode_args(order, data)
    assert caught.value.fields["type_name"] == "the arguments of order"
    assert caught.value.fields["field_errors"][0].path == path
    assert SECRET not in str(caught.value)


# --- annotations -------------------------------------------------------------------------------------


def plain() -> int: ...


def as_text() -> "list[Payment]": ...


def unknown(a: "Missing", b: "int") -> "list[Missing]": ...  # type: ignore[name-defined]  # noqa: F821


def none() -> None: ...


def silent(a, b): ...


def awaitable() -> Awaitable[int]: ...


def coroutine() -> Coroutine[Any, Any, Payment]: ...


@wraps(plain)
def wrapper(*args: Any) -> Any: ...


class Service:
    def method(self, a: int) -> Payment: ...

    def __call__(self, a: int) -> Model: ...


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (plain, int),
        (as_text, list[Payment]),
        (unknown, None),
        (none, type(None)),
        (silent, None),
        (lambda: 1, None),
        (awaitable, int),
        (coroutine, Payment),
        (order, str),
        (wrapper, int),
        (partial(order, 1), str),
        (partial(partial(plain)), int),
        (Service().method, Payment),
        (Service(), Model),
        (Payment, Payment),
        (len, None),
        (asyncio.sleep, None),
    ],
)
def test_what_a_function_returns(fn: Callable[..., Any], expected: Any):
    """SPEC 13: by annotation, where it can be resolved; `returns=` goes before it."""
    assert return_type(fn) == expected
    assert return_type(fn) == expected
    assert return_type(fn, returns=bytes) is bytes


def test_one_annotation_that_cannot_be_resolved_leaves_the_others():
    """SPEC 13: imported for type checkers only, it counts as none."""
    assert hints(unknown) == {"b": int}


def test_a_function_s_annotations_are_let_go_with_it():
    """Steps are often closures: remembering what they say must not keep what they hold."""
    import gc
    import weakref

    class Held:
        pass

    def made() -> tuple[Callable[[], int], weakref.ref[Held]]:
        held = Held()

        def step() -> int:
            return 1 if held else 0

        return step, weakref.ref(held)

    step, held = made()
    assert return_type(step) is int
    del step
    gc.collect()
    assert held() is None


# --- the digest of a step's arguments ----------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals()


@given(st.lists(scalars), st.lists(scalars))
def test_a_digest_is_the_arguments(a: list[Any], b: list[Any]):
    """SPEC 3.4: equal arguments have one digest, whatever they are; other values have another."""
    assert args_digest(a) == args_digest(list(a))
    if [(type(x), str(x)) for x in a] == [(type(x), str(x)) for x in b]:
        assert args_digest(a) == args_digest(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((), (None,)),
        ((1,), ("1",)),
        ((1,), (True,)),
        ((1,), (1.0,)),
        ((10**400,), (10**400 + 1,)),
        ((Payment(Decimal("1.1")),), (Payment(Decimal("1.10")),)),
        ((Model(n=1),), (Model(n=2),)),
        (([1, [2]],), ([1, [3]],)),
        (({1: "a"},), ({"1": "b"},)),
        (({1, 2},), ({1, 3},)),
        ((b"a",), (b"b",)),
        ((datetime(2026, 1, 1, tzinfo=UTC),), (datetime(2026, 1, 2, tzinfo=UTC),)),
        ((Path("a"),), (Path("b"),)),
        ((1, 2), (2, 1)),
    ],
)
def test_changed_arguments_are_noticed(a: tuple[Any, ...], b: tuple[Any, ...]):
    """SPEC 3.4"""
    assert args_digest(a) != args_digest(b)


def test_no_integer_is_too_long_to_be_noticed():
    """SPEC 3.4: also what could not be stored."""
    assert args_digest((10**5_000,)) != args_digest((10**5_000 + 1,))


def test_what_is_no_data_counts_by_its_type():
    """SPEC 3.4: a lock, a client, a function, an iterator, which is not used up."""

    class Client:
        pass

    iterator = iter([1, 2])
    assert args_digest((Client(), threading.Lock(), iterator)) == args_digest((Client(), threading.Lock(), iter([])))
    assert list(iterator) == [1, 2]
    assert args_digest((Client(),)) != args_digest((threading.Lock(),))
    assert args_digest((len,)) == args_digest((max,))


def test_arguments_without_order_have_one_digest():
    """SPEC 3.4"""
    assert args_digest(({"a": 1, "b": 2},)) == args_digest(({"b": 2, "a": 1},))


def test_no_argument_breaks_the_digest():
    """SPEC 3.4: cycles, surrogates, NaN, depth."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]

    class Awkward:
        def __fspath__(self) -> str:
            raise RuntimeError

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError

    for arg in (cycle, deep, "\ud800", {"\ud800": float("nan")}, Awkward(), Decimal("sNaN")):
        assert args_digest((arg,)) == args_digest((arg,))


def test_a_digest_is_the_same_in_every_process():
    """SPEC 3.4: a worker on another machine, with another hash seed, sees unchanged arguments."""
    code = (
        "from dataclasses import dataclass, field\nfrom tarry.core.codec import args_digest\n"
        "@dataclass\nclass A:\n    s: set[str] = field(default_factory=lambda: {str(n) for n in range(50)})\n"
        "print(args_digest((A(), {'b': {1.5, 'x', None}, 'a': object()}, print)))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_arguments_are_one_type():
    """The codec of a call is made once for each number of arguments."""
    assert typed(tuple[str, Payment]) is typed(tuple[str, Payment])

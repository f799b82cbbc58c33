"""Values to bytes and back: what is accepted comes back as it was, the rest is refused with its place."""

import datetime as dt
import enum
import math
import os
import pickle
import subprocess
import sys
import uuid
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    computed_field,
)
from typing_extensions import TypedDict

from tarry.core.codec import Typed, check_raw, field_errors, same, type_errors, typed
from tarry.core.plain import DIGITS
from tarry.core.shown import type_name
from tarry.errors import PayloadTooDeep, PayloadTooLarge, Undecodable, Unencodable
from tarry.model import Limits

SECRET = "tomato-4711"


class Colour(enum.Enum):
    RED = "red"


class Grade(enum.IntEnum):
    A = 1


class Point(NamedTuple):
    x: int
    y: int = 0


class Row(TypedDict):
    name: str
    n: int


@dataclass
class Payment:
    amount: Decimal
    data: bytes = b""
    at: dt.datetime | None = None
    tags: set[str] = field(default_factory=set)


class Item(BaseModel):
    sku: str
    price: float = 0.0
    note: str | None = None


class Order(BaseModel):
    order_id: str = Field(alias="orderId")
    items: list[Item] = []
    by_line: dict[int, Item] = {}

    @computed_field
    @property
    def size(self) -> int:
        return len(self.items)


class Tree(BaseModel):
    kids: list["Tree"] = []


class Animal(BaseModel):
    name: str = ""


class Dog(Animal):
    breed: str = ""


class Aliases(BaseModel):
    read: int = Field(default=0, validation_alias="r")
    written: int = Field(default=0, serialization_alias="w")


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 0


def named(part: Any) -> str:
    """A test's name, the same in every process."""
    return type_name(part if isinstance(part, type) else type(part))


def back(tp: Any, value: Any) -> Any:
    return typed(tp).decode(typed(tp).encode(value))


def refused(tp: Any, value: Any) -> Unencodable:
    with pytest.raises(Unencodable) as caught:
        typed(tp).encode(value)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


# --- what comes back ---------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
decimals = st.decimals(allow_nan=False, allow_infinity=False)


def exactly(value: Any) -> Any:
    """A value with the types of all its parts, and the sign of zero."""
    if isinstance(value, dict):
        return dict, [(exactly(k), exactly(v)) for k, v in value.items()]
    if isinstance(value, list | tuple | deque):
        return type(value), [exactly(part) for part in value]
    if isinstance(value, float | Decimal):
        return type(value), str(value)
    return type(value), value


@given(plain)
@example(-0.0)
@example(2**53 + 1)
@example(-(2**70))
@example("a\0b")
@example({"k\0": ["\\u0000", None]})
@example(10 ** (DIGITS - 1))
def test_untyped_json_comes_back(value: Any):
    """SPEC 13: JSON's own types survive unchanged (S15, S79)."""
    assert exactly(back(None, value)) == exactly(value)
    assert exactly(back(Any, value)) == exactly(value)


@given(
    st.builds(
        Payment,
        decimals,
        st.binary(),
        st.none() | st.datetimes(timezones=zones),
        st.sets(texts, max_size=4),
    )
)
def test_a_dataclass_comes_back(value: Payment):
    """SPEC 13: Decimal with its scale, bytes, zoned datetimes and sets survive in a stdlib dataclass."""
    copy = back(Payment, value)
    assert copy == value
    assert str(copy.amount) == str(value.amount)
    assert value.at is None or copy.at.utcoffset() == value.at.utcoffset()


@given(st.builds(Item, sku=texts, price=st.floats(allow_nan=False, allow_infinity=False), note=st.none() | texts))
def test_a_model_comes_back(value: Item):
    """SPEC 13"""
    assert back(Item, value) == value
    assert back(list[Item], [value]) == [value]


@given(st.dictionaries(st.integers(), plain, max_size=4))
def test_typed_keys_come_back(value: dict[int, Any]):
    """SPEC 13, S78: what JSON writes as text is read by its type."""
    assert exactly(back(dict[int, Any], value)) == exactly(value)


UTC = dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.UTC)
KEPT = [
    (int, 10**400),
    (int | str, "5"),
    (str | int, 5),
    (float, -0.0),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("-1E+400")),
    (bytes, b"\xff\0"),
    (Colour, Colour.RED),
    (Grade, Grade.A),
    (Literal["a", 1, None], None),
    (type(None), None),
    (str, "a\0b\U0001f600"),
    (dt.datetime, UTC),
    (dt.datetime, dt.datetime(2026, 1, 1)),
    (dt.date, dt.date(2026, 1, 1)),
    (dt.timedelta, dt.timedelta(days=-1, microseconds=1)),
    (uuid.UUID, uuid.UUID(int=7)),
    (Path, Path("/a/b")),
    (Point, Point(1, 2)),
    (Row, {"name": "a", "n": 1}),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (set[int], {3, 1}),
    (frozenset[bytes], frozenset({b"\xff"})),
    (deque[int], deque([1, 2])),
    (OrderedDict[str, int], OrderedDict(b=1, a=2)),
    (defaultdict[str, int], defaultdict(int, a=1)),
    (dict[Grade, int], {Grade.A: 1}),
    (dict[dt.date, int], {dt.date(2026, 1, 1): 1}),
    (dict[int, str], {1: "a", 2: "b"}),
    (list[Payment | None], [Payment(Decimal(1)), None]),
    (list[Animal | Dog], [Animal(name="a"), Dog(name="b", breed="c")]),
    (Order, Order(orderId="o", items=[Item(sku="a")], by_line={1: Item(sku="b")})),
    (Aliases, Aliases.model_construct(read=1, written=2)),
    (Tree, Tree(kids=[Tree(kids=[Tree()])])),
    (RootModel[set[str]], RootModel[set[str]]({"b", "a"})),
    (Free, Free(a=1, b=[1, {"c": None}])),
    (Annotated[int, PlainSerializer(str)], 5),
    (dict[str, Any], {"a": [1, {"b": None}], "c": True}),
    (dict, {"a": [1.0]}),
    (list, [1, "a", None]),
]


@pytest.mark.parametrize(("tp", "value"), KEPT, ids=named)
def test_what_is_accepted_comes_back(tp: Any, value: Any):
    """SPEC 13: equal, with the same type; the type's own schema lets it in; it is one text (S03, S78, S79)."""
    data = typed(tp).encode(value)
    copy = typed(tp).decode(data)
    assert copy == value
    assert exactly(copy) == exactly(value)
    assert typed(tp).encode(copy) == data
    assert check_raw(data) == data
    schema = typed(tp).schema
    assert schema is not None
    assert field_errors(schema, data) == ()
    assert type_errors(tp, data) == ()


def test_a_zone_survives_as_its_offset():
    """SPEC 13: the instant and the offset are kept; a zone's name is no part of a payload."""
    from zoneinfo import ZoneInfo

    value = dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    copy = back(dt.datetime, value)
    assert copy.utcoffset() == value.utcoffset() == dt.timedelta(hours=1)
    assert copy.timestamp() == value.timestamp()


def test_a_model_is_written_under_its_aliases():
    """SPEC 13: so that it is read by whoever knows its schema."""
    assert typed(Order).encode(Order(orderId="o")).startswith(b'{"orderId":')
    assert typed(Aliases).encode(Aliases.model_construct(read=1, written=2)) == b'{"read":1,"written":2}'
    assert typed(Aliases).decode(b'{"r":1}').read == 1


def test_a_computed_field_is_no_payload():
    """SPEC 13: a model that forbids what it does not know can be read again."""
    assert b"size" not in typed(Order).encode(Order(orderId="o"))


def test_sets_are_one_text_in_every_process():
    """SPEC 13: the payload of a repeated delivery is equal, whatever the hash seed."""
    code = (
        "from dataclasses import dataclass\nfrom tarry.core.codec import typed\n"
        "@dataclass\nclass A:\n    s: frozenset[str]\n"
        "words = [str(n) for n in range(50)]\n"
        "print(typed(set[str]).encode(set(words)), typed(list[A]).encode([A(frozenset(words))]))"
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


# --- what is refused ---------------------------------------------------------------------------------


class Own:
    pass


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ((1, 2), "$"),
        ({"m": [1, (1, 2)]}, "m[1]"),
        ({"a": {"b": [{1}]}}, "a.b[0]"),
        ({1: "a", "1": "b"}, "$"),
        ({"a": {True: 1}}, "a"),
        ({None: 1}, "$"),
        ({(1, 2): 3}, "$"),
        ({Colour.RED: 1}, "$"),
        (Payment(Decimal(1)), "$"),
        ([Item(sku="a")], "[0]"),
        (UTC, "$"),
        ([b"a"], "[0]"),
        (Grade.A, "$"),
        (Decimal(1), "$"),
        (Own(), "$"),
        (OrderedDict(a=1), "$"),
        ({"odd key": (1,)}, "['odd key']"),
    ],
)
def test_untyped_takes_only_json(value: Any, path: str):
    """SPEC 13, S03, S78: with no type, only JSON's own types, and the error says how to go on."""
    error = refused(None, value)
    assert error.fields["path"] == path
    reason = error.fields["reason"]
    assert (
        "Annotate the parameter or what is returned, or pass returns=" in reason
        or "the keys of JSON are text" in reason
    )


@dataclass
class Floats:
    f: float
    d: Decimal = Decimal(0)


class ModelFloats(BaseModel):
    f: float | None = None
    other: float = 1.0


NO_JSON = [
    (None, {"m": [1.0, math.nan]}, "m[1]"),
    (None, math.inf, "$"),
    (float, -math.inf, "$"),
    (Floats, Floats(math.nan), "f"),
    (Floats, Floats(1.0, Decimal("NaN")), "d"),
    (Floats, Floats(1.0, Decimal("sNaN")), "d"),
    (Floats, Floats(1.0, Decimal("-Infinity")), "d"),
    (list[Floats], [Floats(1.0), Floats(math.inf)], "[1].f"),
    (ModelFloats, ModelFloats(f=math.nan), "f"),
    (ModelFloats, ModelFloats(other=math.inf), "other"),
    (dict[str, Any], {"a": {"b": [math.nan]}}, "a.b[0]"),
    (dict[float, int], {math.nan: 1}, "nan"),
    (None, "a\ud83d", "$"),
    (None, {"a": ["\udc00"]}, "a[0]"),
    (None, {"\ud800": 1}, "$"),
    (Item, Item.model_construct(sku="\ud800", price=1.0, note=None), "sku"),
    (None, [10**DIGITS], "[0]"),
    (int, -(10**DIGITS), "$"),
    (Annotated[float, PlainSerializer(lambda value: math.nan)], 1.0, "$"),
]


@pytest.mark.parametrize(("tp", "value", "path"), NO_JSON, ids=named)
def test_what_json_has_not_is_refused(tp: Any, value: Any, path: str):
    """SPEC 13, S16, S46, S79: the same on every store, and with the path of the bad value."""
    assert refused(tp, value).fields["path"] == path


def test_text_that_looks_like_nan_is_text():
    """SPEC 13"""
    for value in ("NaN", "-Infinity", "9" * (DIGITS + 5)):
        assert back(str, value) == value
        assert back(None, [value]) == [value]


def test_a_cycle_is_refused():
    """SPEC 13, S80: a list that contains itself is named as that, typed or not."""
    cycle: list[Any] = [1]
    cycle.append({"a": cycle})
    for tp in (None, list[Any], list):
        error = refused(tp, cycle)
        assert (error.fields["path"], error.fields["reason"]) == ("[1].a", "it refers to itself")
    double: list[Any] = []
    double += [double, double]
    assert refused(None, double).fields["reason"] == "it refers to itself"


@pytest.mark.parametrize("depth", [201, 300, 5_000, 100_000])
def test_depth_is_limited(depth: int):
    """SPEC 13, S80: an error with both numbers, however deep, typed and untyped; text as well as values."""
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    for tp in (None, list[Any], list):
        with pytest.raises(PayloadTooDeep) as caught:
            typed(tp).encode(value)
        assert caught.value.fields == {"depth": depth, "limit": 200}
    with pytest.raises(PayloadTooDeep) as caught:
        check_raw(b"[" * depth + b"]" * depth)
    assert caught.value.fields == {"depth": depth, "limit": 200}


def test_all_depth_within_the_limit_can_be_read():
    """SPEC 13, S80: what was accepted can always be read."""
    value: Any = "x"
    tree = Tree()
    for _ in range(200):
        value = [value]
    for _ in range(99):
        tree = Tree(kids=[tree])
    assert back(None, value) == value
    assert back(list[Any], value) == value
    assert back(Tree, tree) == tree


def test_shared_parts_do_not_explode():
    """SPEC 13: 2**40 nodes in 40 lists are refused by their number, at once."""
    value: Any = "x"
    for _ in range(40):
        value = [value, value]
    with pytest.raises(PayloadTooLarge):
        typed(None).encode(value)


def test_size_is_limited():
    """SPEC 13: the limit counts the bytes of the text."""
    limits = Limits(payload_bytes=10)
    assert typed(str).encode("x" * 8, limits) == b'"xxxxxxxx"'
    for tp, value in ((str, "x" * 9), (None, "x" * 9), (None, "ä" * 5), (Item, Item(sku="abc"))):
        with pytest.raises(PayloadTooLarge):
            typed(tp).encode(value, limits)
    with pytest.raises(PayloadTooLarge):
        check_raw(b'"xxxxxxxxx"', limits)


# --- nothing is lost in silence ----------------------------------------------------------------------


@dataclass
class Twin:
    a: int = 0


@dataclass
class OtherTwin:
    a: int = 0


@dataclass
class Late:
    a: int
    b: int = field(init=False, default=0)


LOST = [
    (Animal, Dog(name="a", breed=SECRET), "$"),
    (list[Animal], [Animal(), Dog(breed=SECRET)], "[1]"),
    (dict[str, Any], {"a": [(1, 2)]}, "a[0]"),
    (dict[str, Any], {"a": Grade.A}, "a"),
    (dict[str, Any], {"a": {1: SECRET}}, "a"),
    (dict, {1: SECRET}, "$"),
    (list[Any], [UTC], "[0]"),
    (dict[int | str, int], {1: 1, "1": 2}, "$"),
    (dict[int | None, int], {None: 1}, "None"),
    (Twin | OtherTwin, OtherTwin(1), "$"),
    (str | Decimal, Decimal("1.1"), "$"),
    (SecretStr, SecretStr(SECRET), "$"),
    (Free, Free(extra=(SECRET,)), "extra"),
    (Late, Late(1), None),
    (Annotated[str, BeforeValidator(str.lower)], "UP", "$"),
]


@pytest.mark.parametrize(("tp", "value", "path"), LOST, ids=named)
def test_what_would_come_back_changed_is_refused(tp: Any, value: Any, path: str | None):
    """SPEC 13, S03, S78: a subclass's fields, a tuple under Any, an ambiguous union, keys that fall together."""
    if path is None:
        value.b = 5
        path = "b"
    assert refused(tp, value).fields["path"] == path


WRONG = [
    (int, SECRET, "$"),
    (Payment, {"amount": SECRET}, "$"),
    (Payment, Payment(SECRET), "amount"),  # type: ignore[arg-type]
    (list[int], (1, 2), "$"),
    (list[int], [SECRET], "$"),
    (type(None), SECRET, "$"),
    (Item, Item.model_construct(sku=[SECRET], price=1.0), "sku"),
    (Annotated[int, PlainSerializer(lambda value: int("x"))], 1, "$"),
    (list[Own], [], "$"),
    (Item, Own(), "$"),
    (Tree, Own(), "$"),
]


@pytest.mark.parametrize(("tp", "value", "path"), WRONG, ids=named)
def test_a_value_of_another_type_is_refused(tp: Any, value: Any, path: str):
    """SPEC 13: with the type that was expected, and without what the value holds."""
    assert refused(tp, value).fields["path"] == path


def test_bytes_in_a_model_are_its_own_business():
    """SPEC 13: a model that writes bytes as UTF-8 refuses those that are none, and says what to do."""

    class Blob(BaseModel):
        data: bytes

    class Based(BaseModel):
        model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        data: bytes

    assert back(Blob, Blob(data=b"abc")).data == b"abc"
    assert back(Based, Based(data=b"\xff")).data == b"\xff"
    assert "base64" in refused(Blob, Blob(data=b"\xff")).fields["reason"]


# --- what does not fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "data", "path"),
    [
        (int, b'"tomato-4711"', "$"),
        (Payment, b'{"amount":"1"', "$"),
        (Payment, b'{"amount":"tomato-4711"}', "amount"),
        (list[Item], b'[{"sku":"a"},{}]', "[1].sku"),
        (Order, b'{"items":[]}', "orderId"),
        (float, b"NaN", "$"),
        (None, b"{", "$"),
        (None, b"", "$"),
        (Own, b"{}", "$"),
        (int, b"[" * 5_000, "$"),
    ],
)
def test_what_does_not_fit_is_told(tp: Any, data: bytes, path: str):
    """SPEC 4.6, S11, S12: the type's name and the fields, and nothing of the content."""
    with pytest.raises(Undecodable) as caught:
        typed(tp).decode(data)
    error = caught.value
    assert SECRET not in str(error)
    assert error.__context__ is None
    assert error.fields["type_name"] == typed(tp).name
    assert error.fields["field_errors"][0].path == path
    assert error.fields["field_errors"] == type_errors(tp, data)
    copy = pickle.loads(pickle.dumps(error))
    assert copy == error
    assert str(copy) == str(error)


def test_errors_are_bounded():
    """SPEC 4.6: twenty reasons, each short."""
    data = b"[" + b",".join([b'"x"'] * 1_000) + b"]"
    errors = type_errors(list[int], data)
    assert len(errors) == 20
    assert len(str(errors)) < 20 * 400


def test_a_validator_that_fails_otherwise_is_told():
    """SPEC 4.6: any exception of a type's own code is a payload that does not fit."""

    def picky(value: Any) -> Any:
        return {}["missing"]

    errors = type_errors(Annotated[int, BeforeValidator(picky)], b"1")
    assert errors[0].reason == "KeyError, raised by a validator"


# --- the codec of a type -----------------------------------------------------------------------------


def test_a_type_has_one_codec():
    """Building one costs as much as hundreds of payloads."""
    assert typed(Payment) is typed(Payment)
    assert typed(list[int]) is typed(list[int])
    assert typed(None) is typed(Any) is typed(object)
    assert typed(int | str) is typed(int | str)


def test_unions_keep_their_order():
    """`int | str` equals `str | int`; their codecs need not."""
    assert typed(int | str) is not typed(str | int)


def test_names_of_types_are_short():
    names = [typed(tp).name for tp in (Payment, list[int], int | None, Annotated[int, Field(gt=3)], None, type(None))]
    assert names == ["Payment", "list[int]", "int | None", "int", "JSON", "NoneType"]


def test_a_type_without_json_is_told_before_a_value_comes():
    """SPEC 13: a step whose result could never be stored is refused before it runs."""
    with pytest.raises(Unencodable, match="Own has no JSON form"):
        typed(Own).ready()
    typed(Payment).ready()
    typed(None).ready()
    assert typed(Own).schema is None
    assert typed(Own).schema_digest == ""


def test_an_unhashable_annotation_has_a_codec():
    tp = Annotated[int, Field(gt=3), ["no hash"]]
    assert isinstance(typed(tp), Typed)
    assert back(tp, 5) == 5


def test_payloads_of_one_value_are_the_same():
    """SPEC 13: two payloads are equal if their canonical JSON is."""
    assert same(typed(Row).encode({"name": "a", "n": 1}), typed(Row).encode({"n": 1, "name": "a"}))

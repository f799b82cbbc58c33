"""The documents by which a process without the code tells at the door what is wrong with a payload."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, ConfigDict, Field, PlainSerializer
from typing_extensions import TypedDict

from tarry.core.canonical import canonical, digest
from tarry.core.codec import field_errors, type_errors, typed
from tarry.core.schema import FieldErrors
from tarry.model import FieldError

SECRET = "tomato-4711"


class Kind(Enum):
    A = "a"
    B = "b"


class Grade(IntEnum):
    A = 1


@dataclass
class Payment:
    """What a customer paid."""

    amount: int
    who: str = "ann"
    kind: Kind | None = None


class Line(TypedDict):
    sku: str
    n: Annotated[int, Field(gt=0)]


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lines: list[Line]
    payment: Payment | None = None
    by_grade: dict[Grade, int] = {}


class Tree(BaseModel):
    value: int
    kids: list["Tree"] = []


class Incoming(BaseModel):
    """Read as a provider writes it, written under the program's own names."""

    model_config = ConfigDict(extra="forbid")
    payment: str = Field(validation_alias="payment_id")
    amount: int = Field(validation_alias=AliasChoices("amount", AliasPath("data", 0)))
    note: str = Field(default="", serialization_alias="n")


def errors(tp: Any, data: bytes) -> FieldErrors:
    schema = typed(tp).schema
    assert schema is not None
    return field_errors(schema, data)


def paths(tp: Any, data: bytes) -> list[str]:
    return [error.path for error in errors(tp, data)]


@pytest.mark.parametrize(
    ("tp", "data", "expected"),
    [
        (int, b"5", []),
        (int, b'"5"', ["$"]),
        (int, b"null", ["$"]),
        (int | None, b"null", []),
        (Payment, b'{"amount":5}', []),
        (Payment, b'{"amount":"forty"}', ["amount"]),
        (Payment, b'{"amount":1,"kind":"c"}', ["kind"]),
        (Payment, b"{}", ["$"]),
        (Payment, b"[]", ["$"]),
        (Order, b'{"lines":[{"sku":"a","n":1}]}', []),
        (Order, b'{"lines":[{"sku":"a","n":1},{"sku":2,"n":0}]}', ["lines[1].n", "lines[1].sku"]),
        (Order, b'{"lines":[],"more":1}', ["$"]),
        (Order, b'{"lines":[],"payment":{"amount":null}}', ["payment"]),
        (Tree, b'{"value":1,"kids":[{"value":2,"kids":[{"value":"x"}]}]}', ["kids[0].kids[0].value"]),
        (dict[str, int], b'{"odd key":"x"}', ["['odd key']"]),
    ],
)
def test_the_door_tells_the_fields(tp: Any, data: bytes, expected: list[str]):
    """SPEC 4.6, S11: what is wrong is told with its place, without the code of the type."""
    assert sorted(paths(tp, data)) == expected


def test_reasons_hold_nothing_of_the_payload():
    """SPEC 4.6: an error may be shown to people who may not see the payload."""
    data = json.dumps({"lines": [{"sku": [SECRET], "n": SECRET}], "payment": {"amount": SECRET}}).encode()
    told = errors(Order, data)
    assert len(told) == 3
    assert SECRET not in str(told)
    assert SECRET not in str(type_errors(Order, data))
    tagged = Annotated[Line | Payment, Field(union_mode="left_to_right")]
    assert SECRET not in str(type_errors(tagged, data))


def test_a_tag_that_is_none_is_not_quoted():
    """SPEC 4.6"""

    class A(BaseModel):
        kind: Literal["a"]

    class B(BaseModel):
        kind: Literal["b"]

    told = type_errors(Annotated[A | B, Field(discriminator="kind")], json.dumps({"kind": SECRET}).encode())
    assert told == (FieldError("$", "the tag is none of 'a', 'b'"),)


def test_a_union_tells_what_each_member_says():
    """SPEC 4.6: not just that none fits."""
    told = errors(int | list[str], b'{"a":1}')
    assert told[0].reason == 'the value is not of type "integer"; or the value is not of type "array"'
    deep = errors(Payment | None, b'{"amount":"x"}')
    assert "integer" in deep[0].reason


def test_errors_are_bounded():
    """SPEC 4.6: twenty reasons of at most 200 characters."""
    told = errors(list[Literal["a" * 3_000]], json.dumps(["x"] * 100).encode())
    assert len(told) == 20
    assert all(len(error.reason) <= 200 for error in told)
    long_key = errors(dict[str, int], json.dumps({"k" * 100_000: "x"}).encode())
    assert len(str(long_key)) < 300


@pytest.mark.parametrize("value", [10**400, -(10**3999), 2**53 + 1], ids=["400", "3999", "16"])
def test_big_integers_are_checked(value: int):
    """SPEC 13, S79: exact at any size."""
    data = str(value).encode()
    assert errors(int, data) == ()
    assert paths(Annotated[int, Field(ge=value)], data) == []
    assert paths(Annotated[int, Field(gt=value)], data) == ["$"]


def test_deep_payloads_are_checked():
    """SPEC 13, S80: as deep as a payload may be; what is deeper has not passed the door's own limit."""
    deep = b'{"value":1,"kids":['
    data = deep * 99 + b'{"value":"x"}' + b"]}" * 99
    assert len(errors(Tree, data)) == 1
    assert paths(Tree, b"[" * 100_000) == ["$"]


# --- a schema admits what its type writes ------------------------------------------------------------


class Measured(BaseModel):
    short: Annotated[bytes, Field(max_length=4)] = b"1234"
    tenth: Annotated[float, Field(multiple_of=0.1)] = 0.1
    exact: Annotated[Decimal, Field(max_digits=12, ge=0)] = Decimal("1E+5")
    text: Annotated[int, PlainSerializer(str)] = 5
    code: Annotated[int, PlainSerializer(lambda value: f"{value}", return_type=str)] = 5
    grades: dict[Grade, int] = {Grade.A: 1}


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (Measured, Measured()),
        (Incoming, Incoming(payment_id="p", amount=1)),
        (Decimal, Decimal("0E-8")),
        (dict[Grade, int], {Grade.A: 1}),
        (dict[Kind, int], {Kind.A: 1}),
        (list[Annotated[bytes, Field(min_length=3)]], [b"abc"]),
    ],
    ids=["measures", "aliases", "exponents", "numbers as keys", "enums as keys", "bytes"],
)
def test_what_a_type_writes_is_let_in(tp: Any, value: Any):
    """SPEC 4.6: a sender that has the type is never refused by its schema."""
    data = typed(tp).encode(value)
    assert errors(tp, data) == ()
    assert typed(tp).decode(data) == value


def test_a_model_is_let_in_under_each_of_its_names():
    """SPEC 4.6: as the provider writes it, and as the program does."""
    for data in (
        b'{"payment_id":"p","amount":1}',
        b'{"payment":"p","amount":1,"note":"x"}',
        b'{"payment":"p","data":[1]}',
    ):
        assert errors(Incoming, data) == ()
        assert type_errors(Incoming, data) == ()
    assert paths(Incoming, b'{"payment":5,"amount":1}') == ["payment"]
    assert paths(Incoming, b'{"payment":"p","amount":1,"other":1}') == ["$"]


@given(
    st.builds(Payment, st.integers(), st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([None, *Kind]))
)
def test_all_that_is_written_is_let_in(value: Payment):
    """SPEC 4.6"""
    assert errors(Payment, typed(Payment).encode(value)) == ()


# --- what a schema cannot say ------------------------------------------------------------------------


def even(value: int) -> int:
    if value % 2:
        raise ValueError("not even")
    return value


def test_the_type_knows_more_than_its_schema():
    """SPEC 4.6: a validator's verdict comes when the payload is taken in."""
    tp = Annotated[int, AfterValidator(even)]
    assert errors(tp, b"3") == ()
    assert type_errors(tp, b"3") == (FieldError("$", "Value error, not even"),)
    assert type_errors(tp, b"4") == ()


def test_a_type_without_a_schema_lets_everything_in():
    """SPEC 4.6: the door then asks nothing, and the type is asked later."""
    assert typed(Callable[[], int]).schema is None
    assert typed(None).schema is None
    assert typed(None).schema_digest == ""


def test_a_schema_that_cannot_be_used_lets_everything_in():
    """SPEC 4.6: a pattern of another dialect, a damaged document; and nothing is fetched from anywhere."""
    for schema in (b'{"pattern":"(?P<x>"}', b"{", b"5", b'{"type":5}', b'{"$ref":"http://127.0.0.1:9/x"}'):
        assert field_errors(schema, b'{"a":1}') == ()


def test_text_that_is_no_json_does_not_fit():
    assert field_errors(b"{}", b"{") == (FieldError("$", "it is not JSON that can be read"),)


def test_a_schema_is_one_document():
    """SPEC 4.6: interned by digest, so that the same type is the same text in every process."""
    schema = typed(Payment).schema
    assert schema is not None
    assert schema == canonical(schema)
    assert typed(Payment).schema_digest == digest(schema)
    assert json.loads(schema)["title"] == "Payment"
    assert json.loads(typed(Tree).schema or b"")["$ref"] == "#/$defs/Tree"


def test_defaults_that_are_no_json_make_no_noise():
    """A schema is made without a word where a default cannot be told."""

    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        at: Any = object()
        n: int = 0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paths(Odd, b'{"n":"x"}') == ["n"]


def test_field_errors_are_text_too():
    told = FieldErrors([FieldError("a", "no"), FieldError("b[0]", "never")])
    assert str(told) == "a: no; b[0]: never"
    assert told == (("a", "no"), ("b[0]", "never"))

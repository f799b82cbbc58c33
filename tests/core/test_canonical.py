"""What JSON text says by itself, and which text is taken from outside."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarry.core.canonical import canonical, deeper_than, depth, digest, same, structure
from tarry.core.codec import check_raw, typed
from tarry.errors import PayloadTooDeep, PayloadTooLarge, Unencodable

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(['"', "\\", '\\"', "[", "}", ":", '\\\\"['])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same value with its keys in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(part, chance)) for key, part in value.items()]
        chance.shuffle(items)
        return dict(items)
    return [shuffled(part, chance) for part in value] if isinstance(value, list) else value


def levels(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(levels, value), default=0) if isinstance(value, list) else 0


def members(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(members, value.values()))
    return sum(map(members, value)) if isinstance(value, list) else 0


@given(plain, st.randoms(), st.sampled_from([None, 1]), st.booleans())
def test_the_canonical_form_is_the_value(value: Any, chance: random.Random, indent: int | None, ascii: bool):
    """SPEC 13: neither the order of keys nor white space nor escapes make another payload."""
    text = json.dumps(value).encode()
    other = json.dumps(shuffled(value, chance), indent=indent, ensure_ascii=ascii).encode()
    assert canonical(text) == canonical(other)
    assert same(text, other)
    assert canonical(canonical(text)) == canonical(text)
    assert json.loads(canonical(text)) == value


@given(plain, plain)
def test_other_values_have_other_forms(a: Any, b: Any):
    """SPEC 13: a changed payload is never taken for a duplicate."""
    forms = [json.dumps(value, sort_keys=True) for value in (a, b)]
    assert same(json.dumps(a).encode(), json.dumps(b).encode()) == (forms[0] == forms[1])


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (b"1", b"1.0", False),
        (b"1.0", b"1e0", True),
        (b"1", b"true", False),
        (b"0.0", b"-0.0", False),
        (b'{"a":1}', b'{"a":1,"b":null}', False),
        (b"9007199254740993", b"9007199254740992", False),
        (str(10**400).encode(), str(10**400 + 1).encode(), False),
        (b'"\\u0041"', b'"A"', True),
        (b'"a\\u0000"', b'"a"', False),
        (b'{"a":1,"a":2}', b'{"a":2}', True),
        (b"[1,2]", b"[2,1]", False),
        (b"no json", b"no  json", False),
        (b"no json", b"no json", True),
    ],
)
def test_what_is_equal(a: bytes, b: bytes, equal: bool):
    """SPEC 13: 1 and 1.0 differ, integers are exact at any size, and no text makes the comparison fail."""
    assert same(a, b) is equal
    assert same(b, a) is equal


def test_a_digest_names_bytes():
    assert digest(b"{}") == digest(b"{}") != digest(b"{ }")
    assert len(digest(b"")) == 32


@given(plain)
@example([[["\\"]], '"[', {"]": {}}])
def test_structure_is_what_is_no_text(value: Any):
    """SPEC 13, S80: depth and members are counted without reading the text, strings do not count."""
    for ascii in (True, False):
        text = json.dumps(value, ensure_ascii=ascii).encode()
        assert depth(text) == levels(value)
        assert structure(text).count(b":") == members(value)
        assert deeper_than(text, levels(value)) is False
        assert deeper_than(text, levels(value) - 1) is True


@given(st.binary() | st.text(alphabet='[]{}":\\,a').map(str.encode))
def test_any_bytes_have_a_form(data: bytes):
    """SPEC 13: nothing that a store may hold makes these fail."""
    canonical(data)
    depth(data)
    same(data, b"1")


# --- text from outside -------------------------------------------------------------------------------


@given(plain)
def test_json_is_taken_as_it_is(value: Any):
    """SPEC 13: the text that was given is what is stored."""
    text = json.dumps(value, indent=1).encode()
    assert check_raw(text) == text
    assert typed(None).decode(text) == value


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b"", "$"),
        (b"{", "$"),
        (b"1 2", "$"),
        (b"'a'", "$"),
        (b"\xff", "$"),
        (b'"\xff"', "$"),
        (b"\xef\xbb\xbf1", "$"),
        (b'"\\ud83d"', "$"),
        (b'{"m":[1.0,NaN]}', "m[1]"),
        (b"[Infinity]", "[0]"),
        (b"-Infinity", "$"),
        (b'{"a":1e400}', "a"),
        (b"1" * 4001, "$"),
        (b"[" + b"1" * 5_000 + b"]", "$"),
        (b'{"a":1,"a":1}', "$"),
        (b'[{"a":{"b":1,"c":":","b":2}}]', "$"),
        (b'{"\\u0061":1,"a":2}', "$"),
    ],
)
def test_text_that_is_refused(text: bytes, path: str):
    """SPEC 13, S15, S16, S46: refused at the door, the same whatever the store, and not quoted."""
    with pytest.raises(Unencodable) as caught:
        check_raw(text)
    assert caught.value.fields["path"] == path
    assert len(str(caught.value)) < 300


def test_bombs_are_refused_in_time():
    """SPEC 13, S80: a megabyte of brackets, quotes or escapes costs one look at each byte."""
    size = 1 << 20
    for text in (b"[" * size, b'{"a":' * (size // 5), b"[" * (size // 2) + b"]" * (size // 2)):
        with pytest.raises(PayloadTooDeep):
            check_raw(text)
    for text in (b'"' * size, b'"\\' * (size // 2), b'"' + b'\\"' * (size // 2 - 1), b"[]" * (size // 2)):
        with pytest.raises(Unencodable):
            check_raw(text)
    with pytest.raises(PayloadTooLarge) as caught:
        check_raw(b'"' + b"x" * size + b'"')
    assert caught.value.fields == {"size": size + 2, "limit": size}


def test_numbers_without_end_are_read_as_they_are():
    """SPEC 13: a fraction is a double; it is not taken for another one."""
    assert not same(b"0.1", b"0.10000000000000002")
    assert math.copysign(1, typed(None).decode(check_raw(b"-0.0"))) == -1

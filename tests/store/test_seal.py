"""Payloads on their way to the file and back (rule 13)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.errors import Undecodable
from tarry.store.seal import Zlib

TEXT = st.text().map(lambda text: ('"' + text.replace("\\", "").replace('"', "") + '"').encode())


@given(TEXT, st.integers(0, 50))
def test_what_is_sealed_opens_to_the_same(data: bytes, over: int):
    sealer = Zlib(over)
    sealed = sealer.seal(data * 3, "entry:1:a")
    assert sealer.open(sealed, "entry:1:a") == data * 3
    assert len(sealed) <= len(data * 3)


def test_small_json_stays_readable_and_large_json_shrinks():
    assert Zlib().seal(b'{"a":1}', "x") == b'{"a":1}'
    large = b'{"text":"' + b"la " * 1000 + b'"}'
    sealed = Zlib().seal(large, "x")
    assert len(sealed) < 100
    assert sealed.startswith(b"\x01z")


@pytest.mark.parametrize("damaged", [b"\x01z", b"\x01zabc", b"\x01?abc", Zlib(1).seal(b"1" * 99, "x")[:-1]])
def test_damaged_bytes_name_their_row(damaged: bytes):
    """SPEC 1: blocked, undecodable; never a wrong payload."""
    with pytest.raises(Undecodable, match="entry:3:order-42"):
        Zlib().open(damaged, "entry:3:order-42")


def test_a_flipped_bit_is_found():
    sealed = Zlib().seal(b'["' + b"abc" * 1000 + b'"]', "x")
    for place in range(2, len(sealed)):
        bad = bytearray(sealed)
        bad[place] ^= 4
        try:
            assert Zlib().open(bytes(bad), "x") == b'["' + b"abc" * 1000 + b'"]'
        except Undecodable:
            continue

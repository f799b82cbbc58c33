"""What can be said of a payload from its JSON text alone: its canonical form, its digest, its depth.

Two payloads are equal if their canonical JSON is (rule 13). Sorted keys, no spaces, integers exact at any size;
`1` and `1.0` differ; numbers with a fraction or an exponent are equal if they are the same double. Of a repeated
key the last one counts, as for every reader of the text. All of this is total: bytes that are no JSON are their own
canonical form.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from itertools import accumulate

from pydantic_core import from_json

_sorted_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_ELSE = bytes(byte for byte in range(256) if byte not in b'{}[]":')
_STRING = re.compile(rb'"[^"]*"')
_STEPS = {ord("["): 1, ord("]"): -1, ord('"'): 0}
_ROUNDS = 8


def canonical(data: bytes) -> bytes:
    try:
        return _sorted_text(from_json(data)).encode()
    except (ValueError, RecursionError):
        return data


def same(a: bytes, b: bytes) -> bool:
    """Whether two payloads are equal."""
    return a == b or canonical(a) == canonical(b)


def digest(data: bytes) -> str:
    """32 hex digits that name these bytes."""
    return blake2b(data, digest_size=16).hexdigest()


def structure(data: bytes) -> bytes:
    """The brackets and colons of the text, outside of its keys and strings; `{` is told as `[`."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes side by side end one string and begin another, or enclose nothing: either way they can go.
    text = data.translate(_ONE_KIND, _ELSE).replace(b'""', b"")
    return _STRING.sub(b"", text)


def depth(data: bytes) -> int:
    """How deep arrays and objects are nested: 0 for a number, 1 for `[]`, 2 for `[{}]`."""
    brackets = structure(data).replace(b":", b"")
    for level in range(_ROUNDS):
        if not brackets:
            return level
        brackets = brackets.replace(b"[]", b"")  # the innermost level, all at once
    return _ROUNDS + max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def deeper_than(data: bytes, limit: int) -> bool:
    """Whether `depth` is above the limit; a text with few brackets is answered without looking further."""
    return data.count(b"[") + data.count(b"{") > limit and depth(data) > limit

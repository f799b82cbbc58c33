"""What happens to payloads between clear text and the file (rule 13).

JSON text stays as it is, so that a file can be read without Tarry. What a sealer has changed begins with a
byte that JSON text never begins with; whoever replaces `Zlib`, to encrypt for example, keeps to that.
"""

from __future__ import annotations

import zlib

from tarry.errors import Undecodable

_MARK = b"\x01z"
_LEVEL = 1


class Zlib:
    """The default: what is longer than `over` bytes is compressed where that saves anything. The check sum
    that comes with it tells on bytes that were damaged."""

    def __init__(self, over: int = 1024) -> None:
        self._over = over

    def seal(self, data: bytes, context: str) -> bytes:
        if len(data) <= self._over:
            return data
        packed = _MARK + zlib.compress(data, _LEVEL)
        return packed if len(packed) < len(data) else data

    def open(self, data: bytes, context: str) -> bytes:
        if data[:1] != b"\x01":
            return data
        if data[:2] != _MARK:
            raise _broken(context, "another codec has sealed it")
        try:
            return zlib.decompress(data[2:])
        except zlib.error as error:
            raise _broken(context, str(error)) from error


def _broken(context: str, reason: str) -> Undecodable:
    return Undecodable(type_name=f"the payload of {context}", errors=reason)

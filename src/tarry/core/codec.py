"""The face of payloads for the other rooms: types and bytes, arguments, failures, and what bytes say by themselves."""

from __future__ import annotations

from tarry.core.annotations import return_type
from tarry.core.arguments import args_digest, decode_args, encode_args
from tarry.core.canonical import canonical, depth, digest, same
from tarry.core.failure import decode_error, encode_error
from tarry.core.plain import check_raw
from tarry.core.schema import FieldErrors, field_errors
from tarry.core.typed import Typed, type_errors, typed

__all__ = [
    "FieldErrors",
    "Typed",
    "args_digest",
    "canonical",
    "check_raw",
    "decode_args",
    "decode_error",
    "depth",
    "digest",
    "encode_args",
    "encode_error",
    "field_errors",
    "return_type",
    "same",
    "type_errors",
    "typed",
]

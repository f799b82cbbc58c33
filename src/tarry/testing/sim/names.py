"""Payloads as text that tells them apart, the same from a body's value and from the store's bytes."""

from __future__ import annotations

import json

from tarry.testing.history import fingerprint


def payload_text(value: object) -> str:
    return fingerprint(json.dumps(value))

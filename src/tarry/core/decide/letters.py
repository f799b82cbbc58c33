"""Dead letters: what could not be applied is kept with its reason (rule 4.16).

The same delivery refused again for the same reason is the same letter, so that a sender which repeats itself
does not fill the table.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from tarry.core.commands import Deliver
from tarry.core.decide.draft import LETTER_TTL_MS, Draft
from tarry.model import Arrival, ArrivalKind, FieldError, Letter


def letter_id(
    run_id: str, kind: str, name: str, key: str | None, payload: bytes, actor: str | None, reason: str
) -> str:
    digest = blake2b(digest_size=16)
    for part in (run_id, kind, name, key or "", actor or "", reason):
        digest.update(part.encode())
        digest.update(b"\0")
    digest.update(payload)
    return digest.hexdigest()


def refuse(draft: Draft, command: Deliver, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
    key = shown(command.key)
    _put(draft, command.kind, command.name, key, command.payload, command.actor, reason, errors)


def withdraw(draft: Draft, arrival: Arrival, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
    key = shown(arrival.key)
    _put(draft, arrival.kind, arrival.name, key, arrival.payload, arrival.actor, reason, errors)


def _put(
    draft: Draft,
    kind: ArrivalKind,
    name: str,
    key: str | None,
    payload: bytes,
    actor: str | None,
    reason: str,
    errors: tuple[FieldError, ...],
) -> None:
    ident = letter_id(draft.run.id, kind, name, key, payload, actor, reason)
    detail = write_errors(errors) if errors else None
    until = draft.now + LETTER_TTL_MS
    draft.put(Letter(ident, draft.run.id, kind, name, key, payload, actor, reason, detail, draft.now, until))


def write_errors(errors: tuple[FieldError, ...]) -> bytes:
    return json.dumps([list(error) for error in errors]).encode()


def read_errors(detail: bytes | None) -> tuple[FieldError, ...]:
    return tuple(FieldError(path, reason) for path, reason in json.loads(detail)) if detail else ()


_DERIVED = "\x01"


def derived_key(payload: bytes, actor: str | None) -> str:
    """The key of a delivery that brought none: equal payload (in canonical form) and actor are the same delivery
    (rule 4.4). A key that a caller may give never begins with a control character."""
    digest = blake2b(payload, digest_size=16)
    digest.update(b"\0" if actor is None else b"\1" + actor.encode())
    return _DERIVED + digest.hexdigest()


def shown(key: str) -> str | None:
    return None if key.startswith(_DERIVED) else key

"""From what a caller gives to what a command carries: names, keys, actors and payloads, checked and encoded
before anything is queued (rules 4.4, 13).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tarry.core.codec import canonical, check_raw, encode_error, typed
from tarry.core.decide.letters import derived_key
from tarry.core.names import check_actor, check_key, check_name
from tarry.engine.names import Name
from tarry.errors import ActorRequired, InvalidName, KeyRequired
from tarry.model import Limits, Outcome

LIMITS = Limits()
_PLAIN = (str, int, float, bool, list, dict, type(None))


@dataclass(frozen=True)
class Json:
    """A payload that is JSON text already (from a command line, a request): checked, and passed on as it is."""

    text: bytes


def payload_bytes(target: str | Name[Any], payload: Any) -> bytes:
    if isinstance(payload, Json):
        check_raw(payload.text)
        return payload.text
    if isinstance(target, Name) and target.type is not None:
        return target.codec.encode(payload)
    return value_bytes(payload)


def value_bytes(value: Any) -> bytes:
    """A value for which no type is declared: plain JSON, or by its own class."""
    return typed(None if isinstance(value, _PLAIN) else type(value)).encode(value)


def check_delivery(
    target: str | Name[Any], key: str | None, actor: str | None, *, require_key: bool, require_actor: bool
) -> str:
    """The name, after all that concerns the call alone has been checked."""
    name = target if isinstance(target, str) else target.name
    check_name("name", name)
    declared = target if isinstance(target, Name) else None
    if key is None and (require_key or (declared is not None and declared.require_key)):
        raise KeyRequired(name=name)
    if actor is None and (require_actor or (declared is not None and declared.require_actor)):
        raise ActorRequired(name=name)
    if key is not None:
        check_key(key)
    checked_actor(actor)
    return name


def key_of(key: str | None, payload: bytes, actor: str | None) -> str:
    return derived_key(canonical(payload), actor) if key is None else key


def checked_actor(actor: str | None) -> str | None:
    return None if actor is None else check_actor(actor)


def checked_tags(tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if len(tags) > LIMITS.tags:
        raise InvalidName(what="tags", name=f"({len(tags)} of them)", reason=f"at most {LIMITS.tags}")
    return tuple(sorted((check_name("tag", tag), check_name("tag value", text)) for tag, text in tags.items()))


def resolution(result: Any, failed: str | None, redo: bool) -> tuple[Outcome, bytes | None]:
    """What an operator says of a step: exactly one of its result, its failure, and `redo`."""
    if redo and (failed is not None or result is not None):
        raise TypeError("resolve takes one of result=, failed= and redo=True")
    if redo:
        return Outcome.UNKNOWN, None
    if failed is not None:
        return Outcome.FAILED, encode_error(RuntimeError(failed))
    return Outcome.OK, payload_bytes("", result)

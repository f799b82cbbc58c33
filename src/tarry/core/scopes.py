"""Scopes: where in a run a name counts (rules 3.6, 5.3). Written as a path that names cannot forge."""

from __future__ import annotations

ROOT = ""


def _quote(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace(":", "%3A")


def of_step(outer: str, name: str) -> str:
    return f"{outer}{_quote(name)}/"


def of_fold(outer: str, channel: str) -> str:
    """The prefix of all rounds of a fold: what an ack drops."""
    return f"{outer}{_quote(channel)}:"


def of_message(outer: str, channel: str, key: str) -> str:
    return f"{of_fold(outer, channel)}{_quote(key)}/"


def of_group(outer: str, name: str, round: int) -> str:
    """The members of a `first`. No name is empty, so that no message's scope begins like this."""
    return f"{outer}:{_quote(name)}:{round}/"

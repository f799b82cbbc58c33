"""What a workflow declares that it accepts, as a document on file.

The worker's code writes it, content-addressed; whoever delivers reads it without that code, so that a wrong
type or an unknown name is told at the door (rule 4.6).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

from tarry.model import ArrivalKind


@dataclass(frozen=True)
class Declared:
    """One name that a workflow accepts. `schema` is the digest of its type's JSON schema."""

    schema: str | None = None
    early: bool = True
    late: bool = False
    require_key: bool = False
    require_actor: bool = False


class Accepts(NamedTuple):
    """`open`: the workflow declares nothing, so that every name is accepted, unchecked until it is waited for."""

    names: dict[tuple[ArrivalKind, str], Declared]
    open: bool = False

    def get(self, kind: ArrivalKind, name: str) -> Declared | None:
        return self.names.get((kind, name))

    def near(self, name: str) -> str:
        return near_misses(name, [known for _, known in self.names])


UNDECLARED = Accepts({}, open=True)


def write(names: dict[tuple[ArrivalKind, str], Declared]) -> bytes:
    rows = [[kind.value, name, asdict(declared)] for (kind, name), declared in sorted(names.items())]
    return json.dumps(rows, separators=(",", ":"), sort_keys=True).encode()


@lru_cache(maxsize=1024)
def read(document: bytes) -> Accepts:
    rows = json.loads(document)
    return Accepts({(ArrivalKind(kind), name): Declared(**declared) for kind, name, declared in rows})


def near_misses(name: str, known: Iterable[str]) -> str:
    """A clause for an error's text: `; did you mean "paid"?`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(text) for text in close)}?" if close else ""

"""A registered function: its name is stored, never its code (rule 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tarry.core import accepts
from tarry.core.accepts import near_misses
from tarry.core.codec import Typed, digest, encode_args, return_type, typed
from tarry.core.names import check_name
from tarry.core.retry import Retry, policy
from tarry.engine.names import Name
from tarry.errors import DuplicateWorkflow, UnknownWorkflow
from tarry.model import ArrivalKind

Body = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Workflow:
    """`accepts` is the digest of what the workflow declares (None: it declares nothing), `documents` what has to
    be on file for it. `errors` come back from steps as themselves (rule 3.7)."""

    name: str
    body: Body
    retry: Retry
    errors: tuple[type[Exception], ...] = ()
    accepts: str | None = None
    documents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @cached_property
    def result(self) -> Typed:
        """The codec of what the function returns, by its annotation."""
        return typed(return_type(self.body, None))

    def encode_args(self, args: Sequence[Any]) -> bytes:
        """The input as stored: one JSON array, by the function's annotations. Raises BadArguments."""
        return encode_args(self.body, args)


def workflow(
    body: Body,
    *,
    name: str | None = None,
    accepts: Sequence[Name[Any]] | None = None,
    retries: int | Retry | None = None,
    errors: Sequence[type[Exception]] = (),
) -> Workflow:
    title = check_name("workflow", name or getattr(body, "__name__", ""))
    declared = _document(accepts) if accepts is not None else None
    return Workflow(
        title,
        body,
        policy(retries),
        tuple(errors),
        accepts=declared[0] if declared else None,
        documents=declared[1] if declared else {},
    )


def _document(names: Iterable[Name[Any]]) -> tuple[str, dict[str, bytes]]:
    rows: dict[tuple[ArrivalKind, str], accepts.Declared] = {}
    documents: dict[str, bytes] = {}
    for name in names:
        row, schemas = name.declared()
        rows[name.kind, name.name] = row
        documents |= schemas
    text = accepts.write(rows)
    return digest(text), documents | {digest(text): text}


class Registry:
    """The workflows of one App, by name and by function."""

    def __init__(self) -> None:
        self._by_name: dict[str, Workflow] = {}
        self._by_body: dict[Any, Workflow] = {}

    def add(self, added: Workflow) -> None:
        if added.name in self._by_name:
            raise DuplicateWorkflow(name=added.name)
        self._by_name[added.name] = added
        self._by_body[added.body] = added

    def find(self, name: str) -> Workflow | None:
        return self._by_name.get(name)

    def of(self, body: Any) -> Workflow:
        """The workflow that a function was registered as."""
        found = self._by_body.get(body)
        if found is None:
            raise UnknownWorkflow(name=getattr(body, "__name__", repr(body)), near="")
        return found

    def near(self, name: str) -> str:
        return near_misses(name, self._by_name)

    @property
    def accepts(self) -> dict[str, str | None]:
        """What a worker of this App may claim, and what the code declares for it."""
        return {found.name: found.accepts for found in self._by_name.values()}

    @property
    def documents(self) -> dict[str, bytes]:
        merged: dict[str, bytes] = {}
        for found in self._by_name.values():
            merged |= found.documents
        return merged

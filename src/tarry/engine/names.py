"""Signals and channels: typed names, shared by who waits and who sends (rule 2)."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

from tarry.core.accepts import Declared
from tarry.core.codec import Typed, typed
from tarry.core.names import check_name
from tarry.model import ArrivalKind

T = TypeVar("T")

Policy = Literal["keep", "refuse"]


class Name(Generic[T]):
    """What a signal and a channel have in common: a name in a run and the type of what comes under it."""

    kind: ClassVar[ArrivalKind]
    early: bool = True
    late: bool = False

    def __init__(self, name: str, type: Any, *, require_key: bool, require_actor: bool) -> None:
        self.name = check_name("name", name)
        self.require_key = require_key
        self.require_actor = require_actor
        self._type = type

    @property
    def type(self) -> Any:
        """The declared type: the argument, or the parameter of `Signal[int | str]("u")`; None: untyped JSON."""
        if self._type is None and (parameters := get_args(getattr(self, "__orig_class__", None))):
            self._type = parameters[0]
        return self._type

    @property
    def codec(self) -> Typed:
        return typed(self.type)

    def declared(self) -> tuple[Declared, dict[str, bytes]]:
        """How a workflow's document tells of the name, and the schema to keep with it."""
        schema = self.codec.schema
        if schema is None:
            return Declared(None, self.early, self.late, self.require_key, self.require_actor), {}
        digest = self.codec.schema_digest
        row = Declared(digest, self.early, self.late, self.require_key, self.require_actor)
        return row, {digest: schema}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Signal(Name[T]):
    """A named event, by default a latch: the first payload stays, and every later wait on the name gets it.

        paid = Signal("paid", Payment)
        verdict = Signal[int | str]("verdict")          # for a type that is not a class

    `early="refuse"`: a delivery before the wait is `not_waiting` instead of buffered (rule 4.3). `late="keep"`: one
    that comes between two rounds is buffered for the next, instead of `stale` (rule 4.13). `require_key`,
    `require_actor`: a delivery without is refused (rule 4.3b).
    """

    kind = ArrivalKind.SIGNAL

    def __init__(
        self,
        name: str,
        type: type[T] | None = None,
        *,
        early: Policy = "keep",
        late: Policy = "refuse",
        require_key: bool = False,
        require_actor: bool = False,
    ) -> None:
        super().__init__(name, type, require_key=require_key, require_actor=require_actor)
        self.early = _keeps("early", early)
        self.late = _keeps("late", late)


class Channel(Name[T]):
    """An ordered stream of messages to one run, each consumed by an explicit ack (rule 5). Every message has a
    key."""

    kind = ArrivalKind.CHANNEL

    def __init__(self, name: str, type: type[T] | None = None, *, require_actor: bool = False) -> None:
        super().__init__(name, type, require_key=True, require_actor=require_actor)


def _keeps(what: str, policy: str) -> bool:
    if policy not in ("keep", "refuse"):
        raise ValueError(f'{what}= is "keep" or "refuse", not {policy!r}')
    return policy == "keep"

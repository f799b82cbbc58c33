"""What the command line gives: which store, JSON, tags, and who is calling."""

from __future__ import annotations

import asyncio
import getpass
import importlib
import json
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from tarry.app import App
from tarry.app.parcels import Json
from tarry.core.codec import check_raw
from tarry.edge.cli.failing import Missing, Usage

R = TypeVar("R")
E = TypeVar("E", bound=StrEnum)

_FILE = "sqlite:///"

Flag = Parameter(negative="", show_default=False)
AsJson = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="JSON, one object a line.")]
Actor = Annotated[str | None, Parameter(name="--actor", help="Who does this; cli:USER if not said.")]
Key = Annotated[str | None, Parameter(name="--key", help="Makes a repeated delivery a duplicate.")]
Payload = Annotated[str | None, Parameter(allow_leading_hyphen=True, help="JSON, @file, or - for standard input.")]


@dataclass(frozen=True)
class At:
    """Where a call is made: on the store of --store, else of TARRY_STORE, else of MODULE:APP (rule 14)."""

    store: Annotated[str | None, Parameter(help="The store's URL; else TARRY_STORE, else that of --app.")] = None
    app: Annotated[str | None, Parameter(help="MODULE:APP: its store, workflows and types.")] = None
    debug: Annotated[bool, Flag, Parameter(help="Show where an error comes from.")] = False


@dataclass(frozen=True)
class Paging:
    """Which part of a list."""

    limit: Annotated[int, Parameter(help="Rows of a page, 1 to 1000.")] = 100
    cursor: Annotated[str | None, Parameter(help="Where the last page ended.")] = None
    every: Annotated[bool, Flag, Parameter(name="--all", help="Every page.")] = False


Place = Annotated[At, Parameter(name="*")]
Pages = Annotated[Paging, Parameter(name="*")]
HERE = At()
FIRST = Paging()


def with_app(at: At, work: Callable[[App], Coroutine[Any, Any, R]], *, makes: bool = False) -> R:
    """Runs `work` with an App on the store that was named. Only what `makes` one may make a store: a slip in its
    name would else be answered by an empty list, and leave a file."""
    if at.debug:
        os.environ["TARRY_LOG_LEVEL"] = "debug"
    url = named_store(at.store)
    app = load(at.app) if at.app is not None else App(url)
    if url is not None and not makes:
        _must_be_there(url)
    if url is None and at.app is None:
        raise Usage("no store is named. Pass --store sqlite:///path/to/file.db, or set TARRY_STORE.")

    async def opened() -> R:
        app.open(url)
        async with app:
            return await work(app)

    return asyncio.run(opened())


def named_store(store: str | None) -> str | None:
    return store or os.environ.get("TARRY_STORE") or None


def _must_be_there(url: str) -> None:
    path = url.removeprefix(_FILE)
    if path not in (url, "", ":memory:") and not Path(path).exists():
        raise Missing(
            f"there is no store at {path}. Check --store or TARRY_STORE; `start` and `worker` make a new one."
        )


def load(target: str) -> App:
    """The App that MODULE:NAME names; MODULE may lie in the folder where the command is given."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise Usage(f"{target!r} is not MODULE:APP, like shop:app")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise Usage(_no_module(module_name, name)) from None
    found = getattr(module, name, None)
    if not isinstance(found, App):
        apps = [f"{module_name}:{key}" for key, value in vars(module).items() if isinstance(value, App)]
        raise Usage(f"{module_name} has no App called {name}; it has {', '.join(apps) or 'none at all'}.")
    return found


def _no_module(module: str, name: str) -> str:
    dotted = module.removesuffix(".py").strip("./").replace("/", ".")
    if dotted != module:
        return f"{module} is a file's name, and MODULE:APP is wanted: {dotted}:{name}"
    return f"there is no module {module} here. Go to its folder, or install it."


def payload(text: str | None) -> Json:
    """JSON from an argument, from `@file`, or from standard input (`-`); nothing is null."""
    data, source = _read(text)
    try:
        json.loads(data)
    except RecursionError:
        pass  # it is told below how deep it may be
    except ValueError:
        raise Usage(f"{source} is not JSON{_hint(text)}") from None
    return Json(check_raw(data))


def _read(text: str | None) -> tuple[bytes, str]:
    if text is None:
        return b"null", "nothing"
    if text == "-":
        return sys.stdin.buffer.read().strip(), "what standard input gave"
    if not text.startswith("@"):
        return text.strip().encode(errors="surrogateescape"), repr(text[:100])
    try:
        return Path(text[1:]).read_bytes().strip(), f"what {text[1:]} holds"
    except OSError as error:
        raise Usage(f"{text[1:]} cannot be read: {error.strerror}") from None


def _hint(text: str | None) -> str:
    if not text or text == "-" or text.startswith("@") or len(text) >= 100 or not text.isprintable():
        return ""
    if text[0] in "[{":
        return ". Names and texts in it stand in double quotes; put the whole in single ones: '{\"a\": 1}'"
    return f"; did you mean '{json.dumps(text, ensure_ascii=False)}'?"


def tags(pairs: tuple[str, ...]) -> dict[str, str]:
    return dict(tag(pair) for pair in pairs)


def tag(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise Usage(f"a tag is NAME=VALUE, not {pair!r}")
    return name, value


def one_of(kind: type[E], text: str | None) -> E | None:
    """A member of an enumeration, by its value."""
    try:
        return None if text is None else kind(text)
    except ValueError:
        raise Usage(f"{text!r} is none of {', '.join(kind)}") from None


def actor(named: str | None) -> str:
    if named is not None:
        return named
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):  # a container's user without a name
        return f"cli:{os.getuid()}"

"""What the command line gives: which store, JSON, tags, and who is calling."""

from __future__ import annotations

import asyncio
import getpass
import importlib
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from tarry.app import App
from tarry.app.parcels import Json
from tarry.edge.cli.failing import Usage

R = TypeVar("R")

Store = Annotated[str | None, Parameter(name="--store", help="The store's URL; else TARRY_STORE.")]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object per line.")]
Actor = Annotated[str | None, Parameter(name="--actor", help="Who does this; cli:USER if not said.")]
Key = Annotated[str | None, Parameter(name="--key", help="Makes a repeated delivery a duplicate.")]
Limit = Annotated[int, Parameter(name="--limit", help="Rows of a page, 1 to 1000.")]
Cursor = Annotated[str | None, Parameter(name="--cursor", help="Where the last page ended.")]
Payload = Annotated[str | None, Parameter(allow_leading_hyphen=True, help="JSON, @file, or - for standard input.")]
Flag = Parameter(negative="")


def with_app(store: str | None, work: Callable[[App], Coroutine[Any, Any, R]]) -> R:
    """Runs `work` with an App on the store that was named."""

    async def opened() -> R:
        async with App(store_url(store)) as app:
            return await work(app)

    return asyncio.run(opened())


def store_url(store: str | None) -> str:
    url = store or os.environ.get("TARRY_STORE")
    if not url:
        raise Usage("no store is named. Pass --store sqlite:///path/to/file.db, or set TARRY_STORE.")
    return url


def load(target: str) -> App:
    """The App that MODULE:NAME names."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise Usage(f"{target!r} is not MODULE:APP, like shop:app")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in (module_name, module_name.partition(".")[0]):
            raise
        raise Usage(f"there is no module {module_name} here. Go to its folder, or install it.") from None
    found = getattr(module, name, None)
    if not isinstance(found, App):
        apps = [key for key, value in vars(module).items() if isinstance(value, App)]
        raise Usage(f"{module_name} has no App called {name}" + (f"; it has {', '.join(apps)}" if apps else "."))
    return found


def payload(text: str | None) -> Json:
    """JSON from an argument, from `@file`, or from standard input (`-`); nothing is null."""
    if text is None:
        return Json(b"null")
    if text == "-":
        return Json(sys.stdin.buffer.read().strip())
    if text.startswith("@"):
        return Json(Path(text[1:]).read_bytes().strip())
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        hint = f"; did you mean '{json.dumps(text)}'?" if text.isprintable() and len(text) < 100 else ""
        raise Usage(f"{text[:100]!r} is not JSON{hint}") from None
    return Json(text.encode())


def tags(pairs: tuple[str, ...] | list[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Usage(f"a tag is NAME=VALUE, not {pair!r}")
        named[name] = value
    return named


def actor(named: str | None) -> str:
    return named or f"cli:{getpass.getuser()}"

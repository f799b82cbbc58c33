"""start, signal, send."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import Annotated

from cyclopts import Parameter

from tarry.app import App
from tarry.core.codec import typed
from tarry.edge.cli import failing, given
from tarry.edge.cli.text import clean, json_text
from tarry.model import Receipt

ANYTHING = typed(None)


def start(
    workflow: str,
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    id: Annotated[str | None, Parameter(name="--id", help="The run's id; the same id again is the same run.")] = None,
    tag: Annotated[tuple[str, ...], Parameter(name="--tag", negative="", help="NAME=VALUE; may be repeated.")] = (),
    deadline: Annotated[str | None, Parameter(help="How long the run may take, like 24h.")] = None,
    start_at: Annotated[str | None, Parameter(help="In how long it begins, like 10m.")] = None,
    wait: Annotated[bool, given.Flag, Parameter(help="Wait for the result and print it.")] = False,
    timeout: Annotated[str | None, Parameter(help="How long to wait.")] = None,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """Start a run of WORKFLOW; each further argument is JSON."""
    values = [ANYTHING.decode(given.payload(text).text) for text in arguments]

    tags = given.tags(tag)

    async def work(app: App) -> int:
        handle = await app.start(workflow, *values, id=id, tags=tags, deadline=deadline, start_at=start_at)
        if as_json:
            print(json.dumps({"run": handle.id, "created": handle.created}))
        elif not wait:
            print(clean(handle.id))
        if not wait:
            return failing.OK
        print(f"run {clean(handle.id)} {'started' if handle.created else 'was there already'}", file=sys.stderr)
        await handle.result(timeout)
        run = app.store.run(handle.id)
        print(json_text((run and run.result) or b"null"))
        return failing.OK

    return given.with_app(at, work, makes=True)


def signal(
    run: str,
    name: str,
    payload: given.Payload = None,
    *,
    key: given.Key = None,
    actor: given.Actor = None,
    require_wait: Annotated[bool, given.Flag, Parameter(help="Refuse it unless a wait is open.")] = False,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """Deliver a signal to RUN under NAME. PAYLOAD is JSON, @file, or - for standard input."""
    data = given.payload(payload)

    async def work(app: App) -> int:
        who = given.actor(actor)
        receipt = await app.signal(run, name, data, key=key, actor=who, require_wait=require_wait)
        return told(receipt, as_json)

    return given.with_app(at, work)


def send(
    run: str,
    channel: str,
    payload: given.Payload = None,
    *,
    key: Annotated[str, Parameter(help="Makes a redelivery a no-op.")],
    actor: given.Actor = None,
    as_json: given.AsJson = False,
    at: given.Place = given.HERE,
) -> int:
    """Append a message to a channel of RUN."""
    data = given.payload(payload)

    async def work(app: App) -> int:
        return told(await app.send(run, channel, data, key=key, actor=given.actor(actor)), as_json)

    return given.with_app(at, work)


def told(receipt: Receipt, as_json: bool) -> int:
    """Prints a receipt; the exit code says whether the run has the delivery."""
    if as_json:
        print(_json(receipt))
    else:
        reason = f": {receipt.reason}" if receipt.reason and receipt.reason != receipt.status else ""
        print(f"{receipt.status.value}{clean(reason)}")
        for error in receipt.errors:
            print(f"  {clean(error.path)}: {clean(error.reason)}", file=sys.stderr)
    return failing.of_receipt(receipt.status)


def _json(receipt: Receipt) -> str:
    """The payload stands in it as it is on file: a number that a float cannot hold stays what it was."""
    errors = [error._asdict() for error in receipt.errors]
    facts = {field.name: getattr(receipt, field.name) for field in fields(receipt)} | {"errors": errors}
    del facts["payload"]
    return f'{json.dumps(facts)[:-1]}, "payload": {json_text(receipt.payload or b"null")}}}'

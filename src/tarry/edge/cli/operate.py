"""cancel, retry, resolve, close-channel: each is audited under its actor."""

from __future__ import annotations

import json
from typing import Annotated, Any

from cyclopts import Parameter

from tarry.app import App
from tarry.edge.cli import failing, given
from tarry.edge.cli.failing import Usage


def cancel(
    run: str,
    *,
    force: Annotated[bool, given.Flag, Parameter(help="End it at once, without its clean-up.")] = False,
    actor: given.Actor = None,
    at: given.Place = given.HERE,
) -> int:
    """Cancel RUN: its waits close, its code cleans up, and it ends."""

    async def work(app: App) -> int:
        receipt = await app.cancel(run, actor=given.actor(actor), force=force)
        print(receipt.status)
        return failing.OK if receipt.status in ("cancelling", "cancelled") else failing.CONFLICT

    return given.with_app(at, work)


def retry(run: str, *, actor: given.Actor = None, at: given.Place = given.HERE) -> int:
    """Let a blocked RUN go on, or run a failed one again together with the step that failed it."""

    async def work(app: App) -> int:
        print((await app.retry(run, actor=given.actor(actor))).value)
        return failing.OK

    return given.with_app(at, work)


def resolve(
    run: str,
    step: str,
    *,
    result: Annotated[str | None, Parameter(help="The step's result, as JSON.")] = None,
    failed: Annotated[str | None, Parameter(help="Why it failed.")] = None,
    redo: Annotated[bool, given.Flag, Parameter(help="Do it again.")] = False,
    actor: given.Actor = None,
    at: given.Place = given.HERE,
) -> int:
    """Say what became of STEP, whose outcome is unknown: --result, --failed or --redo."""
    if [result is not None, failed is not None, redo].count(True) != 1:
        raise Usage("say one of --result JSON, --failed TEXT and --redo")
    value: Any = json.loads(given.payload(result).text)

    async def work(app: App) -> int:
        who = given.actor(actor)
        print((await app.resolve(run, step, result=value, failed=failed, redo=redo, actor=who)).value)
        return failing.OK

    return given.with_app(at, work)


def close_channel(run: str, channel: str, *, actor: given.Actor = None, at: given.Place = given.HERE) -> int:
    """End the loop over a channel of RUN, after what is buffered."""

    async def work(app: App) -> int:
        closed = await app.close_channel(run, channel, actor=given.actor(actor))
        print("closed" if closed else "it was closed already")
        return failing.OK

    return given.with_app(at, work)

"""The town that is attacked: its workflow, and what its people write down while things break.

Every body and step appends to a file of its process, so that the history checker can judge afterwards what
happened from what was seen outside, not from what the engine says of itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
from pathlib import Path
from typing import Any

from tarry import App, Channel, OutcomeUnknown, Run, RunNotFound, Safety, Signal, WaitTimeout, current_step
from tarry.errors import StoreBusy
from tarry.store.protocol import Store
from tarry.testing.history import Acked, Done, Effect, Ended, Fail, Ok, Outcome, Pass, Received, Recorder, fingerprint

paid = Signal("paid", int)
extra = Signal("extra", int, late="keep")
parcels = Channel("parcels", int)
PARCELS = 3

_passes = itertools.count(1)


class Town:
    """One process's App, with its recorder. `pace_s`: how long a step takes, so that there is something to break."""

    def __init__(self, store: str | Store, folder: Path, who: str, pace_s: float) -> None:
        self.recorder = Recorder(folder / f"{who}-{os.getpid()}.jsonl")
        self.app = App(store)
        self._pace_s = pace_s
        self._folder = folder
        self.app.workflow(name="order", accepts=[paid, extra, parcels])(self.order)

    async def order(self, run: Run[Any], number: int) -> str:
        pass_id = f"{self.recorder.process}.{next(_passes)}"
        epoch = run._turn.run.epoch
        self.recorder.write(Pass(run.id, pass_id, self.recorder.process, epoch))
        await run.step("invoice", self.effect, run.id, "invoice", epoch, False, check=False)
        charged = "charged"
        try:
            await run.step(
                "charge", self.effect, run.id, "charge", epoch, True, safety=Safety.AT_MOST_ONCE, check=False
            )
        except OutcomeUnknown:
            charged = "unknown"
        amount = await self.wait(run, paid, None if number % 2 else "2s", pass_id)
        more = await self.wait(run, extra, "30s", pass_id)
        total = await self.consume(run, pass_id)
        await run.step("ship", self.effect, run.id, "ship", epoch, False, check=False)
        return f"{charged in ('charged', 'unknown')} {amount} {more} {total}"

    async def wait(self, run: Run[Any], signal: Signal[int], limit: str | None, pass_id: str) -> int | None:
        try:
            value = await run.wait(signal, timeout=limit)
        except WaitTimeout:
            self.recorder.write(Outcome(run.id, signal.name, "timeout", pass_id=pass_id))
            return None
        self.recorder.write(Outcome(run.id, signal.name, "payload", payload=str(value), pass_id=pass_id))
        return value

    async def consume(self, run: Run[Any], pass_id: str) -> int:
        """Half of the runs read with a fold, half with a plain loop; both end after the third parcel."""
        if len(run.id) % 2:
            total = run.fold(parcels, [0, 0])
            while total.state[0] < PARCELS:
                message = await anext(aiter(total))
                self._received(run, message, pass_id, fold=True)
                await message.ack([total.state[0] + 1, total.state[1] + message.payload])
                self.recorder.write(Acked(run.id, parcels.name, message.key, message.number, pass_id))
            return total.state[1]
        seen: list[int] = []
        while len(seen) < PARCELS:
            plain = await run.receive(parcels)
            self._received(run, plain, pass_id, fold=False)
            seen.append(await plain.handle("weigh", _same, plain.payload))
            self.recorder.write(Acked(run.id, parcels.name, plain.key, plain.number, pass_id))
        return sum(seen)

    def _received(self, run: Run[Any], message: Any, pass_id: str, *, fold: bool) -> None:
        self.recorder.write(
            Received(run.id, parcels.name, message.key, message.number, str(message.payload), pass_id, fold)
        )

    async def effect(self, run_id: str, name: str, epoch: int, once: bool) -> str:
        step = current_step()
        self.recorder.write(Effect(run_id, name, step.key, step.attempt, epoch, os.getpid(), once=once))
        await asyncio.sleep(self._pace_s * random.random())
        self.recorder.write(Done(run_id, name, step.key, step.attempt, epoch))
        return name

    # --- senders ---

    async def deliver(self, run_id: str, name: str, payload: int, key: str) -> None:
        """One delivery, written down before and after; a run that is not there yet is tried again."""
        while True:
            kind = "channel" if name == parcels.name else "signal"
            op = self.recorder.invoke(run_id, name, str(payload), kind=kind, key=key)
            try:
                send = self.app.send if kind == "channel" else self.app.signal
                receipt = await send(run_id, name, payload, key=key)
            except (RunNotFound, StoreBusy) as error:
                self.recorder.write(Fail(op, type(error).__name__))
                await asyncio.sleep(0.05)
                continue
            retained = None if receipt.payload is None else fingerprint(receipt.payload)
            self.recorder.write(Ok(op, receipt.status.value, receipt.reason, retained, receipt.number))
            return

    async def ended(self, run_id: str) -> None:
        handle = self.app.handle(run_id)
        result = await handle.result()
        self.recorder.write(Ended(run_id, "succeeded", json.dumps(result)))


async def _same(value: int) -> int:
    return value

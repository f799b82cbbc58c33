"""The outside world: who starts runs, delivers, repeats itself, and operates.

A sender that heard nothing sends again under the same key; that is all it can do, and all it should have to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tarry.app import parcels
from tarry.core.commands import Command, Deliver
from tarry.errors import RunNotFound, StoreError, TarryError, UnknownSignal
from tarry.model import ArrivalKind, Receipt, ReceiptStatus
from tarry.store.writer import NO_DOCUMENTS
from tarry.testing.history import Fail, Info, Invoke, Ok, fingerprint
from tarry.testing.sim.body import CHANNEL, SIGNAL
from tarry.testing.sim.oracle import Oracle
from tarry.testing.sim.writer import SimWriter

PATIENCE_S = (0.02, 0.5, 6.0, 6.0)
AGAIN_S = (0.0, 0.01, 0.5, 3.0)


@dataclass(frozen=True)
class Parcel:
    """One delivery as a sender means it, and how often it sends it though it was answered."""

    run_id: str
    kind: ArrivalKind
    name: str
    payload: Any
    key: str | None
    actor: str | None = None
    require_wait: bool = False
    repeats: int = 0

    def command(self) -> Deliver:
        data = json.dumps(self.payload).encode()
        parcels.check_delivery(self.name, self.key, self.actor, require_key=False, require_actor=False)
        key = parcels.key_of(self.key, data, self.actor)
        return Deliver(self.run_id, self.kind, self.name, data, key, self.actor, self.require_wait)


def parcel(chance: Random, run_id: str, number: int) -> Parcel:
    """Mostly what a run wants; sometimes what it should refuse."""
    signal = chance.random() < 0.6
    kind = ArrivalKind.SIGNAL if signal else ArrivalKind.CHANNEL
    name = chance.choice(tuple(SIGNAL) if signal else tuple(CHANNEL))
    if chance.random() < 0.03:
        name = "zz"
    key: str | None = f"k{chance.randrange(number + 2)}"
    if signal and chance.random() < 0.25:
        key = None
    odd = chance.random()
    payload: Any = 2 * chance.randrange(20)
    if odd < 0.12:
        payload += 1
    elif odd < 0.2:
        payload = "text"
    actor = chance.choice(("ann", "bo")) if chance.random() < 0.2 else None
    require_wait = signal and chance.random() < 0.15
    return Parcel(run_id, kind, name, payload, key, actor, require_wait, int(chance.random() * 1.6))


class Sender:
    def __init__(self, name: str, writer: SimWriter, oracle: Oracle, chance: Random) -> None:
        self.name = name
        self._writer = writer
        self._oracle = oracle
        self._chance = chance
        self._ops = 0

    async def deliver(self, parcel: Parcel) -> Receipt | None:
        """Until it is answered, and then as often again as the sender is confused."""
        receipt: Receipt | None = None
        for _ in range(1 + parcel.repeats):
            receipt = await self._until_answered(parcel)
            if receipt is None:
                return None
        return receipt

    async def _until_answered(self, parcel: Parcel) -> Receipt | None:
        while True:
            try:
                return await self._once(parcel)
            except UnknownSignal:
                return None
            except (StoreError, TimeoutError, RunNotFound):
                await asyncio.sleep(self._chance.choice(AGAIN_S) + 0.001)

    async def insist(self, command: Command, documents: Mapping[str, bytes] = NO_DOCUMENTS) -> Any:
        """Until it is answered: every such command may be repeated."""
        while True:
            try:
                return await self._writer.commit(command, documents)
            except (StoreError, RunNotFound):
                await asyncio.sleep(self._chance.choice(AGAIN_S) + 0.01)
            except TarryError as error:
                return error

    async def _once(self, parcel: Parcel) -> Receipt:
        self._ops += 1
        op, text = self._ops, fingerprint(json.dumps(parcel.payload))
        self._oracle.write(Invoke(op, parcel.run_id, parcel.kind, parcel.name, text, parcel.key, parcel.actor))
        try:
            async with asyncio.timeout(self._chance.choice(PATIENCE_S)):
                receipt: Receipt = await self._writer.commit(parcel.command())
        except (StoreError, TimeoutError) as error:
            self._oracle.write(Info(op, repr(error)))
            raise
        except TarryError as error:
            self._oracle.write(Fail(op, repr(error)))
            raise
        self._oracle.write(Ok(op, receipt.status, _reason(receipt), _retained(receipt), receipt.number))
        return receipt


def _reason(receipt: Receipt) -> str | None:
    return receipt.reason if receipt.status is ReceiptStatus.STALE else None


def _retained(receipt: Receipt) -> str | None:
    return None if receipt.payload is None else fingerprint(receipt.payload)

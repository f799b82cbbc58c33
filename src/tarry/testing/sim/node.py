"""A worker's process: the real worker, with its heartbeat as a task and its datagrams on a network that drops.

A node that is killed stays dead: its successor is another process under another name, with another worker id.
A node that is paused past its lease goes on afterwards as if nothing had been, which is what a fence is for.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tarry.core.journal import Journal
from tarry.engine.hosting import HostedWorker, WorkerOptions
from tarry.engine.wake import Wakeups
from tarry.engine.worker import Runner, Worker
from tarry.engine.workflow import Registry
from tarry.errors import LeaseLost, TarryError
from tarry.store.fold import Notes
from tarry.store.protocol import Store
from tarry.store.sweeps import Beat, Register
from tarry.testing.sim.loop import Process
from tarry.testing.sim.store import SimStore
from tarry.testing.sim.writer import SimWriter

if TYPE_CHECKING:
    from tarry.testing.sim.cluster import Cluster

LEASE_S = 10.0
POLL_S = 2.5
DATAGRAM_S = (0.0, 0.0, 0.001, 0.02)


def ordered(notes: Notes) -> Notes:
    """The same notes in one order, whatever the hash seed: sets of text iterate by chance."""
    inorder = (tuple(sorted(rows)) for rows in (notes.ready, notes.nudges, notes.ended))
    return Notes(*cast("tuple[Any, Any, Any]", tuple(inorder)))


class SimWakeups(Wakeups):
    """Sockets are addresses in the cluster; a datagram takes its time, or is lost."""

    def __init__(self, store: SimStore, cluster: Cluster) -> None:
        super().__init__(cast("Store", store))
        self._cluster = cluster

    def committed(self, notes: Notes) -> None:
        super().committed(ordered(notes))

    def _send(self, address: str, data: bytes) -> None:
        self._cluster.datagram(address, data)


class _Address:
    """Where a node hears datagrams."""

    def __init__(self, address: str) -> None:
        self.address = address


class SimRunner(Runner):
    """Tells the oracle of each pass as it begins."""

    def __init__(self, node: Node, *args: Any) -> None:
        super().__init__(*args)
        self._node = node

    def _take(self, journal: Journal) -> None:
        self._node.claimed(self.id, journal)
        super()._take(journal)


class SimHost(HostedWorker):
    """The worker as hosted, but for what is a thread, a socket or a random id."""

    def __init__(self, node: Node, store: SimStore, writer: SimWriter, wakeups: SimWakeups, registry: Registry) -> None:
        options = WorkerOptions(concurrency=50, threads=1, lease_s=LEASE_S)
        super().__init__(cast("Store", store), writer, wakeups, registry, options)
        self._node = node

    async def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = 0
        self._mailbox = cast("Any", _Address(self._node.process.name))
        await self._begin_again()
        self._task = self._loop.create_task(self._work())

    async def _begin(self) -> None:
        self.id = self._node.new_worker_id()
        self.runner = SimRunner(self._node, self.id, self._store, self._writer, self._registry, None)
        self._worker = Worker(self.runner, self._store, self._registry, concurrency=50, poll_s=POLL_S)
        self._record = replace(self._new_record(), host="sim", pid=0)
        await self._writer.commit(Register(self._record))
        self._wakeups.listen(self._noted, self.id)

    def _noted(self, notes: Notes) -> None:
        self._loop.call_soon(self._worker.noted, notes)

    def heard(self, data: bytes) -> None:
        self._worker.heard(data)

    def abandon(self) -> None:
        if hasattr(self, "runner"):
            self.runner.abandon()

    async def beat(self) -> None:
        """The heartbeat's thread, as a task."""
        while True:
            await asyncio.sleep(LEASE_S / 3)
            clock, worker = self._store.clock, self.id
            until = clock.lease_ms() + self._lease_ms
            self._record = replace(self._record, lease_until_ms=until, beat_ms=clock.now_ms())
            try:
                held = await self._writer.commit(Beat(self._record))
            except LeaseLost:
                self._lost(worker)
            except TarryError:
                continue
            else:
                self._compare(held)


class Node:
    """One process with a worker in it."""

    def __init__(self, process: Process, cluster: Cluster, registry: Registry, skew_ms: int) -> None:
        self.process = process
        self.store, self.writer, self.wakeups = cluster.machinery(skew_ms)
        self.claimed = cluster.oracle.claimed
        self.host = SimHost(self, self.store, self.writer, self.wakeups, registry)
        self._incarnations = 0
        self._tasks: list[asyncio.Task[Any]] = []

    def new_worker_id(self) -> str:
        self._incarnations += 1
        return f"{self.process.name}.{self._incarnations}"

    def boot(self, loop: asyncio.AbstractEventLoop) -> None:
        self._tasks = [loop.create_task(self._run(loop))]

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        await self.host.begin()
        self._tasks.append(loop.create_task(self.host.beat()))

    def heard(self, data: bytes) -> None:
        if hasattr(self.host, "_worker"):
            self.host.heard(data)

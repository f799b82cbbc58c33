"""The machines of one schedule: a shared store, nodes, senders, and the network between them."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from tarry.core.commands import Deliver
from tarry.core.states import over
from tarry.model import RunRecord
from tarry.store.memory import MemoryStore
from tarry.testing.sim.body import OBSERVER, REGISTRY
from tarry.testing.sim.faults import Faults
from tarry.testing.sim.invariants import Invariants
from tarry.testing.sim.loop import Process, SimLoop, policy
from tarry.testing.sim.model import Model
from tarry.testing.sim.node import DATAGRAM_S, Node, SimWakeups
from tarry.testing.sim.oracle import Oracle
from tarry.testing.sim.rare import rare
from tarry.testing.sim.senders import Sender
from tarry.testing.sim.store import SimClock, SimStore
from tarry.testing.sim.writer import SimWriter

BURIALS = 20


class Cluster:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.counts: Counter[str] = Counter()
        self.loop = SimLoop(policy(self.chance))
        self.oracle = Oracle(self.loop)
        self.faults = Faults(self.chance, self.counts)
        self.real = MemoryStore(SimClock(self.loop))
        self.invariants = Invariants()
        self.model = Model()
        self.nodes: dict[str, Node] = {}
        self.broken: list[str] = []
        self.trace: list[str] = []
        self.tracing = False
        self._hash = hashlib.blake2b(digest_size=16)
        self._dead: list[Node] = []
        self._ended: set[str] = set()
        self._made = 0

    # --- processes ---

    def machinery(self, skew_ms: int) -> tuple[SimStore, SimWriter, SimWakeups]:
        """A process's own store, writer and wake-ups."""
        store = SimStore(self.real, SimClock(self.loop, skew_ms), self.faults, self.landed, self.untold)
        wakeups = SimWakeups(store, self)
        return store, SimWriter(store, wakeups.committed, self.faults, self.told), wakeups

    def process(self, kind: str) -> Process:
        self._made += 1
        process = self.loop.process(f"{kind}{self._made}")
        process.context.run(OBSERVER.set, self.oracle)
        return process

    def add_node(self) -> Node:
        process = self.process("node")
        skew_ms = self.chance.choice((0, 0, 0, -20, 20))
        node = process.run(Node, process, self, REGISTRY, skew_ms)
        self.nodes[process.name] = node
        process.run(node.boot, self.loop)
        self.say("boot", process.name)
        return node

    def add_sender(self, work: Callable[[Sender], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        process = self.process("sender")
        _, writer, _ = self.machinery(0)
        sender = Sender(process.name, writer, self.oracle, self.chance)
        task: asyncio.Task[None] = process.run(self.loop.create_task, work(sender))
        return task

    def kill(self, node: Node) -> None:
        self.counts["kill"] += 1
        self.say("kill", node.process.name)
        node.process.kill()
        self.loop.processes.remove(node.process)
        del self.nodes[node.process.name]
        self._dead.append(node)

    def pause(self, node: Node, for_s: float) -> None:
        self.counts["pause"] += 1
        self.say("pause", node.process.name, str(for_s))
        node.process.held_until = self.loop.time() + for_s

    def datagram(self, address: str, data: bytes) -> None:
        node = self.nodes.get(address)
        if node is None or self.faults.mute():
            return
        delay_s = self.chance.choice(DATAGRAM_S)
        self.loop.call_later(delay_s, node.heard, data, context=node.process.context.copy())

    def bury(self) -> None:
        """The verdict stands: whatever is left ends here, and not some day in the garbage collector."""
        self.oracle.muted = self.faults.closed = True
        for node in (*self.nodes.values(), *self._dead):
            node.host.abandon()
        self.loop.revive()
        for _ in range(BURIALS):  # a cancel may be lost to a timeout that comes just then
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        self.loop.close()

    # --- commits ---

    def landed(self, items: Sequence[Any]) -> None:
        """A batch is durable, whether or not its caller will ever know."""
        self.counts["commits"] += 1
        now_ms = self.real.clock.now_ms()
        self.broken += self.invariants.check(self.real.tables, now_ms, items)
        for item in items:
            self.say("landed", type(item).__name__, getattr(item, "run_id", ""))
        for run in self.real.tables.runs.values():
            if over(run) and run.id not in self._ended:
                self._end(run)

    def _end(self, run: RunRecord) -> None:
        self._ended.add(run.id)
        self.oracle.ended(run)
        self.say("ended", run.id, run.status)

    def untold(self) -> None:
        """A batch landed, and its process will be told that nobody knows."""
        self.model.blind = True

    def told(self, items: Sequence[Any], results: Sequence[Any]) -> None:
        now_ms = self.real.clock.now_ms()
        for item, result in zip(items, results, strict=True):
            if wrong := self.model.follow(item, result, now_ms):
                self.broken.append(wrong)
            self.counts.update(rare(item, result))
            if isinstance(item, Deliver):
                self.say("told", item.name, item.key, str(getattr(result, "status", type(result).__name__)))

    def say(self, *words: str) -> None:
        line = f"{self.loop.time():.3f} {' '.join(words)}"
        self._hash.update(line.encode())
        if self.tracing:
            self.trace.append(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

"""One seed: a cluster, two phases, a verdict.

In the first phase everything that can go wrong may. Then it heals, and what was accepted has to come through
in time. At last the world gives each run what it still waits for, and each run has to end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tarry.core.commands import Cancel, CloseChannel, Resolve, Retry, Start
from tarry.core.states import over
from tarry.model import ArrivalKind, ArrivalStatus, Blocked, EntryKind, Outcome, RunRecord, Status, WaitKind
from tarry.testing.history import Healed, Violation, check
from tarry.testing.sim.body import REGISTRY
from tarry.testing.sim.cluster import Cluster
from tarry.testing.sim.dump import final
from tarry.testing.sim.loop import Stalled
from tarry.testing.sim.node import LEASE_S, POLL_S
from tarry.testing.sim.prefixes import departures
from tarry.testing.sim.senders import Parcel, Sender, parcel
from tarry.testing.sim.trees import drops, folds, tree

CHAOS_S = (1.0, 4.0, 12.0, 25.0)
QUIET_S = LEASE_S + POLL_S + 2
FEEDINGS = 100
CUT_EACH = 5
FEED_S = 1.5
GAPS_S = (0.0, 0.001, 0.005, 0.3, 1.0, 1.0, 5.0)


@dataclass(frozen=True)
class Verdict:
    """`broken` is empty, or says what is wrong with the engine under this seed."""

    seed: int
    broken: tuple[str, ...]
    counts: Counter[str]
    digest: str
    trace: tuple[str, ...] = ()


class Schedule:
    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.seed = seed
        self.cluster = Cluster(seed)
        self.cluster.tracing = tracing
        self.chance = self.cluster.chance
        self.run_ids = [f"r{i}" for i in range(1, 2 + (self.chance.random() < 0.3))]
        self.trees = {run_id: self.chance.randrange(1 << 30) for run_id in self.run_ids}

    def play(self) -> Verdict:
        cluster = self.cluster
        try:
            cluster.loop.run_until_complete(self._play())
        except Stalled as error:
            cluster.broken.append(f"stalled: {error}")
        self._judge()
        cluster.counts["steps"] = cluster.loop.steps
        cluster.bury()
        return Verdict(self.seed, tuple(cluster.broken), cluster.counts, cluster.digest, tuple(cluster.trace))

    # --- the two phases ---

    async def _play(self) -> None:
        cluster = self.cluster
        for _ in range(1 + self.chance.randrange(3)):
            cluster.add_node()
        senders = [cluster.add_sender(self._starting(run_id)) for run_id in self.run_ids]
        senders += [cluster.add_sender(self._sending(i)) for i in range(1 + self.chance.randrange(3))]
        if self.chance.random() < 0.25:
            senders.append(cluster.add_sender(self._operating))
        await self._chaos(self.chance.choice(CHAOS_S))
        self._heal()
        await asyncio.gather(*senders)
        if not self._over():
            await asyncio.sleep(QUIET_S)
            await self._feed()

    def _over(self) -> bool:
        runs = self._runs()
        return len(runs) == len(self.run_ids) and all(over(run) for run in runs)

    async def _chaos(self, length_s: float) -> None:
        cluster = self.cluster
        end = cluster.loop.time() + length_s
        while cluster.loop.time() < end and not self._over():
            await asyncio.sleep(self.chance.choice((0.01, 0.3, 1.0, 3.0)))
            nodes = list(cluster.nodes.values())
            if nodes and self.chance.random() < cluster.faults.rates.kill / 3:
                cluster.kill(self.chance.choice(nodes))
            elif nodes and self.chance.random() < cluster.faults.rates.pause / 3:
                for_s = self.chance.choice((0.5, LEASE_S + 1, 2.5 * LEASE_S))
                cluster.counts["zombie"] += for_s > LEASE_S
                cluster.pause(self.chance.choice(nodes), for_s)
            elif len(nodes) < 3 and self.chance.random() < 0.5:
                cluster.add_node()

    def _heal(self) -> None:
        cluster = self.cluster
        cluster.faults.heal()
        for node in cluster.nodes.values():
            node.process.held_until = 0.0
        if not cluster.nodes:
            cluster.add_node()
        cluster.say("healed")
        cluster.oracle.write(Healed())

    # --- the world ---

    def _starting(self, run_id: str) -> Any:
        workflow = self.chance.choice(("open", "strict"))

        async def start(sender: Sender) -> None:
            await asyncio.sleep(self.chance.choice(GAPS_S))
            data = f"[{self.trees[run_id]}]".encode()
            await sender.insist(Start(run_id, workflow, data, accepts=REGISTRY.accepts[workflow]), REGISTRY.documents)

        return start

    def _sending(self, number: int) -> Any:
        count = 2 + self.chance.randrange(6)

        async def send(sender: Sender) -> None:
            for i in range(count):
                await asyncio.sleep(self.chance.choice(GAPS_S))
                await sender.deliver(parcel(self.chance, self.chance.choice(self.run_ids), i))

        return send

    async def _operating(self, sender: Sender) -> None:
        await asyncio.sleep(self.chance.choice(GAPS_S) * 3)
        run_id = self.chance.choice(self.run_ids)
        if self.chance.random() < 0.5:
            await sender.insist(Cancel(run_id, "op", force=self.chance.random() < 0.2))
        else:
            await sender.insist(CloseChannel(run_id, self.chance.choice(("x1", "x2", "x3")), "op"))

    async def _feed(self) -> None:
        """Gives the runs what they wait for, until they end."""
        for round in range(FEEDINGS):
            if self._over():
                return
            await self.cluster.add_sender(self._feeding(round))
            await asyncio.sleep(FEED_S)
        for run in self._runs():
            if not over(run):
                waits = [wait.id for key, wait in self.cluster.real.tables.waits.items() if key[0] == run.id]
                self.cluster.broken.append(f"never ends: {run}, waiting for {waits}")

    def _feeding(self, round: int) -> Any:
        async def feed(sender: Sender) -> None:
            for run in self._runs():
                for action in self._wanted(run, round):
                    if isinstance(action, Parcel):
                        await sender.deliver(action)
                    else:
                        await sender.insist(action)

        return feed

    def _wanted(self, run: RunRecord, round: int) -> list[Any]:
        tables = self.cluster.real.tables
        if run.status is Status.BLOCKED:
            return self._unblock(run)
        wanted: list[Any] = []
        for key, wait in tables.waits.items():
            if key[0] != run.id or wait.outcome is not None or wait.kind not in (WaitKind.SIGNAL, WaitKind.CHANNEL):
                continue
            wanted.append(Parcel(run.id, ArrivalKind(wait.kind), wait.name, 2 * round, f"feed{round}"))
        return wanted

    def _unblock(self, run: RunRecord) -> list[Any]:
        if run.blocked is Blocked.POISON:
            return [Retry(run.id, "op")]
        if run.blocked is not Blocked.UNKNOWN_OUTCOME:
            self.cluster.broken.append(f"blocked: {run.id}: {run.blocked}: {run.reason}")
            return [Cancel(run.id, "op", force=True)]
        entries = [entry for key, entry in self.cluster.real.tables.entries.items() if key[0] == run.id]
        unknown = [e for e in entries if e.outcome is Outcome.UNKNOWN and e.kind is EntryKind.STEP]
        resolved = {(e.scope, e.name) for e in entries if e.kind is EntryKind.RESOLVE and e.outcome is Outcome.OK}
        for entry in unknown:
            if (entry.scope, entry.name) not in resolved:
                redo = self.chance.random() < 0.4
                outcome, value = (Outcome.UNKNOWN, None) if redo else (Outcome.OK, b"7")
                return [Resolve(run.id, entry.name, entry.no, outcome, value, "op")]
        return []

    def _runs(self) -> list[RunRecord]:
        return list(self.cluster.real.tables.runs.values())

    # --- the verdict ---

    def _folding(self) -> frozenset[str]:
        return frozenset(run_id for run_id, seed in self.trees.items() if folds(tree(seed)))

    def _given_up(self, violation: Violation) -> bool:
        """The checker cannot know that the body cancelled the branch that a payload was delivered to, nor that a
        payload had lost to one which its type then refused."""
        if violation.rule == "H3" and violation.text == "delivered, and the run ended without it":
            return drops(tree(self.trees[violation.run]))
        if violation.text == "told of a timeout that never was":  # it was, and a cancel closed the wait after it
            return self.cluster.real.tables.runs[violation.run].cancelling
        arrivals = self.cluster.real.tables.arrivals.values()
        refused = {(a.run_id, a.name) for a in arrivals if a.status is ArrivalStatus.INVALID}
        return violation.rule == "H6" and (violation.run, violation.name) in refused

    def _judge(self) -> None:
        cluster = self.cluster
        tables = cluster.real.tables
        dump = final(tables, cluster.real.clock.now_ms(), cluster.oracle.last_ns, self._folding())
        report = check(cluster.oracle.history, dump, lease_s=LEASE_S, poll_s=POLL_S)
        cluster.broken += [str(violation) for violation in report.violations if not self._given_up(violation)]
        cluster.broken += cluster.oracle.disorders()
        for run in self._runs():
            if run.status is Status.FAILED or (run.status is Status.SUCCEEDED and run.result != b'"done"'):
                cluster.broken.append(f"ended as no tree ends: {run}")
            cluster.counts[f"run {run.status}"] += 1
            if self.seed % CUT_EACH == 0 and run.id not in self._folding():
                cluster.counts["journals cut"] += 1
                cluster.broken += departures(tables, run, cluster.oracle.order(run.id))


def play(seed: int, *, tracing: bool = False) -> Verdict:
    return Schedule(seed, tracing=tracing).play()

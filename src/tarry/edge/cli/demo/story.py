"""The demo, scene by scene (rules 3.5, 4.2 to 4.7, 5.3, 11.4): nothing in it is simulated.

A worker process is killed with -9 while runs wait, in the middle of a step, and between the messages of a
channel. Payments come early, twice, changed and malformed, each from a process of its own. At the end the
outside world's ledger is compared with what had to happen; the exit code says whether it holds.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from tarry.app import App
from tarry.edge.cli import failing
from tarry.edge.cli.demo.ledger import Ledger
from tarry.edge.cli.demo.people import Worker, deliver
from tarry.edge.cli.demo.shop import shop
from tarry.edge.cli.look import console
from tarry.edge.cli.show import print_run
from tarry.model import Status

PATIENCE_S = 30.0
LOOK_S = 0.02
ORDERS = {
    "order-1": "plain",
    "order-2": "plain",
    "order-3": "slow",
    "order-4": "hurried",
    "order-5": "sponsored",
}


def demo() -> int:
    """See Tarry under attack: kills, duplicates, early and malformed events, a deadline; then the count."""
    with tempfile.TemporaryDirectory(prefix="tarry-demo-") as folder:
        return asyncio.run(_told(Path(folder)))


async def _told(folder: Path) -> int:
    store, ledger = f"sqlite:///{folder}/shop.db", folder / "ledger"
    worker = Worker(store, ledger)
    app = shop(store, Ledger(ledger))
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            story = Story(app, worker, store, Ledger(ledger))
            await story.tell()
            return story.verdict()
    finally:
        await worker.kill()
        await app.close()


class Story:
    def __init__(self, app: App, worker: Worker, store: str, ledger: Ledger) -> None:
        self._app = app
        self._worker = worker
        self._store = store
        self._ledger = ledger
        self._out = console()
        self._bodies: dict[str, Any] = json.loads((files("tarry.edge.cli.demo") / "bodies.json").read_bytes())
        self._receipts: list[tuple[str, str, dict[str, Any]]] = []

    async def tell(self) -> None:
        await self._orders_and_an_early_payment()
        await self._killed_while_they_wait()
        await self._killed_in_a_step()
        await self._a_deadline()
        await self._killed_between_messages()
        await self._worker.stop()

    # --- the scenes ---

    async def _orders_and_an_early_payment(self) -> None:
        self._scene(1, "Five orders, and a payment that comes before its order is even looked at")
        for run_id, kind in ORDERS.items():
            if run_id != "order-3":
                await self._app.start("order", kind, id=run_id)
        await self._pay("order-2", "early", "purchased", "evt-2")
        pid = await self._worker.start()
        self._say(f"worker {pid} runs them")
        await self._until(lambda: self._is("order-1", Status.WAITING))
        await self._until(lambda: self._is("order-2", Status.SUCCEEDED))
        self._say("order-2 went straight on: its payment was buffered. The others wait for theirs.")

    async def _killed_while_they_wait(self) -> None:
        self._scene(2, "kill -9 while runs wait, and payments that arrive while no worker is there")
        await self._worker.kill()
        self._say("the worker is dead. Each of these comes from a process of its own:")
        await self._pay("order-1", "of a wrong type", "malformed", "evt-0")
        await self._pay("order-1", "the payment", "purchased", "evt-1")
        await self._pay("order-1", "the same again", "purchased", "evt-1")
        await self._pay("order-1", "changed, under the same key", "changed", "evt-1")
        await self._worker.start()
        await self._until(lambda: self._is("order-1", Status.SUCCEEDED))
        self._say("a new worker took the payment in, once.")

    async def _killed_in_a_step(self) -> None:
        self._scene(3, "kill -9 in the middle of a step")
        await self._app.start("order", ORDERS["order-3"], id="order-3")
        await self._until(lambda: self._tried("order-3/reserve") == 1)
        await self._worker.kill()
        self._say("it died between asking the warehouse and recording the answer. The next worker has to ask again,")
        self._say("under the same key, so that the warehouse knows.")
        await self._worker.start()
        await self._pay("order-3", "meanwhile", "purchased", "evt-3")
        await self._until(lambda: self._is("order-3", Status.SUCCEEDED))

    async def _a_deadline(self) -> None:
        self._scene(4, "A deadline that passes")
        await self._until(lambda: self._is("order-4", Status.SUCCEEDED))
        await self._pay("order-4", "too late", "purchased", "evt-4")
        self._say("order-4 waited two seconds, gave up, and its late payer is told.")

    async def _killed_between_messages(self) -> None:
        self._scene(5, "A channel, consumed across a kill")
        await self._pay("order-5", "the payment", "purchased", "evt-5")
        gifts = self._bodies["sponsorships"]
        for number in (0, 1, 1):
            await self._send(gifts[number], f"gift-{number}")
        await self._until(lambda: self._tried("order-5/sponsors:gift-1/thank:gift-1") == 1)
        await self._worker.kill()
        for number in (2, 3):
            await self._send(gifts[number], f"gift-{number}")
        await self._worker.start()
        await self._until(lambda: self._is("order-5", Status.SUCCEEDED))
        self._say("each gift was counted once, whoever read it.")

    # --- deliveries ---

    async def _pay(self, run_id: str, how: str, body: str, key: str) -> None:
        payload = {"action": 7} if body == "malformed" else self._bodies[body]
        receipt = await deliver(self._store, "signal", run_id, "paid", payload, key)
        self._kept(run_id, f"payment, {how}", receipt)

    async def _send(self, body: Any, key: str) -> None:
        receipt = await deliver(self._store, "send", "order-5", "sponsors", body, key)
        self._kept("order-5", f"message {key}", receipt)

    def _kept(self, run_id: str, what: str, receipt: dict[str, Any]) -> None:
        self._receipts.append((run_id, what, receipt))
        line = Text.assemble("    ", f"{run_id}  {what} ", ("→ ", "dim"), (receipt["status"], "bold"))
        reason = receipt.get("reason")
        self._out.print(line.append(f" ({reason})", style="dim") if reason not in (None, receipt["status"]) else line)

    # --- the count ---

    def verdict(self) -> int:
        self._scene(6, "The count")
        expected = _expected()
        entries = {entry.key: entry for entry in self._ledger.entries()}
        table = Table("step", "attempts", "effects", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for key in sorted(expected | entries.keys()):
            entry = entries.get(key)
            attempts, effects = (entry.attempts, entry.effects) if entry else (0, 0)
            style = "" if effects == 1 and key in expected else "bold red"
            table.add_row(Text(key, style=style), str(attempts), str(effects))
        self._out.print(table)
        self._out.print()
        print_run(self._app, _row(self._app, "order-1"), self._out)
        lost = sum(key not in entries or entries[key].effects == 0 for key in expected)
        lost += sum(run_id not in RESULTS or self._result(run_id) != RESULTS[run_id] for run_id in ORDERS)
        twice = sum(entry.effects > 1 for entry in entries.values()) + len(entries.keys() - expected)
        pairs = zip(self._receipts, RECEIPTS, strict=True)
        wrong = sum(to != run_id or told["status"] not in wanted for (to, _, told), (run_id, wanted) in pairs)
        retried = sum(entry.attempts - 1 for entry in entries.values())
        good = not (lost or twice or wrong)
        verdict = f"{lost} lost, {twice} applied twice, {wrong} receipts wrong; {retried} attempts were repeated"
        self._out.print(Text(f"\n{verdict}", style="bold green" if good else "bold red"))
        return failing.OK if good else failing.FAILED

    def _result(self, run_id: str) -> str:
        run = self._app.store.run(run_id)
        return "" if run is None or run.result is None else json.loads(run.result)

    # --- looking ---

    def _is(self, run_id: str, status: Status) -> bool:
        run = self._app.store.run(run_id)
        return run is not None and run.status is status

    def _tried(self, key: str) -> int:
        return next((entry.attempts for entry in self._ledger.entries() if entry.key == key), 0)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 (other processes write what it looks at)
                await asyncio.sleep(LOOK_S)

    def _scene(self, number: int, title: str) -> None:
        self._out.print(Text.assemble((f"\n{number}  ", "bold cyan"), (title, "bold")))

    def _say(self, text: str) -> None:
        self._out.print(f"    {text}")


RESULTS = {
    "order-1": "shipped to username: 1000 cents, 0 dollars given",
    "order-2": "shipped to username: 1000 cents, 0 dollars given",
    "order-3": "shipped to username: 1000 cents, 0 dollars given",
    "order-4": "abandoned",
    "order-5": "shipped to username: 1000 cents, 20 dollars given",
}

ACCEPTED = ("delivered", "buffered")  # which of the two depends on who was faster
RECEIPTS: list[tuple[str, tuple[str, ...]]] = [
    ("order-2", ("buffered",)),
    ("order-1", ("invalid",)),
    ("order-1", ("delivered",)),
    ("order-1", ("duplicate",)),
    ("order-1", ("conflict",)),
    ("order-3", ACCEPTED),
    ("order-4", ("stale",)),
    ("order-5", ("delivered",)),
    ("order-5", ACCEPTED),
    ("order-5", ACCEPTED),
    ("order-5", ("duplicate",)),
    ("order-5", ACCEPTED),
    ("order-5", ACCEPTED),
]


def _expected() -> set[str]:
    steps = {f"{run_id}/reserve" for run_id in ORDERS} | {"order-4/release"}
    steps |= {f"{run_id}/ship" for run_id in ORDERS if run_id != "order-4"}
    return steps | {f"order-5/sponsors:gift-{number}/thank:gift-{number}" for number in range(4)}


def _row(app: App, run_id: str) -> Any:
    from tarry.app.rows import run_row

    run = app.store.run(run_id)
    assert run is not None
    return run_row(run)

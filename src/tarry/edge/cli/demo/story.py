"""The demo, scene by scene (rules 3.5, 4.2 to 4.8, 5.3, 11.4): nothing in it is simulated.

A worker process is killed with -9 while runs wait, in the middle of steps, and while it reads a channel. Payments
come early, twice at once, changed and malformed, each from a process of its own; a deadline passes while nobody is
there. At the end the outside world's own record is compared with what had to happen; the exit code says whether it
holds.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tarry.app import App
from tarry.core.states import ENDS
from tarry.edge.cli import failing, given
from tarry.edge.cli.demo.count import Delivery, count
from tarry.edge.cli.demo.processes import Worker, deliver, resolve
from tarry.edge.cli.demo.shop import WORLD, app
from tarry.edge.cli.demo.stage import Stage
from tarry.edge.cli.demo.world import AFTER, BEFORE, World
from tarry.edge.cli.show import print_run
from tarry.model import Status

PATIENCE_S = 60.0
LOOK_S = 0.02
SHIPPED = "shipped 1 for 1000 cents"
RESULTS = {
    "fund": "25 dollars",
    "order-1": SHIPPED,
    "order-2": SHIPPED,
    "order-3": "abandoned",
    "order-4": SHIPPED,
    "order-5": SHIPPED,
    "order-6": SHIPPED,
}
GIFTS = ("sponsored", "tier_change", "sponsored", "tier_change", "sponsored")


def demo(
    *, keep: Annotated[bool, given.Flag, Parameter(help="Keep the files, and say how to look at them.")] = False
) -> int:
    """See Tarry under attack: kills, duplicates, early and malformed events, a deadline; then the count."""
    folder = Path(tempfile.mkdtemp(prefix="tarry-demo-"))
    good = asyncio.run(_told(folder, keep))
    if good and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return failing.OK if good else failing.FAILED


async def _told(folder: Path, keep: bool) -> bool:
    """Whether it ended well. If not, its files stay."""
    store = f"sqlite:///{folder}/shop.db"
    app.open(store)
    story = Story(app, store, folder)
    try:
        await story.tell()
        good = await story.verdict()
    except Stuck as error:
        story.stage.say(f"\n{error}", "bold red")
        good = False
    finally:
        await story.worker.stop()
        await app.close()
    if keep or not good:
        story.stage.say(f"\nTo look around:\nexport TARRY_STORE={store}\ntarry runs\ntarry show order-5")
    return good


class Stuck(Exception):
    """What the story waited for did not come."""


class Story:
    def __init__(self, app: App, store: str, folder: Path) -> None:
        self.stage = Stage()
        self.worker = Worker(folder)
        self._app = app
        self._store = store
        self._world = World(folder / WORLD)
        self._bodies: dict[str, Any] = json.loads((files("tarry.edge.cli.demo") / "bodies.json").read_bytes())
        self._deliveries: list[Delivery] = []
        self._kills = 0

    async def tell(self) -> None:
        self.stage.title(
            "Tarry under attack",
            "A shop's orders wait for their payments on one SQLite file. Payments are recorded GitHub webhooks, "
            "each sent by a process of its own; the worker is another process, and is killed with -9.",
        )
        await self._an_early_payment()
        await self._killed_while_they_wait()
        await self._killed_in_steps()
        await self._a_step_that_must_not_be_repeated()
        await self._killed_beside_a_channel()
        await self.worker.stop()

    # --- the scenes ---

    async def _an_early_payment(self) -> None:
        self.stage.scene("A payment that comes before anybody waits for it", "Look at its receipt: buffered.")
        for run_id, patience in (("order-1", "24h"), ("order-2", "24h"), ("order-3", "3s")):
            await self._app.start("order", patience, id=run_id)
        await self._pay("order-1", "its payment, early", wanted=("buffered",))
        self.stage.say(f"worker {await self.worker.start()} runs the orders")
        await self._ended("order-1")
        await self._waits("order-2", "order-3")
        self.stage.say("order-1 went straight through. The others have no payment yet, and wait for it.")

    async def _killed_while_they_wait(self) -> None:
        self.stage.scene(
            "kill -9 while runs wait; then everything comes at once",
            "No worker is there, and yet each sender is told exactly what became of its event.",
        )
        await self._kill("while order-2 and order-3 wait")
        await self._pay("order-2", "another type of event", "sponsored", key="evt-0", wanted=("invalid",))
        await self._pay("order-2", "its payment, by two senders at once", copies=2, wanted=("delivered", "duplicate"))
        await self._pay("order-2", "the same event, changed", "changed", wanted=("conflict",))
        await self._until("the deadline of order-3", lambda: self._overdue("order-3"))
        await self._pay("order-3", "its payment, after the deadline", wanted=("stale",))
        await self.worker.start()
        await self._ended("order-2", "order-3")
        self.stage.say("A new worker found both as they were: one paid, one abandoned at its deadline.")

    async def _killed_in_steps(self) -> None:
        self.stage.scene(
            "kill -9 in the middle of a step, before and after its effect",
            "A step may run again, with the same key: attempts 2, effects 1.",
        )
        self._world.silence("order-4/reserve", BEFORE)
        self._world.silence("order-5/ship", AFTER)
        self._world.silence("order-6/letter", AFTER)
        for run_id in ("order-4", "order-5", "order-6"):
            await self._app.start("order", "24h", id=run_id)
        for run_id in ("order-5", "order-6"):
            await self._pay(run_id, "its payment", wanted=("delivered",))
        await self._until("order-4 to reserve", lambda: self._world.asked("order-4/reserve") == 1)
        await self._until("order-5 to ship", lambda: self._world.done("order-5/ship") == 1)
        await self._until("order-6 to post a letter", lambda: self._world.done("order-6/letter") == 1)
        await self._kill("while order-4 reserves, order-5 has shipped, order-6 has posted a letter")
        await self.worker.start()
        await self._pay("order-4", "its payment", wanted=("delivered",))
        await self._ended("order-4", "order-5")
        self.stage.say("The next worker asked again, and the warehouse knew the key.")

    async def _a_step_that_must_not_be_repeated(self) -> None:
        self.stage.scene(
            "A step that must not be repeated",
            "A letter has no key. It is AT_MOST_ONCE, so order-6 is blocked until somebody says what happened.",
        )
        await self._until("order-6 to be blocked", lambda: self._is("order-6", Status.BLOCKED))
        self.stage.say("order-6 is blocked: unknown outcome. ann looks, and the letter was posted:")
        self.stage.say("""$ tarry resolve order-6 letter --result '"posted"' --actor ann""")
        await resolve(self._store, "order-6", "letter", "posted")
        await self._ended("order-6")

    async def _killed_beside_a_channel(self) -> None:
        self.stage.scene(
            "A channel, read across a kill",
            "Five gifts, each sent twice. Their sum and the place in the channel commit together.",
        )
        self._world.silence("fund/gifts:gift-2/thank:gift-2", AFTER)
        await self._app.start("fund", id="fund")
        for number in range(3):
            await self._give(number)
        await self._until("the thanks for gift-2", lambda: self._world.done("fund/gifts:gift-2/thank:gift-2") == 1)
        await self._kill("while gift-2 is thanked for, and not yet counted")
        for number in range(3, len(GIFTS)):
            await self._give(number)
        await self._app.close_channel("fund", "gifts")
        await self.worker.start()
        await self._ended("fund")
        self.stage.say(f"The fund counted {self._result('fund')}.")

    # --- deliveries and kills ---

    async def _pay(
        self,
        run_id: str,
        what: str,
        body: str = "purchased",
        *,
        key: str = "evt-1",
        copies: int = 1,
        wanted: tuple[str, ...],
    ) -> None:
        await self._deliver("signal", run_id, "paid", body, key, copies, what, wanted)

    async def _give(self, number: int) -> None:
        key = f"gift-{number}"
        await self._deliver("send", "fund", "gifts", GIFTS[number], key, 2, key, ("delivered", "duplicate"))

    async def _deliver(
        self, verb: str, run_id: str, name: str, body: str, key: str, copies: int, what: str, wanted: tuple[str, ...]
    ) -> None:
        calls = (deliver(self._store, verb, run_id, name, self._bodies[body], key) for _ in range(copies))
        sent = Delivery(run_id, what, tuple(await asyncio.gather(*calls)), wanted)
        self._deliveries.append(sent)
        self.stage.delivery(sent)

    async def _kill(self, when: str) -> None:
        self._kills += 1
        self.stage.killed(await self.worker.kill(), when)

    # --- the count ---

    async def verdict(self) -> bool:
        self.stage.scene("The count", "What the outside world was asked for, and what came of it.")
        entries = self._world.entries()
        results = {run_id: (wanted, self._result(run_id)) for run_id, wanted in RESULTS.items()}
        result = count(_effects(), entries, results, self._deliveries)
        self.stage.effects(entries)
        self.stage.receipts(self._deliveries)
        print_run(self._app, await self._app.run("order-2"), self.stage.out)
        self.stage.verdict(result, self._kills)
        return result.good

    # --- looking ---

    def _is(self, run_id: str, *statuses: Status) -> bool:
        run = self._app.store.run(run_id)
        return run is not None and run.status in statuses

    def _result(self, run_id: str) -> str | None:
        run = self._app.store.run(run_id)
        return None if run is None or run.result is None else json.loads(run.result)

    def _overdue(self, run_id: str) -> bool:
        """Whether the deadline of the run's wait has passed."""
        run = self._app.store.run(run_id)
        return run is not None and run.due_ms is not None and run.due_ms <= self._app.store.clock.now_ms()

    async def _waits(self, *run_ids: str) -> None:
        for run_id in run_ids:
            await self._until(f"{run_id} to wait", lambda run_id=run_id: self._is(run_id, Status.WAITING))

    async def _ended(self, *run_ids: str) -> None:
        for run_id in run_ids:
            await self._until(f"{run_id} to end", lambda run_id=run_id: self._is(run_id, *ENDS))

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        """Other processes write what `holds` looks at, so it looks again and again, but not for ever."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise Stuck(f"the demo waited {PATIENCE_S:.0f} s for {what}, in vain") from None


def _effects() -> list[str]:
    """The key of every effect that had to happen."""
    paid = ("order-1", "order-2", "order-4", "order-5", "order-6")
    steps = [f"{run_id}/{step}" for run_id in paid for step in ("reserve", "ship", "letter")]
    thanks = [f"fund/gifts:gift-{number}/thank:gift-{number}" for number in range(len(GIFTS))]
    return [*steps, "order-3/reserve", "order-3/release", *thanks]

"""The writer under faults: each caller gets its own right answer, and nothing is applied twice (SPEC 4.2, 11.7)."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tarry.core.commands import CloseChannel, Command
from tarry.errors import Closed, CommitUnknown, RunNotFound, StoreBusy, StoreError, StoreFull, TarryError
from tarry.model import ReceiptStatus
from tarry.store.fold import Notes
from tarry.store.memory import MemoryStore
from tarry.store.protocol import Transaction
from tarry.store.sweeps import Sweep
from tarry.store.writer import BATCH, Writer
from tarry.testing.clock import ManualClock
from tarry.testing.conformance_driver import message, signal, start
from tarry.testing.faults import Fault, FaultStore, Plan, script, seeded

pytestmark = pytest.mark.anyio


class Office:
    """A writer on a store with faults; `told` are the notes of its commits."""

    def __init__(self, plan: Plan) -> None:
        self.memory = MemoryStore(ManualClock())
        self.store = FaultStore(self.memory, plan)
        self.told: list[Notes] = []
        self.writer = Writer(self.store, self.told.append)

    async def all(self, *items: Command | Sweep) -> list[Any]:
        """Handed in within one turn of the loop: one batch."""
        return await asyncio.gather(*(self.writer.commit(item) for item in items), return_exceptions=True)

    def threads(self, *items: Command | Sweep) -> list[Any]:
        """From the writer's own thread, one after another."""
        return [_told(lambda item=item: self.writer.commit_sync(item)) for item in items]


def _told(call: Any) -> Any:
    try:
        return call()
    except TarryError as error:
        return error


def office(*faults: Fault | None) -> Office:
    return Office(script(*faults))


def statuses(told: list[Any]) -> list[ReceiptStatus]:
    return [receipt.status for receipt in told]


async def test_callers_of_one_turn_share_a_commit():
    desk = office()
    told = await desk.all(start(), signal(), signal(key="k2"), signal(run_id="nobody"))
    assert told[0].created
    assert statuses(told[1:3]) == [ReceiptStatus.BUFFERED, ReceiptStatus.BUFFERED]
    assert told[3] == RunNotFound(run_id="nobody")
    assert len(desk.store.batches) == 1
    assert [notes.ready for notes in desk.told] == [{"r"}]


@pytest.mark.parametrize("fault", [Fault.LANDED, Fault.LOST])
@pytest.mark.parametrize("inline", [True, False])
async def test_an_unknown_commit_is_looked_up_by_its_batch(fault: Fault, inline: bool):
    """SPEC 11.7: there, the results stand; not there, it is run again; either way each is told what it did."""
    desk = office(fault)
    items = (start(), signal(), message())
    told = await desk.all(*items) if inline else await asyncio.to_thread(desk.threads, *items)
    assert told[0].created
    assert statuses(told[1:]) == [ReceiptStatus.BUFFERED, ReceiptStatus.BUFFERED]
    assert desk.store.counts[fault] == 1
    assert [arrival.no for arrival in desk.memory.arrivals("r", None, 10).rows] == [1, 2]
    assert {run for notes in desk.told for run in notes.ready} == {"r"}
    desk.writer.close()


class Deaf(FaultStore):
    """It cannot be asked either."""

    def landed(self, batch: str) -> bool:
        raise StoreError(reason="still no connection")


@pytest.mark.parametrize("fault", [Fault.LANDED, Fault.LOST])
async def test_where_it_cannot_be_looked_up_all_are_told_that_it_is_unknown(fault: Fault):
    """Run again, a delivery that landed would be told that it is a duplicate."""
    desk = office()
    desk.store = Deaf(desk.memory, script(fault))
    desk.writer = Writer(desk.store, desk.told.append)
    told = await desk.all(start(), start("s"))
    assert told == [CommitUnknown(), CommitUnknown()]
    assert (desk.memory.run("r") is not None) == (fault is Fault.LANDED)
    assert (await desk.all(start()))[0].created == (fault is Fault.LOST)


async def test_a_commit_that_breaks_is_tried_again_one_by_one():
    """All of it was rolled back: nobody is told of what is not there."""
    desk = office(Fault.BROKEN, None, Fault.FULL)
    told = await desk.all(start("a"), start("b"), start("c"))
    assert told[0].created
    assert told[1] == StoreFull(reason="no space left on device")
    assert told[2].created
    assert [desk.memory.run(run_id) is not None for run_id in "abc"] == [True, False, True]


async def test_a_lock_that_is_not_given_fails_the_whole_batch_at_once():
    """Each on its own would wait as long again."""
    desk = office(Fault.BUSY, Fault.BUSY)
    assert await desk.all(start("a"), start("b")) == [StoreBusy(waited_s=0)] * 2
    assert desk.store.counts[Fault.BUSY] == 2
    desk.writer.close()


async def test_who_cannot_write_at_once_on_the_loop_is_written_by_the_thread():
    desk = office(Fault.BUSY)
    assert (await desk.writer.commit(start())).created
    assert desk.store.counts[Fault.BUSY] == 1
    assert any(thread.name == "tarry-writer" for thread in threading.enumerate())
    desk.writer.close()


class Poison(Sweep):
    """A sweep that breaks whatever transaction it is in."""

    def run(self, tx: Transaction) -> None:
        tx.save([start("poison")])  # type: ignore[list-item]


async def test_only_the_guilty_one_fails():
    """SPEC 2: one constraint error failed 500 callers once."""
    desk = office()
    told = await desk.all(start("a"), Poison(), start("b"), CloseChannel("a", "ev"))
    assert told[0].created
    assert isinstance(told[1], Exception)
    assert told[2].created
    assert told[3] is True
    assert desk.memory.run("poison") is None


async def test_a_caller_that_is_cancelled_has_still_committed():
    desk = office()
    task = asyncio.ensure_future(desk.writer.commit(start()))
    await asyncio.sleep(0)
    task.cancel()
    assert (await desk.writer.commit(start())).created is False


async def test_more_than_a_batch_is_several():
    desk = office()
    told = await desk.all(*(start(f"r{number}") for number in range(BATCH + 3)))
    assert all(started.created for started in told)
    assert len(desk.store.batches) == 2
    desk.writer.close()


async def test_closing_commits_what_is_queued_and_takes_nothing_more():
    gate = threading.Event()
    desk = office(Fault.SLOW)
    desk.store.slow = gate.wait
    told: list[Any] = []
    thread = threading.Thread(target=lambda: told.extend(desk.threads(start())))
    thread.start()
    gate.set()
    await asyncio.to_thread(thread.join)
    desk.writer.close()
    assert told[0].created
    with pytest.raises(Closed):
        desk.writer.commit_sync(start("late"))


@pytest.fixture(params=range(6))
def stormy(request: pytest.FixtureRequest) -> Iterator[Office]:
    faults = (Fault.BROKEN, Fault.FULL, Fault.LOST, Fault.LANDED)
    desk = Office(seeded(request.param, 0.4, faults))
    yield desk
    desk.writer.close()


async def test_in_any_weather_the_answer_is_the_truth(stormy: Office):
    """SPEC 4.2: what was answered is on file, once; what failed is not, and may be sent again."""
    while isinstance((await stormy.all(start()))[0], StoreError):
        pass
    for turn in range(20):
        sent = [message(key=f"{turn}-{number}") for number in range(4)]
        told = await stormy.all(*sent)
        on_file = {arrival.key for arrival in stormy.memory.arrivals("r", None, 1000).rows}
        for command, answer in zip(sent, told, strict=True):
            assert isinstance(answer, StoreError) == (command.key not in on_file)
            assert isinstance(answer, StoreError) or answer.status is ReceiptStatus.BUFFERED
    numbers = [arrival.no for arrival in stormy.memory.arrivals("r", None, 1000).rows]
    assert numbers == list(range(1, len(numbers) + 1))
    assert stormy.memory.run("r").buffered == len(numbers)  # type: ignore[union-attr]

"""The App as a program uses it: opening, names, sync code, workers, driving, lists (rules 2, 3.1, 6, 11, 12, 13)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tarry import App, Json, Run, RunConflict, RunFailed, RunNotFound, Signal, Status, SyncApp
from tarry.errors import (
    ActorRequired,
    BadArguments,
    BadLimit,
    BadStoreUrl,
    Closed,
    DuplicateWorkflow,
    InRunningLoop,
    InvalidDuration,
    InvalidInstant,
    InvalidName,
    KeyRequired,
    PayloadTooDeep,
    PayloadTooLarge,
    Unencodable,
    UnknownSignal,
    WakeNotScheduled,
)
from tests.engine.lab import Lab

pytestmark = pytest.mark.anyio

go = Signal("go", int)


async def waits_for_go(run: Run[Any]) -> int:
    return await run.wait(go)


def shop(tmp_path: Path) -> App:
    app = App(f"sqlite:///{tmp_path}/shop.db")
    app.workflow(waits_for_go)
    return app


async def test_an_app_opens_by_itself_and_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC 2.1: the first call opens; TARRY_STORE names the store; what is closed says so."""
    monkeypatch.setenv("TARRY_STORE", f"sqlite:///{tmp_path}/env.db")
    app = App()
    app.workflow(waits_for_go)
    assert (await app.start(waits_for_go)).created
    await app.close()
    with pytest.raises(Closed):
        await app.start(waits_for_go)
    monkeypatch.delenv("TARRY_STORE")
    with pytest.raises(BadStoreUrl):
        App().open()


async def test_senders_need_no_workflow_code(tmp_path: Path) -> None:
    """SPEC 2.3: workflow, signal and channel by their bare names, from a process that has none of the code."""
    async with App(f"sqlite:///{tmp_path}/shop.db") as sender, shop(tmp_path) as app:
        handle = await sender.start("waits_for_go", id="r")
        assert (await sender.signal("r", "go", 4)).status == "buffered"
        async with app.worker():
            assert await handle.result(timeout=10) == 4


def test_sync_code_has_the_same_calls(tmp_path: Path) -> None:
    """SPEC 2.4: Flask, Django and scripts."""
    app = shop(tmp_path)
    sync = app.sync
    handle = sync.start(waits_for_go, id="r")
    assert sync.signal("r", go, 3, key="k").status == "buffered"
    assert sync.drive("r").status is Status.SUCCEEDED
    assert handle.result(timeout=5) == 3
    assert sync.receipt("r", go, "k").status == "delivered"
    sync.close()


def test_sync_app_mirrors_app() -> None:
    """SPEC 2.4: name by name and parameter by parameter."""
    skipped = {"open", "store", "sync", "workflow", "worker", "run_worker", "registry"}
    public = [name for name in dir(App) if not name.startswith("_") and name not in skipped]
    assert set(public) <= set(dir(SyncApp))
    for name in public:
        mine, theirs = getattr(SyncApp, name), getattr(App, name)
        assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters), name


async def test_sync_calls_inside_a_loop_raise_at_once(tmp_path: Path) -> None:
    """SPEC 2.4, S32: an error with advice, not a hang."""
    app = shop(tmp_path)
    with pytest.raises(InRunningLoop, match=r"await app\.start"):
        app.sync.start(waits_for_go)


async def test_a_registered_function_stays_what_it_is(lab: Lab) -> None:
    """SPEC 2.5: callable in plain tests; the same name twice raises at import."""
    assert lab.app.workflow(waits_for_go) is waits_for_go
    with pytest.raises(DuplicateWorkflow):
        lab.app.workflow(waits_for_go)


async def test_the_id_is_the_key(lab: Lab) -> None:
    """SPEC 3.1: the same run again; another workflow or input is a conflict; ids are checked."""

    async def body(run: Run[Any], number: int, text: str = "x") -> None: ...

    lab.register(body)
    lab.register(waits_for_go)
    assert (await lab.app.start(body, 1, id="r")).created
    assert not (await lab.app.start(body, 1, id="r")).created
    for again in (lab.app.start(body, 2, id="r"), lab.app.start(waits_for_go, id="r")):
        with pytest.raises(RunConflict):
            await again
    for wrong in ("", " x", "x" * 201, "a\nb", "a\x00"):
        with pytest.raises(InvalidName):
            await lab.app.start(body, 1, id=wrong)
    with pytest.raises(BadArguments):
        await lab.app.start("body", 1, "x", 3)
    with pytest.raises(RunNotFound):
        await lab.app.handle("nobody").status()


async def test_twenty_starts_of_one_id_are_one_run(lab: Lab) -> None:
    """SPEC 3.1: concurrent starts."""
    lab.register(waits_for_go)
    handles = await asyncio.gather(*(lab.app.start(waits_for_go, id="r") for _ in range(20)))
    assert [handle.created for handle in handles].count(True) == 1


async def test_start_at_and_tags(lab: Lab) -> None:
    """SPEC 3.1: a run begins when it may; tags are bounded."""
    lab.register(waits_for_go)
    await lab.app.start(waits_for_go, id="r", start_at="1h", tags={"order": "o-1"})
    assert (await lab.go_on()).status is Status.READY
    assert (await lab.after("1h")).status is Status.WAITING
    assert [row.id for row in (await lab.app.runs(tag=("order", "o-1"))).rows] == ["r"]
    with pytest.raises(InvalidName):
        await lab.app.start(waits_for_go, tags={str(number): "x" for number in range(33)})


async def test_required_keys_and_actors(lab: Lab) -> None:
    """SPEC 4.3b: by the descriptor, by the declaration on file, and by the App."""
    strict = Signal("strict", int, require_key=True, require_actor=True)

    async def body(run: Run[Any]) -> int:
        return await run.wait(strict)

    lab.register(body, accepts=[strict])
    await lab.app.start(body, id="r")
    for name in (strict, "strict"):
        with pytest.raises(KeyRequired):
            await lab.app.signal("r", name, 1, actor="ann")
        with pytest.raises(ActorRequired):
            await lab.app.signal("r", name, 1, key="k")
    assert (await lab.app.signal("r", strict, 1, key="k", actor="ann")).status == "buffered"


async def test_an_undeclared_name_is_told_with_near_misses(lab: Lab) -> None:
    """SPEC 4.4: UnknownSignal; the delivery is kept."""
    lab.register(waits_for_go, accepts=[go])
    await lab.app.start(waits_for_go, id="r")
    with pytest.raises(UnknownSignal, match="did you mean 'go'"):
        await lab.app.signal("r", "goo", 1)
    assert await lab.letters() == [("goo", "unknown_name")]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.5e-4, 1e300, "1x", "", timedelta.max, 2**63, "P"])
async def test_durations_are_checked_at_the_call(lab: Lab, wrong: Any) -> None:
    """SPEC 6.1, S38: what is absurd is refused where it is given."""

    async def body(run: Run[Any]) -> str:
        try:
            await run.wait(go, timeout=wrong)
        except InvalidDuration:
            return "refused"
        return "?"

    await lab.start(body)
    assert await lab.result() == "refused"


async def test_timers(lab: Lab) -> None:
    """SPEC 6.1, S39, S61: long ones park with the right instant; overdue ones fire at once; naive ones are refused."""

    async def body(run: Run[Any]) -> list[str]:
        told: list[str] = []
        await run.sleep("now", 0)
        await run.sleep("past", -5)
        await run.sleep_until("was", datetime(2020, 1, 1, tzinfo=UTC))
        try:
            await run.sleep_until("naive", datetime(2030, 1, 1))
        except InvalidInstant:
            told.append("naive")
        await run.sleep("long", timedelta(days=3650))
        return told

    paused = await lab.start(body)
    while paused.next_due is not None and paused.next_due <= lab.clock.now:
        paused = await lab.go_on()
    assert paused.next_due == lab.clock.now + timedelta(days=3650)
    await lab.restart()
    await lab.after(timedelta(days=3651))
    assert await lab.result() == ["naive"]


async def test_a_restart_finds_all_waits_and_touches_none(lab: Lab) -> None:
    """SPEC 6.2, S55: recovery executes nothing that has nothing to do."""

    async def body(run: Run[Any]) -> int:
        lab.note("pass")
        return await run.wait(go, timeout="7d")

    await lab.start(body)
    for _ in range(3):
        await lab.restart()
        assert await lab.app.fire_due() == ()
    assert lab.log == ["pass"]
    await lab.app.signal("r", go, 1)
    assert await lab.app.fire_due() == ("r",)
    assert await lab.result() == 1


async def test_a_wake_that_cannot_be_scheduled_is_loud(lab: Lab) -> None:
    """SPEC 6.3, S24: the pause is on file, and the caller is told."""

    class Broken:
        def schedule(self, run_id: str, reason: str, at: datetime) -> None:
            raise ConnectionError("no scheduler")

    async def body(run: Run[Any]) -> None:
        await run.sleep("nap", "1h")

    app = App(lab.app.store, waker=Broken())
    app.workflow(body)
    await app.start(body, id="r")
    with pytest.raises(WakeNotScheduled, match="no scheduler"):
        await app.drive("r")
    assert (await app.run("r")).status is Status.WAITING


async def test_wake_ups_cross_processes_and_survive_lost_datagrams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC 6.4, S23, S51: by a datagram; where it is lost, by the poll."""
    async with shop(tmp_path) as app, App(f"sqlite:///{tmp_path}/shop.db") as sender, app.worker():
        for number, lost in enumerate((False, True)):
            if lost:
                monkeypatch.setattr("tarry.engine.wake.Wakeups._send", lambda self, address, data: None)
            handle = await app.start(waits_for_go, id=f"r{number}")
            while not (await app.waits(run=handle.id)).rows:
                await asyncio.sleep(0)
            await sender.signal(handle.id, go, number)
            assert await handle.result(timeout=10) == number


async def test_a_clock_that_jumps_moves_no_lease_and_fires_nothing_twice(lab: Lab) -> None:
    """SPEC 6.5, S19: leases go by the boot clock."""

    async def body(run: Run[Any]) -> None:
        await run.sleep("nap", "1h")
        await run.step("fired", lab.note, "fired")

    await lab.start(body)
    lab.clock.jump(timedelta(hours=2))
    await lab.go_on()
    lab.clock.jump(timedelta(hours=-2))
    await lab.go_on()
    assert (await lab.status(), lab.log) == (Status.SUCCEEDED, ["fired"])
    async with lab.app.worker():
        lab.clock.jump(timedelta(days=-1))
        assert [row.live for row in await lab.app.workers()] == [True]


async def test_workers_share_a_store_and_do_nothing_twice(tmp_path: Path) -> None:
    """SPEC 11.1: two workers, many runs, each step once."""
    log: list[str] = []

    async def note(run_id: str) -> str:
        log.append(run_id)
        return run_id

    async def body(run: Run[Any]) -> str:
        return await run.step("note", note, run.id)

    async def app() -> App:
        made = App(f"sqlite:///{tmp_path}/shop.db")
        made.workflow(body)
        return made

    one, two = await app(), await app()
    async with one, two, one.worker(concurrency=7), two.worker(concurrency=7):
        handles = await asyncio.gather(*(one.start(body, id=f"r{number}") for number in range(60)))
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert sorted(log) == sorted(f"r{number}" for number in range(60))


async def test_a_blocked_loop_does_not_cost_the_lease_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC 11.2, S17: the heartbeat has a thread of its own; the stack of the stuck loop is logged."""
    log: list[str] = []
    reported = threading.Event()

    class Seen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "blocks_the_loop" in record.getMessage():
                reported.set()

    async def blocks_the_loop() -> str:
        log.append("once")
        reported.wait(20)
        return "done"

    async def body(run: Run[Any]) -> str:
        return await run.step("s", blocks_the_loop)

    handler = Seen()
    logging.getLogger("tarry.worker").addHandler(handler)
    try:
        async with App(f"sqlite:///{tmp_path}/shop.db") as app:
            app.workflow(body)
            async with app.worker(lease_s=0.6, stuck_after_s=0.3):
                assert await (await app.start(body)).result(timeout=20) == "done"
    finally:
        logging.getLogger("tarry.worker").removeHandler(handler)
    assert reported.is_set()
    assert log == ["once"]


async def test_runs_of_workflows_that_are_missing_are_left_alone(lab: Lab) -> None:
    """SPEC 11.5, S35: visibly ready; the others of the batch go on."""

    async def here(run: Run[Any]) -> str:
        return "done"

    lab.register(here)
    await lab.app.start("elsewhere", id="a")
    await lab.app.start(here, id="b")
    await lab.app.fire_due()
    assert (await lab.status("a"), await lab.status("b")) == (Status.READY, Status.SUCCEEDED)


async def test_undecodable_input_blocks_that_run_alone(lab: Lab) -> None:
    """SPEC 1, 13, S12, S35: blocked with the type; after the code is fixed it goes on."""

    async def body(run: Run[Any], number: int) -> int:
        return number

    async def anything(run: Run[Any], number: str) -> str:
        return number

    anything.__name__ = "body"
    await lab.app.start("body", "forty", id="a")
    await lab.app.start("body", 40, id="b")
    lab.register(body)
    await lab.app.fire_due()
    assert ((await lab.app.run("a")).blocked, await lab.result("b")) == ("undecodable", 40)
    await lab.restart(anything)
    await lab.app.retry("a")
    await lab.go_on("a")
    assert await lab.result("a") == "forty"


async def test_lists_are_pages_and_filtered(lab: Lab) -> None:
    """SPEC 12.1: keyset pages; payloads are not shown."""
    lab.register(waits_for_go)
    for number in range(7):
        await lab.app.start(waits_for_go, id=f"r{number}")
        await lab.go_on(f"r{number}")
        lab.clock.advance("1m")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await lab.app.waits(name="go", kind="signal", cursor=cursor, limit=3)
        seen += [row.run for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"r{number}" for number in range(7)]
    assert len((await lab.app.waits(age="3m")).rows) == 4
    assert len((await lab.app.runs(status="waiting", prefix="r1")).rows) == 1
    for wrong in (0, 1001):
        with pytest.raises(BadLimit):
            await lab.app.runs(limit=wrong)


async def test_what_operators_do_is_on_record(lab: Lab) -> None:
    """SPEC 12.4: who, when, what."""
    await lab.start(waits_for_go)
    await lab.app.cancel("r", actor="ann")
    (row,) = lab.app.store.audit("r", None, 10).rows
    assert (row.actor, row.action, row.at_ms) == ("ann", "cancel", lab.clock.now_ms())


async def test_payloads_are_checked_before_anything_is_stored(lab: Lab) -> None:
    """SPEC 13, S46, S78, S80, S15, S16: with the path; nothing is half stored."""
    await lab.start(waits_for_go)
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    wrong: list[tuple[Any, type[Exception]]] = [
        ({"m": [1.0, float("nan")]}, Unencodable),
        ({1: "a"}, Unencodable),
        ("\ud83d", Unencodable),
        (cycle, Exception),
        (deep, PayloadTooDeep),
        ("x" * (1 << 20), PayloadTooLarge),
        (object(), Unencodable),
    ]
    for payload, error in wrong:
        with pytest.raises(error):
            await lab.app.signal("r", "free", payload)
    with pytest.raises(Unencodable, match=r"m\[1\]"):
        await lab.app.signal("r", "free", {"m": [1.0, float("nan")]})
    assert await lab.letters() == []


@pytest.mark.parametrize("value", [2**53 + 1, -(2**70), 10**400, "a\x00b", "\\u0000", {"k\x00": [None]}, 0.1, -0.0])
async def test_payloads_survive_unchanged(lab: Lab, value: Any) -> None:
    """SPEC 13, S15, S79: on every store."""

    async def body(run: Run[Any]) -> Any:
        got: Any = await run.wait(Signal("free"))
        return await run.step("keep", lab.note, got)

    await lab.start(body)
    await lab.app.signal("r", "free", value)
    await lab.go_on()
    assert repr(await lab.result()) == repr(value)


async def test_equal_payloads_are_equal_in_canonical_form(lab: Lab) -> None:
    """SPEC 13, S28: the order of keys and white space do not count; 1 and 1.0 differ."""
    await lab.start(waits_for_go)
    first = await lab.app.signal("r", "free", Json(b'{"a": 1, "b": [2]}'), key="k")
    same = await lab.app.signal("r", "free", {"b": [2], "a": 1}, key="k")
    other = await lab.app.signal("r", "free", {"b": [2], "a": 1.0}, key="k")
    assert [first.status, same.status, other.status] == ["buffered", "duplicate", "conflict"]


async def test_a_poisonous_run_is_blocked_after_five_crashes(lab: Lab) -> None:
    """SPEC 3.9: five workers in a row died over it."""
    from tarry.core.commands import Claim, Reap

    lab.register(waits_for_go)
    await lab.app.start(waits_for_go, id="r")
    writer = lab.app.open().writer
    for number in range(5):
        assert (await writer.commit(Claim("r", f"w{number}"))).run is not None
        await writer.commit(Reap("r", f"w{number}"))
    await lab.go_on()
    assert (await lab.app.run("r")).blocked == "poison"
    await lab.app.retry("r")
    await lab.app.signal("r", go, 1)
    await lab.go_on()
    assert await lab.result() == 1


async def test_a_worker_that_leaves_lets_go_at_once(tmp_path: Path) -> None:
    """SPEC 11.4, S84: a run in the middle of a long step is ready for others, and never cancelled."""
    running = asyncio.Event()

    async def long() -> str:
        if not running.is_set():
            running.set()
            await asyncio.Event().wait()
        return "done"

    async def body(run: Run[Any]) -> str:
        return await run.step("long", long)

    async with App(f"sqlite:///{tmp_path}/shop.db") as app:
        app.workflow(body)
        handle = await app.start(body)
        async with app.worker() as first:
            first._options = type(first._options)(drain_s=0)
            await running.wait()
        assert await handle.status() is Status.READY
        async with app.worker():
            assert await handle.result(timeout=10) == "done"


async def test_many_senders_one_winner(tmp_path: Path) -> None:
    """SPEC 4.8, S58: of many at once exactly one is delivered; all others are told who won."""
    async with shop(tmp_path) as app, App(f"sqlite:///{tmp_path}/shop.db") as other, app.worker():
        handle = await app.start(waits_for_go, id="r")
        while not (await app.waits(run="r")).rows:
            await asyncio.sleep(0)
        senders = [app, other]
        sent = (senders[n % 2].signal("r", go, n, key=f"k{n}") for n in range(40))
        receipts = await asyncio.gather(*sent)
        winners = [receipt for receipt in receipts if receipt.accepted]
        assert len(winners) == 1
        assert {receipt.payload for receipt in receipts} == {winners[0].payload}
        assert await handle.result(timeout=10) == int(winners[0].payload or b"-1")


async def test_a_failed_run_says_so(lab: Lab) -> None:
    """SPEC 2.2: RunFailed carries status and error."""

    async def body(run: Run[Any]) -> None:
        raise LookupError("nothing there")

    await lab.start(body)
    with pytest.raises(RunFailed, match=r"failed: .*LookupError: nothing there") as told:
        await lab.result()
    assert told.value.fields["status"] == "failed"

"""Several processes on one file: they take turns, wait no longer than they say, and may die at any moment."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tarry.clock import elapsed_s
from tarry.errors import StoreBusy
from tests.house.tree import ROOT
from tests.store import crowd, town

Process = subprocess.Popen[str]


@contextmanager
def process(name: str, path: Path, *more: str) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.store.crowd", name, str(path), *more]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def heard(running: Process) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def tell(running: Process) -> None:
    assert running.stdin is not None
    running.stdin.write("go on\n")
    running.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a few runs in it."""
    with closing(crowd.opened(str(tmp_path / "t.db"))) as store:
        town.commit(store, town.start("a"), *(town.start(f"run-{n}") for n in range(20)))
    return tmp_path / "t.db"


@pytest.mark.parametrize("who", ["hold", "stranger"])
def test_a_turn_that_does_not_come_is_told_in_time(path: Path, who: str):
    """S20: bounded, whether one of us holds it or a shell; not waiting at all is possible too."""
    with closing(crowd.opened(str(path), patience_s=0.2)) as store, process(who, path) as other:
        assert heard(other) == "inside"
        assert store.begin(wait=False) is None
        began = elapsed_s()
        with pytest.raises(StoreBusy, match=r"0\.2 s by another process. Nothing was written"):
            store.begin()
        assert 0.1 < elapsed_s() - began < 5
        assert store.run("a") is not None
        tell(other)
        other.wait()
        town.commit(store, town.message("a", "k1"))
        tx = store.begin(wait=False)
        assert tx is not None
        with tx:
            pass


def test_a_process_that_dies_inside_leaves_the_turn(path: Path):
    with closing(crowd.opened(str(path), patience_s=20)) as store, process("hold", path) as other:
        assert heard(other) == "inside"
        other.kill()
        assert town.commit(store, town.message("a", "k1"))[0].accepted


def test_many_writers_and_a_reader_and_nobody_is_refused(path: Path):
    """S20: no lock reaches a caller, nothing is lost, nothing is taken twice."""
    with process("look", path) as reader:
        assert heard(reader) == "reading"
        crew = [process("deliver", path, f"p{n}", "4", "40") for n in range(3)]
        with crew[0] as one, crew[1] as two, crew[2] as three:
            assert [heard(each) for each in (one, two, three)] == ["[]"] * 3
        tell(reader)
        assert reader.wait() == 0
    with closing(crowd.opened(str(path))) as store:
        keys = [row.key for n in range(20) for row in store.arrivals(f"run-{n}", None, 1000).rows]
    assert len(keys) == len(set(keys)) == 8 + 3 * 4 * 32


def test_a_lone_writer_is_not_starved_by_busy_ones(path: Path):
    """Its turn comes after at most a few of theirs: without the turnstile it waits for seconds."""
    with closing(crowd.opened(str(path))) as store, process("bulk", path) as one, process("bulk", path) as two:
        assert [heard(one), heard(two)] == ["writing", "writing"]
        began = elapsed_s()
        for n in range(20):
            town.commit(store, town.message("a", f"k{n}"))
        took = elapsed_s() - began
        for each in (one, two):
            tell(each)
        batches = [int(heard(each)) for each in (one, two)]
    assert sum(batches) > 0
    assert took < 10


def test_killed_at_any_moment_nothing_acknowledged_is_lost(path: Path):
    """SPEC 11.7: each number was said after its commit, and the process was killed right then."""
    for life in range(3):
        names = [f"c{life}-{n}" for n in range(2)]
        with ExitStack() as stack:
            crew = {name: stack.enter_context(process("number", path, name)) for name in names}
            for _ in range(5 + 7 * life):
                assert all(heard(each) for each in crew.values())
            for each in crew.values():
                each.kill()
            said = {name: 4 + 7 * life + len(each.stdout.readlines()) for name, each in crew.items() if each.stdout}
        with closing(crowd.opened(str(path))) as store:
            rows = crowd.pages(store)
            assert store._links.writer().pragma("integrity_check") == "ok"
        for name, last in said.items():
            kept = {row.key for row in rows if row.name == name}
            assert {f"{name}-{n}" for n in range(last + 1)} <= kept
            assert len(kept) <= last + 2


def test_forks_share_no_handle(path: Path):
    """S75: forked amid reading and writing threads; both sides go on, and nothing is lost."""
    with process("fork", path) as forking:
        assert heard(forking) == str(15 * 20 + 1)
        assert heard(forking) == "ok"
        assert forking.wait() == 0


def test_the_log_stays_small_beside_a_reader_and_is_gone_when_idle(path: Path):
    """S76"""
    with closing(crowd.opened(str(path), tuning=crowd.SMALL_LOG)) as store, process("look", path) as reader:
        assert heard(reader) == "reading"
        largest = 0
        for n in range(400):
            town.commit(store, town.message("a", f"k{n}", payload=b'"' + b"%04d" % n * 300 + b'"'))
            largest = max(largest, os.path.getsize(f"{path}-wal"))
        assert largest < 4 << 20
        tell(reader)
        reader.wait()
        store.tidy()
        assert os.path.getsize(f"{path}-wal") > 0
        store.tidy()
        assert os.path.getsize(f"{path}-wal") == 0
        town.commit(store, town.message("a", "after"))


def test_a_long_log_of_a_killed_process_is_read_at_once(path: Path):
    """S76: nothing is lost, and opening does not take long."""
    with process("number", path, "c") as writing:
        said = [int(heard(writing)) for _ in range(300)]
        writing.kill()
    assert os.path.getsize(f"{path}-wal") > 1 << 20
    began = elapsed_s()
    with closing(crowd.opened(str(path))) as store:
        assert elapsed_s() - began < 2
        assert {row.key for row in crowd.pages(store)} >= {f"c-{n}" for n in said}

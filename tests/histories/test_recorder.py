"""What is written is read back as it was, whoever was killed while writing."""

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from tarry.testing.history import (
    Acked,
    Done,
    Effect,
    Ended,
    Event,
    Fail,
    Healed,
    Info,
    Invoke,
    Ok,
    Outcome,
    Pass,
    Received,
    Recorder,
    read,
)

EVENTS: list[Event] = [
    Invoke(1, "r", "signal", "paid", '{"amount":5}', "k\n\x00", "bö"),
    Ok(1, "delivered", None, '{"amount":5}', 7),
    Fail(2, "RunNotFound"),
    Info(3, "cut"),
    Outcome("r", "paid", "payload", "1", "s/", 2, 10, 9, "p"),
    Effect("r", "ship", "key", 2, 3, 44, "s/", True),
    Done("r", "ship", "key", 2, 3, "s/"),
    Received("r", "c", "k", 4, "1", "p", True),
    Acked("r", "c", "k", 4, "p"),
    Pass("r", "p", "w", 3, ((1, "a"), (2, "b")), (("c", 4),)),
    Ended("r", "succeeded", "1"),
    Healed(),
]


def clock(*monos: int):
    ticks = iter(monos) if monos else count()
    return lambda: (0, next(ticks))


def test_every_event_comes_back(tmp_path: Path):
    with Recorder(tmp_path / "a.jsonl", "p", clock=clock()) as recorder:
        for event in EVENTS:
            recorder.write(event)
    history = read([tmp_path / "a.jsonl"])
    assert [line.event for line in history.lines] == EVENTS
    assert [line.mono_ns for line in history.lines] == list(range(len(EVENTS)))
    assert {line.process for line in history.lines} == {"p"}
    assert history.torn == 0


def test_files_are_merged_by_the_monotonic_clock(tmp_path: Path):
    for name, monos in [("a", (1, 5, 9)), ("b", (2, 6))]:
        with Recorder(tmp_path / name, name, clock=clock(*monos)) as recorder:
            for n in monos:
                recorder.write(Ended(f"{name}{n}", "succeeded"))
    lines = read(tmp_path.iterdir()).lines
    assert [line.event.run for line in lines if isinstance(line.event, Ended)] == ["a1", "b2", "a5", "b6", "a9"]


def test_invoke_numbers_its_deliveries(tmp_path: Path):
    with Recorder(tmp_path / "a", "p") as recorder:
        assert [recorder.invoke("r", "s", "1"), recorder.invoke("r", "c", "2", kind="channel", key="k")] == [1, 2]
    first, second = (line.event for line in read([tmp_path / "a"]).lines)
    assert first == Invoke(1, "r", "signal", "s", "1")
    assert second == Invoke(2, "r", "channel", "c", "2", "k")


@pytest.mark.parametrize("left", [1, 30, 60])
def test_a_torn_line_is_counted_and_hides_no_other(tmp_path: Path, left: int):
    """Two processes share a ledger; one is killed in the middle of a line."""
    ledger = tmp_path / "ledger"
    with Recorder(ledger, "a") as recorder:
        recorder.write(Effect("r", "ship", "k"))
        whole = ledger.stat().st_size
        recorder.write(Effect("r", "bill", "k2"))
    os.truncate(ledger, whole + 1 + left)
    assert read([ledger]).torn == 1
    with Recorder(ledger, "b") as recorder:
        recorder.write(Done("r", "ship", "k"))
    history = read([ledger])
    assert [line.event for line in history.lines] == [Effect("r", "ship", "k"), Done("r", "ship", "k")]
    assert history.torn == 1


def test_a_line_that_the_disk_did_not_take_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Recorder(tmp_path / "a") as recorder:
        monkeypatch.setattr(os, "write", lambda _file, data: len(data) - 1)
        with pytest.raises(OSError, match="cut short"):
            recorder.write(Healed())


def test_two_recorders_have_two_names(tmp_path: Path):
    assert Recorder(tmp_path / "a").process != Recorder(tmp_path / "a").process


WRITER = """
import sys
from tarry.testing.history import Ended, Recorder
recorder = Recorder(sys.argv[1])
for n in range(1_000_000):
    recorder.write(Ended(str(n), "succeeded"))
    if n == 50:
        print("written", flush=True)
"""


def test_kill_leaves_whole_lines_of_all_processes(tmp_path: Path):
    """Three processes append to one file; all are killed with -9 while they write."""
    ledger = tmp_path / "ledger"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(ledger)], stdout=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        with writer.stdout:
            assert writer.stdout.readline() == b"written\n"
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    history = read([ledger])
    assert history.torn <= len(writers)
    for process in {line.process for line in history.lines}:
        runs = [int(line.event.run) for line in history.lines if line.process == process]  # type: ignore[union-attr]
        assert len(runs) > 50
        assert runs == list(range(len(runs)))

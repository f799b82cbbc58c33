"""The turnstile by itself: two of them on one file stand for two processes, as the kernel sees them."""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarry.store.turnstile import Turnstile

Make = Callable[[], Turnstile]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Turnstile] = []

    def new() -> Turnstile:
        made.append(Turnstile(str(tmp_path / "turn")))
        return made[-1]

    yield new
    for turnstile in made:
        turnstile.close()


def test_one_at_a_time(make: Make):
    one, two = make(), make()
    assert one.enter(0)
    assert not two.enter(0)
    one.leave()
    assert two.enter(0)
    two.leave()


def test_who_waits_comes_in_when_the_other_leaves(make: Make):
    one, two = make(), make()
    assert one.enter(0)
    inside: list[bool] = []
    waiting = threading.Thread(target=lambda: inside.append(two.enter(60)))
    waiting.start()
    assert not inside
    one.leave()
    waiting.join()
    assert inside == [True]
    assert not one.enter(0)
    two.leave()


def test_patience_ends_and_the_place_in_line_is_given_up(make: Make):
    """Nobody is kept out by one that waits no longer, whoever of the two behind it comes first."""
    one, two, three = make(), make(), make()
    assert one.enter(0)
    assert not two.enter(0.01)
    inside: list[bool] = []
    behind = threading.Thread(target=lambda: (inside.append(three.enter(20)), three.leave()))
    behind.start()
    one.leave()
    behind.join()
    assert inside == [True]
    assert one.enter(20)
    one.leave()
    assert two.enter(20)
    two.leave()


def test_impatient_or_not_never_two_are_inside(make: Make):
    """Short patience makes them leave the line and come back to it at every possible moment."""
    lock = threading.Lock()
    most = entered = 0

    def come_and_go(turnstile: Turnstile, patience_s: float) -> None:
        nonlocal most, entered
        for _ in range(150):
            if turnstile.enter(patience_s):
                alone = lock.acquire(blocking=False)
                most = max(most, 1 if alone else 2)
                entered += 1
                os.sched_yield()
                if alone:
                    lock.release()
                turnstile.leave()

    crew = [threading.Thread(target=come_and_go, args=(make(), n * 0.0002)) for n in range(5)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert most == 1
    assert entered > 150


def test_a_place_in_line_is_kept_for_the_next_caller(make: Make):
    one, two = make(), make()
    assert one.enter(0)
    assert not two.enter(0.01)
    inside: list[bool] = []
    again = threading.Thread(target=lambda: inside.append(two.enter(60)))
    again.start()
    one.leave()
    again.join()
    assert inside == [True]
    two.leave()


def test_nobody_overtakes_its_own_place_in_line(make: Make, monkeypatch: pytest.MonkeyPatch):
    """The lock is one for caller and thread: the thread, when it comes to its turn, would let go of what the
    caller has taken past it."""
    one, two = make(), make()
    assert one.enter(0)
    come = threading.Event()
    real = fcntl.flock

    def held_back(file: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            come.wait(20)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", held_back)
    assert not two.enter(0.01)
    one.leave()
    assert not two.enter(0.01)
    come.set()
    assert two.enter(20)
    assert not one.enter(0)
    two.leave()


def test_closed_in_line_it_holds_up_nobody(make: Make):
    one, two, three = make(), make(), make()
    assert one.enter(0)
    assert not two.enter(0.01)
    two.close()
    one.leave()
    assert three.enter(60)
    three.leave()


def test_it_is_private_and_not_inherited(tmp_path: Path):
    turnstile = Turnstile(str(tmp_path / "turn"))
    assert (tmp_path / "turn").stat().st_mode & 0o777 == 0o600
    assert not os.get_inheritable(turnstile._file)
    turnstile.close()

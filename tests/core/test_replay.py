"""The order in which a pass gets its outcomes (SPEC 3.2): placed ones by entry, then the rest by arrival."""

from hypothesis import given
from hypothesis import strategies as st

from tarry.core.replay import Replay
from tarry.model import Entry, EntryId, EntryKind, Outcome


def entry(number: int, name: str = "a", kind: EntryKind = EntryKind.STEP, scope: str = "") -> Entry:
    return Entry("r", number, kind, scope, name, number, Outcome.OK)


def drain(replay: Replay[str]) -> list[str]:
    return list(iter(replay.next, None))


def test_entries_are_found_by_name_never_by_position():
    """SPEC 3.3."""
    replay: Replay[str] = Replay([entry(1, "a"), entry(2, "b")])
    assert replay.recorded(EntryId(EntryKind.STEP, "", "b", 2)) == entry(2, "b")
    assert replay.recorded(EntryId(EntryKind.STEP, "", "b", 1)) is None
    assert replay.recorded(EntryId(EntryKind.WAIT, "", "b", 2)) is None


def test_a_steps_attempts_are_its_own_oldest_first():
    """SPEC 3.4b, 3.5."""
    rows = [entry(number, "a", kind) for number, kind in ((1, EntryKind.INTENT), (2, EntryKind.ATTEMPT))]
    replay: Replay[str] = Replay([*rows, entry(3, "a", EntryKind.INTENT), entry(4, "a", EntryKind.INTENT, "s/")])
    assert [found.no for found in replay.attempts("", "a", EntryKind.INTENT)] == [1, 3]
    assert [found.no for found in replay.attempts("", "a", EntryKind.RESOLVE)] == []
    assert [found.no for found in replay.attempts("", "b", EntryKind.INTENT)] == []


def test_new_entries_are_numbered_after_those_on_file():
    replay: Replay[str] = Replay([entry(3), entry(7)])
    assert (replay.last, replay.next_number(), replay.next_number(), replay.last) == (7, 8, 9, 9)
    assert Replay[str]([]).next_number() == 1


@given(st.permutations([("placed", 1), ("placed", 2), ("placed", 3), ("arrived", 1), ("arrived", 2), ("arrived", 9)]))
def test_lowest_number_first_whatever_order_the_calls_were_met_in(met: list[tuple[str, int]]):
    replay: Replay[str] = Replay([entry(3)])
    for how, number in met:
        (replay.placed if how == "placed" else replay.arrived)(number, f"{how} {number}")
    assert drain(replay) == ["placed 1", "placed 2", "placed 3", "arrived 1", "arrived 2", "arrived 9"]
    assert not replay.queued()


def test_of_one_number_the_call_that_was_met_first():
    """SPEC 4.12: two waits on one latch."""
    replay: Replay[str] = Replay([])
    for call in ("b", "a", "c"):
        replay.arrived(5, call)
    assert drain(replay) == ["b", "a", "c"]


def test_nothing_is_given_back_before_it_is_durable():
    """SPEC 3.2: and nothing overtakes it."""
    replay: Replay[str] = Replay([entry(1)])
    number = replay.next_number()
    replay.placed(number, "new")
    replay.arrived(1, "signal")
    assert replay.next() is None
    assert replay.queued()
    replay.durable(number)
    replay.durable(1)
    assert drain(replay) == ["new", "signal"]


def test_a_run_that_is_cancelled_takes_nothing_new_in():
    """SPEC 3.12."""
    replay: Replay[str] = Replay([entry(1)])
    replay.arrived(1, "signal")
    replay.placed(1, "step")
    assert replay.queued(placed_only=True)
    assert replay.next(placed_only=True) == "step"
    assert replay.next(placed_only=True) is None
    assert not replay.queued(placed_only=True)
    assert replay.queued()


def test_a_call_that_was_given_up_gets_nothing():
    replay: Replay[str] = Replay([entry(9)])
    calls = [f"call {number}" for number in range(9, 0, -1)]
    for number, call in zip(range(9, 0, -1), calls, strict=True):
        replay.placed(number, call)
    replay.forget(calls[4])
    replay.forget("nobody")
    assert drain(replay) == [call for call in reversed(calls) if call != calls[4]]

"""One pass's view of one channel (SPEC 5.1-5.3)."""

from collections.abc import Sequence

import pytest

from tarry.core.commands import Want
from tarry.core.inbox import Inbox
from tarry.core.journal import PAGE, first_want
from tarry.errors import NotAcked, NotOldest
from tarry.model import Arrival, ArrivalKind, ArrivalStatus, Entry, EntryKind, Outcome, Slot


def told(number: int, status: ArrivalStatus = ArrivalStatus.BUFFERED) -> Arrival:
    return Arrival("r", number, ArrivalKind.CHANNEL, "ev", f"k{number}", b"1", None, status)


def inbox(acked: int = 0, numbers: Sequence[int] = (), closed: str | None = None) -> Inbox:
    return Inbox(Slot("r", ArrivalKind.CHANNEL, "ev", acked, closed=closed), [told(number) for number in numbers])


def test_a_pass_reads_from_the_beginning_and_acks_on_file_are_no_ops():
    """SPEC 5.2."""
    box = inbox(acked=2, numbers=[1, 2, 5])
    first, second = box.take(), box.take()
    box.check_acked()
    assert (box.ack(first), box.ack(second)) == (False, False)
    third = box.take()
    assert (third.no, box.ack(third), box.ack(third), box.acked) == (5, True, False, 5)


def test_an_ack_on_file_is_a_no_op_where_only_the_key_is_at_hand_too():
    """SPEC 5.2: a replay finds by its key what was acked before it began."""
    box = inbox(acked=1, numbers=[1, 2])
    box.take()
    found = box.taken("k1")
    assert found is not None
    assert not box.ack(found)


def test_going_on_without_an_ack_is_refused():
    """SPEC 5.2."""
    box = inbox(numbers=[1, 2])
    message = box.take()
    with pytest.raises(NotAcked, match="k1"):
        box.check_acked()
    box.ack(message)
    box.check_acked()


def test_only_the_oldest_is_acked():
    """SPEC 5.2."""
    box = inbox(numbers=[1, 2])
    box.take()
    second = box.take()
    with pytest.raises(NotOldest, match="ack k1"):
        box.ack(second)
    with pytest.raises(NotOldest, match="ack the next one"):
        inbox(numbers=[1]).ack(told(1))
    assert box.taken("k2") == second
    assert box.taken("k9") is None


def test_what_is_known_is_learnt_once_and_what_was_refused_never():
    box = inbox(numbers=[1])
    box.learn([told(1), told(2, ArrivalStatus.INVALID), told(3)], closed=False)
    assert [box.take().no, box.take().no] == [1, 3]
    assert box.peek() is None
    assert box.want() == Want("ev", 3, PAGE)


def test_the_cursor_is_before_the_next_message_or_after_the_last():
    box = inbox(numbers=[4, 7])
    assert box.cursor == 3
    box.take()
    assert box.cursor == 6
    box.take()
    assert box.cursor == 7


def test_a_fold_begins_after_what_is_acked():
    """SPEC 5.3: also where it knows no message yet."""
    box = inbox(acked=4, numbers=[2, 4, 6])
    box.skip_acked()
    assert box.peek() == told(6)
    box = inbox(acked=4)
    box.skip_acked()
    assert box.want().after == 4


def test_a_closed_channel_stays_closed():
    """SPEC 5.6."""
    box = inbox(closed="closed", numbers=[1])
    assert box.closed
    box.learn([], closed=False)
    assert box.closed
    box = inbox()
    box.learn([], closed=True)
    assert box.closed


def test_a_full_page_asks_for_another():
    box = inbox(numbers=range(1, PAGE + 1))
    assert box.hungry
    box.learn([told(PAGE + 1)], closed=False)
    assert not box.hungry


def test_a_race_has_decided_which_message_it_is():
    """SPEC 4.9: those before it were handed out, or refused, before."""
    box = inbox(acked=1, numbers=[1, 3])
    box.hungry = True
    box.take_number(told(3))
    assert (box.peek(), box.hungry) == (None, True)
    assert box.taken("k3") == told(3)
    box.take_number(told(8))
    assert box.want().after == 8


def test_a_refused_message_is_not_seen():
    """SPEC 4.6."""
    box = inbox(numbers=[1, 2])
    box.drop()
    assert box.peek() == told(2)
    box.check_acked()


def test_a_message_that_won_a_race_and_was_refused_is_not_seen_again():
    """SPEC 4.6, 4.9: known to the pass before the race or not; it owes no ack."""
    box = inbox(numbers=[1, 2])
    box.refuse_number(told(1))
    assert box.peek() == told(2)
    box.refuse_number(told(7))
    assert (box.peek(), box.want().after, box.oldest_unacked()) == (None, 7, None)


def entry(number: int, kind: EntryKind, name: str) -> Entry:
    return Entry("r", number, kind, "", name, 0, Outcome.OK)


def test_where_a_pass_begins_to_read():
    """SPEC 5.2, 5.3: a plain loop gets all that it ever received and a page more; a fold what is new."""
    slot = Slot("r", ArrivalKind.CHANNEL, "ev", 7)
    journal = [
        entry(1, EntryKind.RECEIVE, "ev"),
        entry(2, EntryKind.RECEIVE, "other"),
        entry(3, EntryKind.FIRST, "race"),
        entry(4, EntryKind.STEP, "ev"),
    ]
    assert first_want(slot, journal) == Want("ev", 0, 2 + PAGE)
    assert first_want(Slot("r", ArrivalKind.CHANNEL, "ev", 7, b"1"), []) == Want("ev", 7, PAGE)

"""Channels: an ordered stream per run, kept in the order of commits (SPEC 5)."""

from tarry.core.commands import CloseChannel, Park, Want
from tarry.model import ArrivalStatus, ReceiptStatus, Status, WaitKind
from tarry.testing.conformance_driver import message, opens, wait
from tests.core.desk import desk


def test_messages_are_kept_in_the_order_of_commits():
    """SPEC 5.1, 5.5: and a name never sees another one's."""
    driver = desk()
    driver.begin()
    sent = [message("a", key="1"), message("ab", key="1"), message("a", key="2")]
    assert [receipt.number for receipt in driver.batch(*sent)] == [1, 2, 3]
    told = driver.turn("r", wants=[Want("a", 0)])
    assert [found.no for found in told.pages["a"]] == [1, 3]


def test_a_redelivered_message_is_a_no_op_and_the_first_payload_wins():
    """SPEC 5.1."""
    driver = desk()
    driver.begin()
    driver.do(message())
    assert driver.do(message()).status is ReceiptStatus.DUPLICATE
    changed = driver.do(message(payload=b"2"))
    assert (changed.status, changed.payload) == (ReceiptStatus.CONFLICT, b"1")
    assert (driver.run().buffered, driver.run().buffered_bytes) == (1, 1)


def test_a_message_wakes_a_reader_and_stays_on_file():
    """SPEC 5.2: its readers go by cursor, so it settles no wait."""
    driver = desk()
    driver.begin()
    reading = wait("ev", WaitKind.CHANNEL)
    driver.turn("r", opens(reading), end=Park(), wants=[Want("ev", 0)])
    receipt = driver.do(message())
    assert receipt.status is ReceiptStatus.DELIVERED
    assert driver.run().status is Status.READY
    assert list(driver.open_waits()) == [reading.id]
    assert driver.arrivals()[0].status is ArrivalStatus.BUFFERED


def test_a_closed_channel_takes_nothing_more():
    """SPEC 5.6."""
    driver = desk()
    driver.begin()
    driver.do(CloseChannel("r", "ev"))
    assert driver.do(message()).reason == "closed"

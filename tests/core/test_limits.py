"""What is bounded, so that no sender can fill a run (SPEC 13): a clear error, and nothing is lost."""

import sys
from dataclasses import replace

import pytest

from tarry.core.commands import Park, Want
from tarry.errors import LimitExceeded
from tarry.model import Limits, ReceiptStatus, WaitKind
from tarry.testing.conformance_driver import message, opens, signal, wait
from tests.core.desk import desk


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(Limits(), buffered_bytes=10, buffered_names=2, open_waits=2)
    for module in ("deliver", "wait"):
        monkeypatch.setattr(sys.modules[f"tarry.core.decide.{module}"], "LIMITS", limits)


@pytest.mark.usefixtures("small")
def test_what_a_run_buffers_is_bounded_in_bytes():
    """SPEC 13: a clear error, and nothing is lost."""
    driver = desk()
    driver.begin()
    driver.do(message(payload=b'"1234567"'))
    with pytest.raises(LimitExceeded, match="buffered bytes"):
        driver.do(message(payload=b"12", key="k2"))
    assert driver.do(message(payload=b"1", key="k2")).status is ReceiptStatus.BUFFERED


@pytest.mark.usefixtures("small")
def test_undeclared_names_are_bounded_in_number():
    """SPEC 13."""
    driver = desk()
    driver.begin()
    driver.do(signal("a"))
    driver.do(signal("b"))
    with pytest.raises(LimitExceeded, match="buffered names"):
        driver.do(signal("c"))
    driver.turn("r", opens(wait("a")))
    assert driver.do(signal("c")).status is ReceiptStatus.BUFFERED


@pytest.mark.usefixtures("small")
def test_an_open_wait_comes_before_the_limits():
    """SPEC 4.4: what a run waits for always gets through."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait()), end=Park())
    driver.do(message(payload=b'"12345678"'))
    assert driver.do(signal(payload=b'"12345678"')).status is ReceiptStatus.DELIVERED


@pytest.mark.usefixtures("small")
def test_a_reader_that_never_comes_does_not_lift_the_limit():
    """SPEC 13: once its reader is woken, a channel fills up like any other."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait("ev", WaitKind.CHANNEL)), end=Park(), wants=[Want("ev", 0)])
    driver.do(message(payload=b'"12345678"'))
    with pytest.raises(LimitExceeded, match="buffered bytes"):
        driver.do(message(payload=b'"12345678"', key="k2"))


@pytest.mark.usefixtures("small")
def test_open_waits_are_bounded():
    """SPEC 13: the turn that asks for too many writes nothing."""
    driver = desk()
    driver.begin()
    driver.turn("r", opens(wait("a")), opens(wait("b")))
    with pytest.raises(LimitExceeded, match="open waits"):
        driver.turn("r", opens(wait("c")))
    assert len(driver.open_waits()) == 2

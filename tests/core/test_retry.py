"""When a failed step is tried again (SPEC 3.4b)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.retry import ONCE, Retry, policy
from tarry.errors import InvalidDuration


def test_a_number_means_that_many_more_times():
    assert policy(None) is ONCE
    assert ONCE.delay_ms(1, "s") is None
    given_back = policy(2)
    assert [given_back.delay_ms(attempt, "s") is None for attempt in (1, 2, 3)] == [False, False, True]
    own = Retry(attempts=9)
    assert policy(own) is own


def test_delays_grow_up_to_the_longest():
    steady = Retry(attempts=10, first="100ms", factor=3, max=1, jitter=0)
    assert [steady.delay_ms(attempt, "s") for attempt in range(1, 5)] == [100, 300, 900, 1000]
    assert Retry(attempts=10**9, factor=10.0, jitter=0).delay_ms(10**6, "s") == 300_000


@given(st.integers(1, 40), st.text(), st.floats(0, 1))
def test_the_jitter_comes_from_the_names(attempt: int, seed: str, jitter: float):
    """A replay computes the instant that the first pass did; it only ever shortens, and never to nothing."""
    retry = Retry(attempts=50, first=timedelta(milliseconds=1), max="1h", jitter=jitter)
    plain = Retry(attempts=50, first=timedelta(milliseconds=1), max="1h", jitter=0)
    delay, longest = retry.delay_ms(attempt, seed), plain.delay_ms(attempt, seed)
    assert delay is not None
    assert longest is not None
    assert max(1, round(longest * (1 - jitter))) <= delay <= longest
    assert retry.delay_ms(attempt, seed) == delay


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"factor": 0.5}, {"jitter": 1.5}, {"jitter": -0.1}])
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match="Retry needs"):
        Retry(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"first": "soon"}, {"max": 0}])
def test_so_is_a_delay_that_is_none(wrong: dict[str, str | int]):
    with pytest.raises(InvalidDuration):
        Retry(**wrong)  # type: ignore[arg-type]

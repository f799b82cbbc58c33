"""The rules H1 to H7 and the search over all orders agree on what a latch may have shown.

Two programs that know nothing of each other: one compares numbers, key by key, in one go; the other tries every
order. Where they differ, one of them is wrong. The histories are small and random, half of them spoilt.
"""

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarry.testing.history import check, linearizable
from tests.histories.latches import NAME, RUN, Sample, spoil, true_sample
from tests.histories.scene import Scene

OF_A_LATCH = {"H1", "H2", "H3", "H4", "H5", "H6", "H7"}
IN_CI, MANY = 2_000, int(os.environ.get("TARRY_HISTORIES", "100000"))


def broken(sample: Sample) -> set[str]:
    report = check(sample.history(), sample.final, lease_s=1, poll_s=1)
    return {violation.rule for violation in report.violations} & OF_A_LATCH


def explained(sample: Sample) -> bool:
    return linearizable(sample.history(), sample.final, RUN, NAME)


def any_sample(chance: Random) -> tuple[Sample, int]:
    sample = true_sample(chance, chance.randrange(1, 8))
    spoilt = chance.randrange(3)
    for _ in range(spoilt):
        sample = spoil(chance, sample)
    return sample, spoilt


@settings(max_examples=IN_CI // 4)
@given(st.randoms(use_true_random=False))
def test_they_agree(chance: Random):
    """Hypothesis shrinks what they do not agree on to the fewest deliveries."""
    sample, _ = any_sample(chance)
    assert explained(sample) == (not broken(sample))


def test_neither_says_the_same_of_everything():
    """What a right latch shows is right, and each rule is alone in seeing some spoilt history."""
    right, alone = 0, Counter[str]()
    for seed in range(IN_CI):
        sample, spoilt = any_sample(Random(seed))
        rules = broken(sample)
        assert explained(sample) == (not rules), f"seed {seed}"
        assert spoilt or not rules, f"seed {seed}"
        right += not rules
        alone.update(rules if len(rules) == 1 else ())
    assert IN_CI / 3 < right < IN_CI * 2 / 3
    assert set(alone) == OF_A_LATCH


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_they_agree_on_many():
    """TARRY_HISTORIES says on how many."""
    for seed in range(IN_CI, IN_CI + MANY):
        sample, _ = any_sample(Random(seed))
        assert explained(sample) == (not broken(sample)), f"seed {seed}"


def latch(scene: Scene) -> bool:
    final = scene.final()
    assert final is not None
    return linearizable(scene.history(), final, RUN, NAME)


def test_the_search_finds_an_order():
    """The second was invoked first and answered last; it came after the first nevertheless."""
    scene = Scene().run().deliver(1, 9, "b", "2", "already_settled", retained="1")
    scene.deliver(2, 4, "a", "1", "delivered").arrival(1, "a", "1")
    assert latch(scene.take(8, "payload", "1"))


def test_the_search_puts_an_unknown_one_where_it_fits_or_nowhere():
    scene = Scene().run().deliver(1, None, "a", "1", None).deliver(2, 3, "a", "1", "not_waiting")
    assert latch(scene)
    scene.deliver(5, 6, "a", "1", "duplicate", retained="1").arrival(1, "a", "1")
    assert latch(scene)
    assert not latch(scene.deliver(7, 8, "a", "1", "not_waiting"))


@pytest.mark.parametrize(
    ("key", "payload", "status", "retained"),
    [
        ("b", "2", "delivered", None),
        ("a", "1", "conflict", "1"),
        ("a", "2", "duplicate", "2"),
        ("a", "1", "already_settled", "1"),
        ("b", "2", "duplicate", "2"),
        ("b", "2", "already_settled", "2"),
        ("b", "2", "not_waiting", None),
        ("b", "2", "invalid", None),
        ("b", "2", "stale", None),
    ],
)
def test_the_search_refuses_what_no_order_explains(key: str, payload: str, status: str, retained: str | None):
    scene = Scene().run().deliver(1, 3, "a", "1", "delivered").arrival(1, "a", "1")
    assert latch(scene)
    assert not latch(scene.deliver(5, 6, key, payload, status, retained=retained))


def test_the_search_knows_the_timeout():
    scene = Scene().run().deliver(5, 6, "a", "1", "stale").take(9, "timeout").entry(1, "wait", NAME, "timeout")
    assert latch(scene)
    assert not latch(scene.deliver(1, None, "b", "2", None).take(9, "payload", "2"))

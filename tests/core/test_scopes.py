"""Scopes: paths that names cannot forge (SPEC 3.6, 5.3)."""

from hypothesis import example, given
from hypothesis import strategies as st

from tarry.core import scopes

nasty = st.text(alphabet="ab%/:2F53A", min_size=1, max_size=6)


@given(nasty, nasty)
@example("a/b", "a%2Fb")
@example("a", "ab")
def test_two_names_are_two_scopes(one: str, other: str):
    for of in (scopes.of_step, scopes.of_fold, lambda outer, name: scopes.of_message(outer, "ev", name)):
        assert (of("", one) == of("", other)) == (one == other)


@given(nasty, nasty, nasty)
def test_a_folds_prefix_covers_its_own_rounds_and_no_others(channel: str, other: str, key: str):
    """SPEC 5.3: what an ack drops. "a" never covers "ab"."""
    prefix = scopes.of_fold("", channel)
    assert scopes.of_message("", channel, key).startswith(prefix)
    if other != channel:
        assert not scopes.of_message("", other, key).startswith(prefix)
    assert not scopes.of_step("", other).startswith(prefix)


@given(nasty, nasty, st.integers(0, 20))
@example("ev", "0", 0)
def test_no_two_kinds_of_scope_are_one(a: str, b: str, number: int):
    """A race named as a channel is not the round of the message whose key is a number."""
    inside = scopes.of_step(scopes.ROOT, a)
    of_kinds = [
        inside,
        scopes.of_step(inside, b),
        scopes.of_fold("", a),
        scopes.of_message("", a, str(number)),
        scopes.of_group("", a, number),
        scopes.of_group("", a, number + 1),
    ]
    assert len(set(of_kinds)) == len(of_kinds)
    assert scopes.of_group(inside, b, number).startswith(inside)
    assert not scopes.of_group("", b, number).startswith(scopes.of_fold("", a))

"""What a workflow declares that it accepts, as a document on file (SPEC 4.4, 4.6)."""

from hypothesis import given
from hypothesis import strategies as st

from tarry.core.accepts import UNDECLARED, Accepts, Declared, near_misses, read, write
from tarry.model import ArrivalKind

declared = st.builds(Declared, st.none() | st.text(), *[st.booleans()] * 4)
names = st.dictionaries(st.tuples(st.sampled_from(ArrivalKind), st.text(min_size=1)), declared, max_size=5)


@given(names)
def test_a_document_reads_back_as_it_was_written(given_names: dict[tuple[ArrivalKind, str], Declared]):
    assert read(write(given_names)) == Accepts(given_names)


@given(names)
def test_one_declaration_is_one_document(given_names: dict[tuple[ArrivalKind, str], Declared]):
    """It is kept under its digest: the order of declaring changes nothing."""
    assert write(dict(reversed(given_names.items()))) == write(given_names)


def test_a_signal_and_a_channel_of_one_name_are_two_things():
    accepts = Accepts({(ArrivalKind.SIGNAL, "a"): Declared()})
    assert accepts.get(ArrivalKind.SIGNAL, "a") == Declared()
    assert accepts.get(ArrivalKind.CHANNEL, "a") is None
    assert not accepts.open
    assert UNDECLARED.open


def test_near_misses_are_a_clause_of_an_errors_text():
    assert near_misses("piad", ["paid", "shipped"]) == "; did you mean 'paid'?"
    assert near_misses("paid", ["paid1", "paid2"]) in {
        "; did you mean 'paid2' or 'paid1'?",
        "; did you mean 'paid1' or 'paid2'?",
    }
    assert near_misses("zebra", ["paid"]) == ""
    assert Accepts({(ArrivalKind.CHANNEL, "events"): Declared()}).near("event") == "; did you mean 'events'?"

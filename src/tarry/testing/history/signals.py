"""Rules H1 to H7: a signal is settled once, by a delivery or its deadline, and all are told the truth.

A latch is a write-once register with a timeout. The payload belongs to the name: every wait on it that
is not timed out, closed or cancelled takes the same one. A timeout belongs to one wait (scope, name,
round). Of a vote many are answered, and its outcome is a tally: only what concerns keys and waits holds
for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from tarry.testing.history import keys
from tarry.testing.history.delivery import KEPT, TAKEN, Delivery
from tarry.testing.history.events import CHANNEL, SIGNAL, VOTE, Outcome
from tarry.testing.history.final import ArrivalRow, EntryRow, WaitRow
from tarry.testing.history.report import Violation
from tarry.testing.history.story import NameStory, Seen, plain

DISPLACED = frozenset({"already_settled", "stale", "invalid"})


def h2(story: NameStory) -> Iterator[Violation]:
    """What a run takes in, and what the store keeps for it, somebody delivered."""
    sources = [d for d in story.deliveries if d.may_have_taken]
    if story.kind == SIGNAL:
        payloads = {d.ask.payload for d in sources if d.unknown or not story.withdrawn(d)}
        for taken in story.payloads:
            if taken.event.payload not in payloads:
                yield story.breaks("H2", "wrong", "an outcome that nobody delivered", taken)
    sent = {(d.ask.key, d.ask.payload) for d in sources}
    for seen in story.received:
        message = seen.event
        if message.payload is not None and (message.key, message.payload) not in sent:
            yield story.breaks("H2", "wrong", "a message that nobody sent", seen)
    asked = {(d.ask.key, d.ask.payload, d.ask.actor) for d in sources}
    for row in story.arrivals:
        if (row.key, row.payload, row.actor) not in asked:
            yield story.breaks("H2", "wrong", "the store keeps what nobody delivered", row)


def h3(story: NameStory) -> Iterator[Violation]:
    """What was answered `delivered` or `buffered` is kept, and is what the run takes in."""
    for delivery in story.standing:
        row = story.row_of(delivery)
        if story.missing:
            yield story.breaks("H3", "lost", "accepted for a run that is not there any more", delivery)
        elif story.row is not None and not _kept(story, delivery, row):
            yield story.breaks("H3", "lost", "accepted, and the store does not keep it", delivery, row)
        elif story.kind == SIGNAL:
            yield from _applied(story, delivery, row)
    if story.kind == SIGNAL and story.row is not None:
        kept = {row.payload for row in story.arrivals if row.status in KEPT}
        unkept = [taken for taken in story.payloads if taken.event.payload not in kept]
        unkept += [] if kept else _settled_rows(story)
        if unkept:
            yield story.breaks("H3", "lost", "taken in, and the store does not keep it", *unkept)


def _settled_rows(story: NameStory) -> list[EntryRow | WaitRow]:
    rows = (*story.entries, *story.waits)
    return [row for row in rows if row.outcome is not None and plain(row.outcome) == "payload"]


def _kept(story: NameStory, delivery: Delivery, row: ArrivalRow | None) -> bool:
    """A message that was acked has been used up; its row may go."""
    if row is None:
        number = delivery.answer.number if delivery.answer else None
        return number is not None and number <= story.head
    return delivery.equals(row)


def _applied(story: NameStory, delivery: Delivery, row: ArrivalRow | None) -> Iterator[Violation]:
    if delivery.status == "delivered" and row is not None and row.status in DISPLACED:
        yield story.breaks("H3", "lost", f"delivered, and taken back as {row.status}", delivery, row)
    displaced = row.status in DISPLACED if row is not None else delivery.status != "delivered"
    if displaced:
        return
    other = [taken for taken in story.payloads if taken.event.payload != delivery.ask.payload]
    if other:
        yield story.breaks("H3", "lost", "accepted, and the run took another payload", delivery, *other)
    if row is not None:
        yield from _timely(story, delivery, row)


def _timely(story: NameStory, delivery: Delivery, row: ArrivalRow) -> Iterator[Violation]:
    """No wait times out on a name that a payload had settled before, by the store's own clock."""
    for taken in story.outcomes:
        deadline_ms = taken.event.deadline_ms
        if taken.event.outcome != "timeout" or deadline_ms is None or row.at_ms is None:
            continue
        if row.at_ms < deadline_ms:
            yield story.breaks("H3", "lost", "accepted in time, and the wait timed out", delivery, row, taken)
    used = story.payloads or _settled_rows(story)
    if delivery.status == "delivered" and story.row and story.row.status == "succeeded" and not used:
        yield story.breaks("H3", "lost", "delivered, and the run ended without it", delivery, story.row)


def h4(story: NameStory) -> Iterator[Violation]:
    """One delivery is accepted per key, and one per latch; all others are told which."""
    if story.kind == CHANNEL:
        return
    for group in keys.groups(story):
        yield from keys.once(group, "H4")
    yield from _one_winner(story)
    if story.kind == SIGNAL:
        yield from _losers(story)


def _one_winner(story: NameStory) -> Iterator[Violation]:
    counted = [d for d in story.standing if d.status == "counted"]
    if counted and story.kind != VOTE:
        yield story.breaks("H4", "wrong", "counted, where nothing is voted on", *counted)
    delivered = [d for d in story.standing if d.status == "delivered"]
    pending = [d for d in story.standing if d.status == "buffered" and not _lost_later(story, d)]
    rivals = [*delivered, *pending]
    if delivered and len({d.identity for d in rivals}) > 1:
        yield story.breaks("H4", "applied twice", "two deliveries were told that they settle it", *rivals)
    settled = [row for row in story.arrivals if row.status == "delivered"]
    if len(settled) > 1 and story.kind == SIGNAL:
        yield story.breaks("H4", "applied twice", "the store keeps two winners", *settled)


def _lost_later(story: NameStory, delivery: Delivery) -> bool:
    row = story.row_of(delivery)
    return row is not None and row.status in DISPLACED


def _losers(story: NameStory) -> Iterator[Violation]:
    """`already_settled` names the winner, who is another one."""
    once = [d for d in story.deliveries if d.may_have_taken and (story.withdrawn(d) or _gone(story.row_of(d)))]
    winners = [*_winners(story), *once]
    for delivery in story.deliveries:
        if delivery.status != "already_settled" or delivery.answer is None:
            continue
        retained = delivery.answer.retained
        fits = [w for w in winners if w.identity != delivery.identity and retained in (None, w.ask.payload)]
        if not fits:
            yield story.breaks("H4", "wrong", "told that another one won, which none did", delivery, *winners)


def _winners(story: NameStory) -> list[Delivery]:
    """The deliveries that may have settled the latch: the accepted one, or else the unknown ones."""
    row = story.winner
    if story.row is not None and row is None:
        return []
    able = [d for d in story.deliveries if row is None or (story.row_of(d) is row and d.equals(row))]
    standing = [d for d in able if d.accepted and not story.withdrawn(d)]
    return standing or [d for d in able if d.unknown]


def h5(story: NameStory) -> Iterator[Violation]:
    """An unknown delivery happened or did not, and every later answer agrees on which."""
    for group in keys.groups(story):
        yield from keys.consistent(group, "H5")


def h6(story: NameStory) -> Iterator[Violation]:
    """Order in real time: nobody wins who came after the winner was told, and no answer knows the future."""
    if story.kind != SIGNAL:
        return
    yield from _overtaken(story)
    winners = _winners(story)
    if winners and not _reopened(story):
        yield from _untimely(story, winners)


def _untimely(story: NameStory, winners: list[Delivery]) -> Iterator[Violation]:
    """`not_waiting` may be said to others while the winner is buffered without a type (rule 4.3)."""
    proofs = _proofs(story)
    earliest = min(d.invoked_ns for d in winners)
    for at_ns, proof in proofs:
        if at_ns < earliest:
            yield story.breaks("H6", "wrong", "settled before anybody had delivered", proof, *winners)
    accepted = [(d.answered_ns, d) for d in winners if d.accepted]
    by_ns, proof = min([*proofs, *accepted], key=lambda known: known[0], default=(inf, None))
    firmly = any(d.status == "delivered" for d in winners)
    for delivery in story.deliveries:
        firm = firmly or delivery.identity == winners[0].identity
        refused = delivery.status == "invalid" or (delivery.status == "not_waiting" and firm)
        if refused and delivery.invoked_ns > by_ns:
            yield story.breaks("H6", "wrong", "refused as if open, after it was settled", proof, delivery)


def _overtaken(story: NameStory) -> Iterator[Violation]:
    """The first that fits wins, in the order of commits, and commits keep the order of real time."""
    asked: dict[str | None, int] = {}
    for delivery in story.deliveries:
        if delivery.may_have_taken:
            payload = delivery.ask.payload
            asked[payload] = min(asked.get(payload, delivery.invoked_ns), delivery.invoked_ns)
    first = {taken.event.payload: taken for taken in reversed(story.payloads)}
    for delivery in story.standing:
        row = story.row_of(delivery)
        for payload, taken in first.items():
            if asked.get(payload, -1) > delivery.answered_ns:
                yield story.breaks("H6", "wrong", "a later one won over an accepted one", delivery, taken)
        if row is not None and row.status == "already_settled" and story.winner and row.no < story.winner.no:
            yield story.breaks("H6", "wrong", "the first that fitted did not win", row, story.winner)


def _gone(row: ArrivalRow | None) -> bool:
    return row is not None and row.status in ("stale", "invalid")


def _proofs(story: NameStory) -> list[tuple[float, Delivery | Seen[Outcome]]]:
    """The instants by which the latch was settled, and what shows it."""
    told = [d for d in story.deliveries if d.status == "already_settled"]
    winner = story.winner
    repeated = [d for d in story.deliveries if winner and d.status in TAKEN and story.row_of(d) is winner]
    return [
        *((d.answered_ns, d) for d in (*told, *repeated)),
        *((taken.at_ns, taken) for taken in story.payloads),
    ]


def _reopened(story: NameStory) -> bool:
    """A withdrawn outcome opens the latch again (rule 4.6)."""
    return any(story.withdrawn(d) for d in story.deliveries)

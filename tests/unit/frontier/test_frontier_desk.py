"""What is kept decoded between books is what the store says, or it is forgotten."""

from __future__ import annotations

from nephila.frontier.embedded.desk import KEPT, LEASED_KEPT, TALLIES_KEPT, Desk
from nephila.frontier.embedded.records import HostState
from nephila.frontier.traps import SkeletonTally

STATE = (HostState("a.test", [0] * 7), b"packed")
TALLY = SkeletonTally("/a/{n}")


def a_desk(transaction: int = 7) -> Desk:
    """A desk that was given back after a transaction, with a host on it."""
    desk = Desk()
    desk.take(transaction)
    desk.hosts[b"a"] = STATE
    desk.tallies[b"a"] = TALLY
    desk.leased[b"a"] = 3
    desk.give_back()
    return desk


def test_it_is_kept_within_a_transaction_and_for_the_next() -> None:
    """F8: one transaction may hold many books, and its successor is our own."""
    for transaction in (7, 8):
        desk = a_desk()
        desk.take(transaction)
        assert desk.hosts == {b"a": STATE}
        assert desk.tallies == {b"a": TALLY}
        assert desk.leased == {b"a": 3}


def test_what_another_process_wrote_makes_it_forget() -> None:
    """F2: a transaction in between was not ours, nor is one of another store."""
    for transaction in (9, 6, 1):
        desk = a_desk()
        desk.take(transaction)
        assert not desk.hosts
        assert not desk.tallies
        assert not desk.leased


def test_a_book_that_was_not_written_makes_it_forget() -> None:
    """F2: what a verb has changed before it failed must not be met again."""
    desk = a_desk()
    desk.take(8)
    desk.take(8)
    assert not desk.hosts
    assert not desk.tallies


def test_it_is_bounded_and_forgets_the_oldest() -> None:
    """F8: two generations, the older one goes."""
    desk, transaction = a_desk(), 7
    for number in range(3 * KEPT):
        if number % 100 == 0:
            transaction += 1
            desk.take(transaction)
            desk.give_back()
        desk.hosts[number.to_bytes(4, "big")] = STATE
        desk.tallies[number.to_bytes(4, "big")] = TALLY
        desk.leased[number.to_bytes(4, "big")] = number
        assert len(desk.hosts) + len(desk.old_hosts) <= KEPT + 200
        assert len(desk.tallies) + len(desk.old_tallies) <= TALLIES_KEPT + 200
        assert len(desk.leased) <= LEASED_KEPT + 100
    assert b"a" not in desk.hosts
    assert b"a" not in desk.old_hosts
    assert (3 * KEPT - 1).to_bytes(4, "big") in desk.hosts

"""The embedded frontier counted anew: what its counters and indexes claim, held against what is in its tables.

`check_tables` reads everything, so it is for small frontiers: the state machine calls it after every step, the other
tests at their end. `queue` looks at queues and shelves, `hosts` at hosts, domains, leases and traps.
"""

from __future__ import annotations

from collections import Counter

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.book import Book, time_key
from nephila.frontier.embedded.records import UrlRecord
from nephila.frontier.embedded.tables import pending_key
from nephila.frontier.lifecycle import State
from nephila.frontier.schedule import is_gone
from nephila.model.outcome import DeferReason
from nephila.model.settings import RecrawlSettings

from .hosts import check_domains, check_hosts, check_leases, check_traps
from .queue import check_queue, check_shelves
from .store import Store, read_store


def check_tables(frontier: LmdbFrontier, recrawl: RecrawlSettings | None = None) -> None:
    """Assert that every counter equals a recount and that every index agrees with the records."""

    def check(book: Book) -> None:
        store = read_store(book)
        _check_states(store)
        _check_times(store)
        _check_captures(store, recrawl or RecrawlSettings())
        check_queue(store)
        check_shelves(store)
        check_hosts(store)
        check_leases(store)
        check_domains(store)
        check_traps(store)

    frontier._group.run_now(check)


def _check_states(store: Store) -> None:
    """Every URL is in one state, and is counted there."""
    totals = store.book.totals
    states = Counter(record.state for record in store.records.values())
    dead = {url_key for url_key, record in store.records.items() if record.state is State.DEAD}
    assert set(store.keys("dead")) == dead
    assert (totals.dead, totals.dropped) == (states[State.DEAD], states[State.DROPPED])
    assert totals.urls == len(store.marks) + len(store.records)
    assert totals.refused == len(store.keys("refused"))


def _check_times(store: Store) -> None:
    """What waits for a time is in the time index, once, and nothing else is; planned visits are counted too."""
    book = store.book
    with book.txn.cursor(db=book.db["due"]) as cursor:
        rows = {key: value.decode() for key, value in cursor}
    wanted: dict[bytes, UrlRecord] = {}
    for url_key, record in store.records.items():
        if record.state is State.DELAYED:
            assert record.due_at, "a delayed URL waits for no time"
        if record.state not in {State.DELAYED, State.DONE}:
            assert not record.due_at, f"a {record.state.name} URL waits for a time"
        if record.due_at:
            wanted[time_key(record.due_at) + url_key] = record
    assert set(rows) == set(wanted)
    for key, record in wanted.items():
        assert (rows[key] == DeferReason.DUE) == (record.state is State.DONE)
    assert {reason: count for reason, count in book.totals.delayed.items() if count} == Counter(rows.values())


def _check_captures(store: Store, recrawl: RecrawlSettings) -> None:
    """What was fetched is pending or completed; what is gone is counted."""
    totals = store.book.totals
    pending = set(store.keys("pending"))
    done = unconfirmed = gone = 0
    for record in store.records.values():
        fate = record.fate
        if record.state is State.DONE:
            assert fate is not None
            assert fate.capture is not None
            done += 1
            unconfirmed += pending_key(fate.capture.segment, fate.capture.end) in pending
        gone += fate is not None and is_gone(fate.history, recrawl)
    assert totals.pending == len(pending) == unconfirmed
    assert totals.completed == done - unconfirmed
    assert totals.gone == gone, f"{gone} pages are proven gone, {totals.gone} are counted"

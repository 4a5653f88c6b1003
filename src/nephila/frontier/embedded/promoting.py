"""What a claim does first: hosts and URLs whose time has come are made ready, and what has waited is looked at again.

Each step does so much and no more: what is left over comes with the next claim.
"""

from __future__ import annotations

from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.model.outcome import DeferReason

from . import shelving, trapping
from .book import Book, time_key
from .coding import read_url
from .records import HostState
from .returning import put_back, requeue
from .tables import HOST_KEY_BYTES
from .waking import wake

REFRESHED_PER_CLAIM = 64
"""Hosts that have been ready for long whose class is looked at again by one claim."""

SHELVES_PER_CLAIM = 50
"""Hosts whose coverage shelf is emptied by one claim, once the wanted number of domains is reached."""


def promote(book: Book, most: int) -> None:
    """Make ready what may be claimed now, up to so many hosts and URLs.

    With one exchange at a time the order must not depend on the clock: hosts that merely rest are all ready, and are
    waited for; retries, and hosts that wait for their robots.txt, come when there is nothing else.
    """
    ahead = ahead_of(book)
    if not book.policy.ordered:
        promote_due(book, ahead, most)
        promote_waiting(book, ahead, most)
        return
    promote_waiting(book, ahead, most, waiting_for_rules=False)
    if not book.totals.hosts_ready:
        promote_due(book, ahead, most)
        promote_waiting(book, ahead, most)


def ahead_of(book: Book) -> int:
    """How long before its time a host may be claimed."""
    return book.policy.ordered_wait_ms if book.policy.ordered else book.policy.settings.look_ahead_ms


def promote_waiting(book: Book, ahead_ms: int, most: int, *, waiting_for_rules: bool = True) -> None:
    """Make hosts ready whose time has come, or comes within `ahead_ms`."""
    horizon = book.now + ahead_ms
    due = _until(book, "waiting", horizon, most)
    for key in due:
        host = book.known_host(key)
        if book.timeline.rebooted_at:
            rest_after_reboot(book, key, host)
        if host.free_at > horizon:
            book.wait(key, host, host.free_at)
        elif host.reason == DeferReason.ROBOTS and not waiting_for_rules:
            continue
        else:
            if host.trap_at:
                trapping.take_probe(book, key, host)
            if any(host.queued) or host.robots:
                book.make_ready(key, host)
            else:
                book.rest(key, host)


def _until(book: Book, index: str, horizon: int, most: int) -> list[bytes]:
    """What an index by time names up to a moment, so many at most."""
    names: list[bytes] = []
    after = time_key(horizon + 1)
    with book.txn.cursor(db=book.db[index]) as cursor:
        found = cursor.first()
        while found and len(names) < most and (entry := cursor.key()) < after:
            names.append(entry[8:])
            found = cursor.next()
    return names


def rest_after_reboot(book: Book, key: bytes, host: HostState) -> None:
    """The clock that knew how long a host has rested is gone with the last boot: it rests one full delay anew.

    Nor does the time that only the wall clock has seen pass count towards its rest: a Retry-After is kept.
    """
    timeline = book.timeline
    if timeline.rebooted_at and 0 < host.released_at <= timeline.rebooted_at:
        rested_at = host.free_at + timeline.slept_ms - host.slept_ms
        host.free_at = max(rested_at, timeline.rebooted_at + book.delay_of(key, host))
        host.slept_ms = timeline.slept_ms


def promote_due(book: Book, ahead_ms: int, most: int) -> None:
    """Put URLs whose time has come back into their queues."""
    horizon = book.now + ahead_ms
    for url_key in _until(book, "due", horizon, most):
        raw = book.txn.get(url_key)
        if raw is None:
            raise KeyError(url_key)
        record = read_url(raw)
        due_at = record.due_at
        key = url_key[:HOST_KEY_BYTES]
        host = book.known_host(key)
        if record.state is State.DONE:
            place = requeue(book, key, host, url_key, record)
        else:
            book.end_delay(url_key, record)
            place = put_back(book, key, host, url_key, record)
        if not book.token_of(key):
            rest_after_reboot(book, key, host)
            host.free_at = max(host.free_at, due_at)  # promoted ahead of its time, it must not be asked for before it
        wake(book, key, host, (place,))


def refresh_classes(book: Book) -> None:
    """Look at hosts that have been ready for long, some a claim in turn: waiting may have lifted their class (F7)."""
    if book.policy.ordered:
        return
    patient = book.now - order.step_ms(book.policy.priority)
    lane = bytes((order.STARVING_LANE,))
    waiting: list[bytes] = []
    with book.txn.cursor(db=book.db["ready"]) as cursor:
        going = cursor.set_range(book.totals.refreshed or lane)
        while going and len(waiting) < REFRESHED_PER_CLAIM and int.from_bytes(cursor.key()[1:9], "big") <= patient:
            waiting.append(cursor.key())
            going = cursor.next()
    book.totals.refreshed = waiting[-1] + b"\0" if len(waiting) == REFRESHED_PER_CLAIM else b""
    for entry in waiting:
        key = entry[order.SINCE_KEY_BYTES :]
        host = book.known_host(key)
        heads = book.heads(key, host)
        if heads.keys() != {ready[0] for ready in host.ready if ready[0] < order.LANES}:
            book.make_ready(key, host, heads)


def empty_coverage_shelves(book: Book) -> None:
    """Let what was put off for coverage come back, some hosts a claim, once enough domains were fetched (S4)."""
    if not shelving.covers_no_more(book):
        return
    with book.txn.cursor(db=book.db["shelves"]) as cursor:
        code = shelving.shelf_code(DeferReason.COVERAGE)
        keys: list[bytes] = []
        going = cursor.set_range(code)
        while going and cursor.key().startswith(code) and len(keys) < SHELVES_PER_CLAIM:
            keys.append(cursor.key()[1:])
            going = cursor.next()
    for key in keys:
        host = book.known_host(key)
        shelving.end_coverage(book, key, host)
        wake(book, key, host)

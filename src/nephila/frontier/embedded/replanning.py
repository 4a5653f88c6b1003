"""Visits that are planned already, when what they were planned by has changed (R2, R4).

The terms of the crawl are kept with it: who opens it under others has every plan looked at again; who changes the
interval or the tier of a domain, those of its pages. A claim looks at so many URLs and no more, as in the sweep of a
new cycle, and where it has come to is kept, so that a crawl that is stopped goes on with it.
"""

from __future__ import annotations

from nephila.frontier.lifecycle import State
from nephila.interfaces.recrawl import RecrawlPolicy
from nephila.model.outcome import DeferReason

from .book import ORDINARY, Book
from .coding import pack, read_url
from .marks import PARKED
from .tables import HOST_KEY_BYTES, URL

REPLAN_STEP = 500
"""URLs that one claim looks at: no claim is O(frontier)."""

DOMAINS_WAITING = 64
"""Domains of which it is kept one by one that they are to be looked at; where there are more, all are."""

HOMES = frozenset({"s/", "h/"})
_EVERYWHERE = (b"", b"")


def check_terms(book: Book) -> None:
    """A crawl is opened: look at what is planned where the terms have changed since."""
    recrawl, meta = book.policy.recrawl, book.db["meta"]
    if recrawl is None:
        return
    terms, before = pack(recrawl.terms), book.txn.get(b"terms", db=meta)
    if before != terms:
        book.txn.put(b"terms", terms, db=meta)
        if before is not None:
            book.totals.replanning = [_EVERYWHERE]


def look_again(book: Book, prefix: bytes) -> None:
    """What is planned of a domain is to be looked at."""
    waiting = [one for one in book.totals.replanning if one[0] != prefix]
    if _EVERYWHERE in waiting:
        return
    waiting.append((prefix, b""))
    book.totals.replanning = waiting if len(waiting) <= DOMAINS_WAITING else [_EVERYWHERE]


def replan(book: Book) -> None:
    """Take what is to be looked at a step further."""
    waiting, recrawl, left = book.totals.replanning, book.policy.recrawl, REPLAN_STEP
    if recrawl is None:
        waiting = []
    while waiting and left > 0 and recrawl is not None:
        prefix, at = waiting[0]
        urls, looked_at, rest = _some(book, prefix, at or prefix, left)
        for url_key in urls:
            _revise(book, recrawl, url_key)
        waiting = [*([(prefix, rest)] if rest else []), *waiting[1:]]
        left -= max(1, looked_at)
    book.totals.replanning = waiting


def _some(book: Book, prefix: bytes, at: bytes, most: int) -> tuple[list[bytes], int, bytes]:
    """URLs under a prefix that have a record, of so many entries; how many those were; where to go on, if anywhere."""
    found: list[bytes] = []
    looked_at = 0
    with book.txn.cursor(db=book.web) as cursor:
        going = cursor.set_range(at)
        while going and cursor.key().startswith(prefix):
            key = cursor.key()
            if looked_at >= most:
                return found, looked_at, key
            looked_at += 1
            kind = key[HOST_KEY_BYTES : HOST_KEY_BYTES + 1]
            if kind < URL:
                going = cursor.set_range(key[:HOST_KEY_BYTES] + URL)
            elif kind > URL:
                going = cursor.set_range(key[:HOST_KEY_BYTES] + b"\xff")  # the next host
            else:
                if cursor.value()[0] > PARKED:
                    found.append(key)
                going = cursor.next()
    return found, looked_at, b""


def _revise(book: Book, recrawl: RecrawlPolicy, url_key: bytes) -> None:
    """Move the next visit of a URL to where it is by the present rules."""
    raw = book.txn.get(url_key)
    record = None if raw is None else read_url(raw)
    fate = None if record is None else record.fate
    if record is None or fate is None or record.state is not State.DONE or not record.due_at:
        return
    domain = book.domain_seen(url_key)
    policy = book.policy_of(domain) if domain.policed else ORDINARY
    planned_s = fate.history.interval_s
    revised_s = recrawl.revised(fate.history, home=record.tail in HOMES, tier=policy.tier, fixed_s=policy.recrawl_s)
    if revised_s == planned_s:
        return
    moment = record.due_at + (revised_s - planned_s) * 1000
    book.end_delay(url_key, record)
    book.delay(url_key, record, max(moment, book.now), DeferReason.DUE)
    fate.history = fate.history._replace(interval_s=revised_s)
    book.put_url(url_key, record)

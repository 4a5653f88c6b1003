"""How many URLs wait under one first path segment of a large host (T1).

Most hosts never have as many URLs queued as one section may have, so nothing is counted for them. When a host comes to
half of that, what it has queued is counted once, and every URL that comes or goes from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xxhash import xxh3_64_digest

from .book import Book
from .bundle import Entry, entries_of, tail_of
from .records import HostState
from .tables import QUEUE, SECTION


def section_of(tail: bytes) -> bytes:
    """The key of the section that a URL lies in, eight bytes that are not all zero."""
    path = tail.partition(b"?")[0]
    return xxh3_64_digest(path[path.find(b"/") + 1 :].partition(b"/")[0])


def in_section(book: Book, key: bytes, section: bytes) -> int:
    """URLs of a section that wait in the queue of a host that is counted so."""
    raw = book.txn.get(key + SECTION + section)
    return 0 if raw is None else int.from_bytes(raw, "big")


def counts_sections(book: Book, host: HostState, more: int) -> bool:
    """Whether a host is counted by section once it has so many URLs more in its queue."""
    return host.sections or sum(host.queued) + more > book.policy.budget.queued_per_prefix // 2


def count_in(book: Book, key: bytes, host: HostState, entries: Sequence[Entry]) -> None:
    """URLs came into the queue."""
    if host.sections:
        for section, count in Counter(section_of(tail_of(entry)) for entry in entries).items():
            _put(book, key, section, in_section(book, key, section) + count)
    elif sum(host.queued) > book.policy.budget.queued_per_prefix // 2:
        host.sections = True
        _count_queue(book, key)


def count_out(book: Book, key: bytes, host: HostState, tail: bytes) -> None:
    """A URL left the queue."""
    if host.sections:
        section = section_of(tail)
        _put(book, key, section, max(0, in_section(book, key, section) - 1))


def _count_queue(book: Book, key: bytes) -> None:
    counts: Counter[bytes] = Counter()
    prefix = key + QUEUE
    with book.txn.cursor(db=book.web) as cursor:
        going = cursor.set_range(prefix)
        while going and cursor.key().startswith(prefix):
            counts.update(section_of(tail_of(entry)) for entry in entries_of(cursor.value()))
            going = cursor.next()
    for section, count in counts.items():
        _put(book, key, section, count)


def _put(book: Book, key: bytes, section: bytes, count: int) -> None:
    book.txn.put(key + SECTION + section, count.to_bytes(4, "big"))

"""Several processes on one frontier: how they divide what may be asked now.

Nothing is divided in advance. Every claim sees the whole, takes the hosts that this process is entitled to at that
moment, and leaves the rest:

- *A fair part.* Of the hosts that are ready or leased, a process holds no more than its part, rounded up. So a short
  queue is not swept up by whoever comes first, and a process that falls behind leaves its hosts to the others.
- *Familiar hosts first.* Among the first few of a lane those are preferred that fall to this process by their hash: it
  has a connection to them, their address and their rules. Where there is none, the first is taken, so that no host
  waits for one process.
- *A limit on pages* counts what is leased by all as if it were stored. What a lease does not bring is free again with
  its settle, and what a dead process held with its reaping; so the limit is exact, and no counter can be left wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from .book import Book
from .coding import read_lease
from .noting import NotedCursor

WINDOW = 8
"""Entries of a lane among which a familiar host is looked for: with two processes, one in 256 claims finds none."""


@dataclass(slots=True)
class Sharing:
    """The part of one process. `held` is kept up to date by whoever claims."""

    number: int
    """From 1 on: names the holder of a lease."""
    among: int
    max_pages: int = 0
    """Of all processes together, in this cycle; 0 means no limit."""
    held: int = 0
    """Hosts that this process has leased."""

    def part_of(self, active: int) -> int:
        """How many more of `active` hosts, ready or leased, this process may hold."""
        return max(0, -(-active // self.among) - self.held)


def entitled(book: Book, sharing: Sharing, hosts: int) -> int:
    """How many hosts this process may claim now; bounds the pages that may be leased as well."""
    if sharing.max_pages:
        book.page_quota = max(0, sharing.max_pages - book.totals.pages_in_cycle - _pages_leased(book))
    return min(hosts, sharing.part_of(book.totals.hosts_ready + book.totals.hosts_leased))


def _pages_leased(book: Book) -> int:
    with book.txn.cursor(db=book.db["leases"]) as cursor:
        return sum(len(read_lease(raw).entries) for raw in cursor.iternext(keys=False, values=True))


def familiar(cursor: NotedCursor, sharing: Sharing) -> bytes:
    """The first of the next few entries whose host falls to this process; where none does, the first."""
    first = cursor.key()
    wanted = sharing.number % sharing.among
    entry = first
    for _ in range(WINDOW):
        if entry[-1] % sharing.among == wanted:
            return entry
        if not cursor.next():
            break
        entry = cursor.key()
        if entry[0] != first[0]:
            break
    return first

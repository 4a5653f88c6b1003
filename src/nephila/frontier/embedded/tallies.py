"""What the store keeps of traps (T2): tallies of patterns under their host, and which of them hold URLs back."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_64_digest

from nephila.frontier import traps
from nephila.frontier.traps import SkeletonTally, TrapState

from .tables import SKELETON

if TYPE_CHECKING:
    from .book import Book
    from .records import HostState

GROUP_BYTES = 8


class Hold(NamedTuple):
    """What holds a URL back."""

    group: bytes
    """The hash of the pattern: its shelf."""
    until_s: int
    """UTC seconds from which on one URL of it may go."""


@lru_cache(maxsize=4096)
def group_of(pattern: str) -> bytes:
    """The key of a pattern within its host."""
    return xxh3_64_digest(pattern.encode())


def tallies_of(book: Book, key: bytes, patterns: tuple[str, ...]) -> list[SkeletonTally]:
    """The tallies of a URL's patterns, new ones where nothing was counted yet."""
    return [book.tally(key + SKELETON + group_of(pattern)) or SkeletonTally(pattern) for pattern in patterns]


def find_tally(book: Book, key: bytes, pattern: str) -> SkeletonTally | None:
    """The tally of one pattern, if anything was counted."""
    return book.tally(key + SKELETON + group_of(pattern))


def put_tally(book: Book, key: bytes, host: HostState, tally: SkeletonTally, before: TrapState) -> None:
    """Keep a tally; one that began or ceased to hold URLs back is listed, or no longer."""
    group = group_of(tally.pattern)
    book.keep_tally(key + SKELETON + group, tally)
    if (before is TrapState.NORMAL) == (tally.state is TrapState.NORMAL):
        return
    if tally.state is TrapState.NORMAL:
        book.txn.delete(key + group, db=book.db["trapped"])
        host.flagged -= 1
        book.totals.traps -= 1
        host.trap_at = max(1, book.now)  # what lies on its shelf may come back
    else:
        book.txn.put(key + group, b"", db=book.db["trapped"])
        host.flagged += 1
        book.totals.traps += 1


def hold_on(book: Book, key: bytes, url: str) -> Hold | None:
    """What holds a URL of a host back; None when it may go."""
    settings = book.policy.traps
    found = tallies_of(book, key, traps.patterns(url))
    tally = traps.holding(found, settings)
    return None if tally is None else Hold(group_of(tally.pattern), max(1, tally.not_before_s))

"""URLs that claims pass over: their origin's robots.txt cannot be had for now, and others stand behind them.

A host may have URLs of several origins, http and https mostly. Where one of them answers no robots.txt, its URLs stay
where they are, in front, and there may be any number of them: a claim looks at so many and no more. So it is kept how
far it has come, and the next one goes on from there.

That is kept in memory, by the process that claims: whoever does not know it begins in front. It holds until the first
of the origins is worth another look, and for a minute once something was found behind them (or ten times what it took
to find it): what came in front meanwhile has its turn then.
"""

from __future__ import annotations

from collections.abc import Mapping

from .book import Book
from .desk import Passed
from .queueing import Work, work_of
from .records import HostState

LOOKED_AT = 5_000
"""How many queued URLs are looked at for one that may be fetched: whose origin is not blocked, that is in no trap."""
LOOK_ON_MS = 100
"""When a claim goes on that has found nothing in as many as it may look at."""
WORTH_KEEPING = 256
"""URLs passed over: fewer are looked at anew by each claim."""
HOLDS_MS, HOLDS_TIMES = 60_000, 10
MOST = 1_000
"""Hosts of which this is kept."""


class Looking:
    """The queued URLs of a host, one by one, as far as a claim looks, and from where the last one has come to."""

    __slots__ = ("_book", "_key", "_last", "_looked", "_passed", "_works")

    def __init__(self, book: Book, key: bytes, host: HostState, lane: int) -> None:
        self._book, self._key, self._looked = book, key, 0
        self._last: Work | None = None
        self._passed = _passed_over(book, key) if book.passed else None
        self._works = work_of(book, key, host, lane, {} if self._passed is None else self._passed.after)

    def __iter__(self) -> Looking:
        return self

    def __next__(self) -> Work:
        if self._looked == LOOKED_AT:
            raise StopIteration
        self._last = one = next(self._works)
        self._looked += 1
        return one

    def found(self, blocked: Mapping[str, int]) -> None:
        """The last one may be fetched. `blocked`: origins that were passed over, and when they are worth a look."""
        if self._passed is not None or (blocked and self._looked > WORTH_KEEPING):
            passed = self._keep(blocked)
            if passed.expires is None:
                took_ms = self._book.now - passed.began
                passed.expires = self._book.now + max(HOLDS_MS, HOLDS_TIMES * took_ms)

    def found_nothing(self, blocked: Mapping[str, int]) -> int:
        """When to look again: what was looked at is blocked; or it ended, and other work has taken its place."""
        book, passed = self._book, self._passed
        if self._looked == LOOKED_AT and blocked:  # others may stand behind
            self._keep(blocked)
            return book.now + LOOK_ON_MS
        if passed is None:
            return min(blocked.values(), default=book.now)
        del book.passed[self._key]
        if self._looked and not blocked:
            return book.now
        return min([passed.until, *blocked.values()])

    def _keep(self, blocked: Mapping[str, int]) -> Passed:
        """Let the next claim go on from here."""
        book, passed = self._book, self._passed
        if passed is None:
            if len(book.passed) >= MOST:
                book.passed.clear()
            passed = self._passed = book.passed[self._key] = Passed(book.now, min(blocked.values()))
        passed.until = min([passed.until, *blocked.values()])
        if self._last is not None:
            passed.after |= self._works.place_of(self._last.place)
        return passed


def _passed_over(book: Book, key: bytes) -> Passed | None:
    """What still holds of a host."""
    known = book.passed.get(key)
    if known is not None and (book.now >= known.until or (known.expires is not None and book.now >= known.expires)):
        del book.passed[key]
        return None
    return known

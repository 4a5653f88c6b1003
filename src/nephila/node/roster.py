"""All domains of a crawl at hand, to be searched and sorted: what a list with a search box needs (C3).

No request ever walks the store. The roster is filled by walking it once, in the background, in short steps, and is
walked anew only when somebody asks and it has grown old: never more often than a hundred times as long as a walk
takes, so that it costs a hundredth of a core at most. What is shown of a page of the list is read afresh; the roster
decides which domains stand on it, and in which order.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from nephila.interfaces.census import Census, DomainFigures

STEP = 500
"""Domains that are read in one step: some five milliseconds, in a thread."""
REST_SHARE, FIRST_REST_SHARE = 2.0, 0.5
"""After each step as many times its length is rested: a crawl in the same process, and whoever asks, go first."""
GROWN = 1.5
"""An order of a list that is still growing is used until there are so many times as many."""
MOST = 1_000_000
"""Domains that are kept, some 150 MB; a crawl with more of them is listed in part, and the list says so."""
LEAST_AGE_S = 5.0
AGE_FACTOR = 100.0
PATIENCE_S = 0.1
"""How long a request waits for the first walk to end before it is answered with what there is."""


@dataclass(slots=True)
class Entries:
    """What one walk has found, in columns."""

    names: list[str] = field(default_factory=list)
    pages: array[int] = field(default_factory=lambda: array("Q"))
    queued: array[int] = field(default_factory=lambda: array("Q"))
    errors: array[int] = field(default_factory=lambda: array("H"))
    delays: array[int] = field(default_factory=lambda: array("L"))
    hosts: array[int] = field(default_factory=lambda: array("L"))
    orders: dict[tuple[str, bool], array[int]] = field(default_factory=dict)
    """Places in the orders that were asked for, by column and direction."""
    at: float = 0.0
    """When the walk ended; 0 while it goes on."""
    truncated: bool = False

    def add(self, figures: Sequence[DomainFigures]) -> None:
        """Take some domains on."""
        for one in figures:
            self.names.append(one.domain)
            self.pages.append(one.pages)
            self.queued.append(one.queued)
            self.errors.append(min(one.errors, 65_535))
            self.delays.append(max(0, one.delay_ms))
            self.hosts.append(one.hosts)


SORTS: Mapping[str, Callable[[Entries], array[int]]] = MappingProxyType(
    {
        "pages": lambda entries: entries.pages,
        "queued": lambda entries: entries.queued,
        "errors": lambda entries: entries.errors,
        "delay": lambda entries: entries.delays,
        "hosts": lambda entries: entries.hosts,
    }
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of the list."""

    names: list[str]
    total: int
    """Domains that match, in all."""
    complete: bool
    """False while the first walk goes on, or where there are more domains than are kept."""


class Roster:
    """The domains of a crawl, searched and sorted."""

    def __init__(self, census: Census, now: Callable[[], float] = time.monotonic) -> None:
        self._census = census
        self._now = now
        self._entries = Entries()
        self._walking: asyncio.Task[None] | None = None
        self._took_s = 0.0

    async def list(self, *, search: str, sort: str, descending: bool, offset: int, limit: int) -> Listed:
        """The domains whose names hold `search`, in an order."""
        await self._freshen()
        entries = self._entries
        return await asyncio.to_thread(_chosen, entries, search.lower(), sort, descending, offset, limit)

    async def close(self) -> None:
        """Walk no further."""
        if self._walking is not None:
            self._walking.cancel()
            with suppress(asyncio.CancelledError):
                await self._walking

    async def _freshen(self) -> None:
        age_s = self._now() - self._entries.at
        if self._walking is None or self._walking.done():
            if self._entries.at and age_s < max(LEAST_AGE_S, AGE_FACTOR * self._took_s):
                return
            self._walking = asyncio.create_task(self._walk(), name="roster")
        if not self._entries.at:
            with suppress(TimeoutError):  # then with what there is
                async with asyncio.timeout(PATIENCE_S):
                    await asyncio.shield(self._walking)

    async def _walk(self) -> None:
        found, mark, busy_s = Entries(), b"", 0.0
        if not self._entries.at:
            self._entries = found  # the first walk is shown as it comes
        while True:
            began = time.monotonic()
            figures, mark = await asyncio.to_thread(self._census.domains, mark, STEP)
            found.add(figures)
            took_s = time.monotonic() - began
            busy_s += took_s
            found.truncated = bool(mark) and len(found.names) >= MOST
            if not mark or found.truncated:
                break
            await asyncio.sleep(took_s * (REST_SHARE if self._entries.at else FIRST_REST_SHARE))
        found.at, self._took_s = self._now(), busy_s
        self._entries = found


def _chosen(entries: Entries, search: str, sort: str, descending: bool, offset: int, limit: int) -> Listed:
    names = entries.names
    places: Sequence[int] = _ordered(entries, sort, descending=descending)
    if search:
        fits = _holding(search)
        places = [place for place in places if fits(names[place])]
    complete = bool(entries.at) and not entries.truncated
    return Listed([names[place] for place in places[offset : offset + limit]], len(places), complete)


def _holding(search: str) -> Callable[[str], bool]:
    """Whether a name holds a text: as it is kept, or as people write it where that is not ASCII."""
    if search.isascii():
        return lambda name: search in name
    return lambda name: "xn--" in name and search in ".".join(map(_written, name.split(".")))


def _written(label: str) -> str:
    try:
        return label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label


def _ordered(entries: Entries, sort: str, *, descending: bool) -> Sequence[int]:
    """All places in an order, equals by name; while the first walk goes on, as it was a little earlier."""
    known = entries.orders.get((sort, descending))
    count = len(entries.hosts)  # the last column to grow: the first walk may go on meanwhile
    if known is not None and (count == len(known) or (not entries.at and count <= GROWN * len(known))):
        return known
    if sort == "domain":
        found = sorted(range(count), key=entries.names.__getitem__, reverse=descending)
    else:
        values = SORTS[sort](entries)
        by_name = _ordered(entries, "domain", descending=False)
        found = sorted(by_name[:count], key=values.__getitem__, reverse=descending)
    order = entries.orders[sort, descending] = array("L", found)
    return order

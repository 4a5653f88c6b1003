"""Which captures are pages of the graph, and which page each URL stands for (R3).

Of each URL the newest capture counts. What redirects is no page: whatever links to it links to where it leads, at the
end of the chain, so that a redirect hands all on and costs nothing. A page that names another one as its canonical
form stands for that, where it was stored, is a page, and names no third one; then its own links do not count, for they
are those of the canonical page once more. Copies that say nothing of that stay pages of their own: somebody chose to
link to just that URL, and which of two is the original is not for the order of fetching to say.

What must stay true: the answer does not depend on the order in which captures were read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from .row import Kind
from .run import Run
from .words import NOWHERE, make_unique, places_of

MOST_HOPS = 16
"""Redirects in a row that are followed; more lead nowhere. The crawl itself follows ten."""


@dataclass(frozen=True, slots=True)
class Members:
    """The pages of a graph."""

    names: array[int]
    """Of all URLs that were captured, sorted."""
    standing: array[int]
    """For each of these the number of the page that it stands for, or `NOWHERE`."""
    nodes: list[array[int]]
    """For each run, for each of its rows: the number of the page whose links these are, or `NOWHERE`."""
    chosen: list[bytearray]
    """For each run, for each of its rows: whether it is the newest of a URL."""
    pages: int
    """How many pages there are; their numbers follow the order of runs and rows."""


def members_of(runs: Sequence[Run]) -> Members:
    """Find them. Takes 29 bytes a URL that was captured, and 13 a capture."""
    names = array("Q")
    for run in runs:
        names.frombytes(run.raw("names"))
    make_unique(names)
    chosen = _newest(runs, names)
    standing = _standing(*_pointing(runs, names, chosen))
    nodes: list[array[int]] = []
    numbers, pages = array("I", [NOWHERE]) * len(names), 0
    for run, own in zip(runs, chosen, strict=True):
        of_rows = array("I", [NOWHERE]) * run.rows
        for row, place in enumerate(places_of(names, run.column("names"))):
            if own[row] and standing[place] == place:
                of_rows[row] = numbers[place] = pages
                pages += 1
        nodes.append(of_rows)
    for place, other in enumerate(standing):
        standing[place] = NOWHERE if other == NOWHERE else numbers[other]
    return Members(names, standing, nodes, chosen, pages)


def _newest(runs: Sequence[Run], names: array[int]) -> list[bytearray]:
    """Which rows count. Of two captures at one instant it is the one that lies further on, by the names of files."""
    when, where = array("Q", bytes(8 * len(names))), array("Q", bytes(8 * len(names)))
    bases = list(accumulate((run.rows for run in runs), initial=0))
    for base, run in zip(bases, runs, strict=False):
        times = run.column("times")
        for row, place in enumerate(places_of(names, run.column("names"))):
            at = times[row] + 1  # 0 is for none
            if at > when[place] or (
                at == when[place] and _lies(runs, bases, base + row) > _lies(runs, bases, where[place])
            ):
                when[place], where[place] = at, base + row
    chosen = [bytearray(run.rows) for run in runs]
    for number in where:
        index = bisect_right(bases, number) - 1
        chosen[index][number - bases[index]] = 1
    return chosen


def _lies(runs: Sequence[Run], bases: Sequence[int], number: int) -> tuple[int, int]:
    """The file and the offset of a row, by its number over all runs."""
    index = bisect_right(bases, number) - 1
    run, row = runs[index], number - bases[index]
    return run.column("segments")[row], run.column("offsets")[row]


def _pointing(runs: Sequence[Run], names: array[int], chosen: Sequence[bytearray]) -> tuple[bytearray, array[int]]:
    """Of each URL what it is, and the place of what it points to, by a redirect or as its canonical form."""
    kinds, points = bytearray(len(names)), array("I", [NOWHERE]) * len(names)
    for run, own in zip(runs, chosen, strict=True):
        own_kinds, links = run.column("kinds"), run.column("links")
        named = array("Q", run.column("canonicals"))
        for row, (first, last) in enumerate(pairwise(accumulate(run.column("links_of"), initial=0))):
            if own_kinds[row] == Kind.MOVED:
                named[row] = links[first] if first < last else 0
        others = places_of(names, named)
        for row, place in enumerate(places_of(names, run.column("names"))):
            if own[row]:
                kinds[place], points[place] = own_kinds[row], others[row]
    return kinds, points


def _standing(kinds: bytearray, points: array[int]) -> array[int]:
    """For each URL the place of the page that it stands for, or `NOWHERE`."""

    def led(place: int) -> int:
        """The page at the end of redirects."""
        for _ in range(MOST_HOPS + 1):
            if place == NOWHERE or kinds[place] == Kind.GONE:
                return NOWHERE
            if kinds[place] == Kind.PAGE:
                return place
            place = points[place]
        return NOWHERE

    def canonical(page: int) -> int:
        """What a page names; itself where that is no other page."""
        other = NOWHERE if page == NOWHERE else led(points[page])
        return page if other == NOWHERE else other

    standing = array("I", bytes(4 * len(kinds)))
    for place in range(len(kinds)):
        page = led(place)
        other = canonical(page)
        standing[place] = other if canonical(other) == other else page
    return standing

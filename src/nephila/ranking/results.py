"""What came of a computation: `pages.ranks` and `domains.ranks`, sorted by name, mapped by whoever asks (R3).

They are derived: whoever deletes them has no ranks until the next computation, and nothing else. A reader that has one
mapped keeps what it has while another takes its place.

*The grade of a domain* is its rank on a scale that the score can use (`frontier.rank.authority`): eight steps to a
doubling above what a domain has that nobody links to, up to 256 times that. Nobody's links and links from k such
domains that link to nothing else are then 0 and log2(1 + 0.85 k) doublings: nearly what the online count of referring
domains says of the same, but a word of somebody who is heard counts for more, and one of ten thousand for less.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from math import log2
from pathlib import Path
from typing import Final, NamedTuple, Self

from .domains import DomainGraph
from .members import Members
from .power import Ranked
from .run import Run
from .sections import DamagedFileError, Sections, write_sections
from .words import Words, fingerprint_of, page_name, places_of, rest_of, text_name

PAGES, DOMAINS = "pages.ranks", "domains.ranks"
_KIND = "ranks 1"
GRADES_PER_DOUBLING: Final = 8
HIGHEST_GRADE: Final = 64


@dataclass(frozen=True, slots=True)
class Computation:
    """What is to be said of one."""

    made_at: int
    """UTC milliseconds."""
    graph: str
    """The mark of the graph that it was computed on."""
    count: int
    """Pages, or domains."""
    links: int
    """Between them."""
    damping: float
    steps: int
    change: float
    floor: float
    """The rank of what may be jumped to and nobody links to."""


class RankedPage(NamedTuple):
    """A page with its rank."""

    fingerprint: bytes
    rank: float


class RankedDomain(NamedTuple):
    """A domain with its rank."""

    name: int
    rank: float
    pages: int
    referring: int
    grade: int


def grade_of(rank: float, floor: float) -> int:
    """The grade of a domain, 0 to 64."""
    if rank <= floor or floor <= 0.0:
        return 0
    return min(round(GRADES_PER_DOUBLING * log2(rank / floor)), HIGHEST_GRADE)


def write_pages(
    folder: Path, identity: str, runs: Sequence[Run], members: Members, ranked: Ranked, said: Computation
) -> None:
    """Write the ranks of pages. Takes 41 bytes a URL that was captured."""
    rests, ranks = array("Q", bytes(8 * len(members.names))), array("d", [-1.0]) * len(members.names)
    for run, nodes in zip(runs, members.nodes, strict=True):
        own_rests = run.column("rests")
        for row, place in enumerate(places_of(members.names, run.column("names"))):
            if nodes[row] < members.pages:
                rests[place], ranks[place] = own_rests[row], ranked.ranks[nodes[row]]
    are_pages = bytes(rank >= 0.0 for rank in ranks)
    sections = {
        "names": array("Q", compress(members.names, are_pages)),
        "rests": array("Q", compress(rests, are_pages)),
        "ranks": array("d", compress(ranks, are_pages)),
    }
    write_sections(folder / PAGES, f"{_KIND} {identity}", asdict(said), sections)


def write_domains(folder: Path, identity: str, graph: DomainGraph, ranked: Ranked, said: Computation) -> None:
    """Write the ranks of domains."""
    sections = {
        "names": graph.names,
        "ranks": ranked.ranks,
        "grades": bytes(grade_of(rank, said.floor) for rank in ranked.ranks),
        "pages": array("Q", graph.pages),
        "referring": array("Q", graph.referring),
    }
    write_sections(folder / DOMAINS, f"{_KIND} {identity}", asdict(said), sections)


class _Ranks:
    """A file of ranks. Raises `DamagedFileError` for what is none, or of another crawl; FileNotFoundError."""

    def __init__(self, path: Path, identity: str) -> None:
        self._file = Sections(path, f"{_KIND} {identity}")
        try:
            self.said = Computation(**self._file.about)
            self._names, self._ranks = self._file.words("names"), self._file.floats("ranks")
            self._take()
        except (KeyError, TypeError, ValueError) as error:
            self._file.close()
            raise DamagedFileError(path.name) from error

    def _take(self) -> None:
        """What else is in it."""

    def _place(self, name: int) -> int | None:
        place = bisect_left(self._names, name)
        return place if place < len(self._names) and self._names[place] == name else None

    def _highest(self, count: int) -> list[int]:
        ranks, names = self._ranks, self._names
        return heapq.nsmallest(count, range(len(names)), key=lambda place: (-ranks[place], names[place]))

    def close(self) -> None:
        """Give the memory back."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PageRanks(_Ranks):
    """The ranks of pages."""

    def _take(self) -> None:
        self._rests = self._file.words("rests")

    def rank_of(self, fingerprint: bytes) -> float | None:
        """The rank of a page; None for one that is not among them."""
        place = self._place(page_name(fingerprint))
        return None if place is None or self._rests[place] != rest_of(fingerprint) else self._ranks[place]

    def top(self, count: int) -> list[RankedPage]:
        """Those with the highest ranks."""
        return [
            RankedPage(fingerprint_of(self._names[place], self._rests[place]), self._ranks[place])
            for place in self._highest(count)
        ]


class DomainRanks(_Ranks):
    """The ranks of domains."""

    def _take(self) -> None:
        self._grades = self._file.bytes("grades")
        self._pages, self._referring = self._file.words("pages"), self._file.words("referring")

    def of(self, domain: str) -> RankedDomain | None:
        """What is known of a domain."""
        place = self._place(text_name(domain))
        return None if place is None else self._at(place)

    def grade_of(self, domain: str) -> int | None:
        """Its grade alone."""
        place = self._place(text_name(domain))
        return None if place is None else self._grades[place]

    def top(self, count: int) -> list[RankedDomain]:
        """Those with the highest ranks."""
        return [self._at(place) for place in self._highest(count)]

    def columns(self) -> tuple[Words, memoryview[int]]:
        """The names of all, in order, and their grades: until it is closed."""
        return self._names, self._grades

    def _at(self, place: int) -> RankedDomain:
        return RankedDomain(
            self._names[place], self._ranks[place], self._pages[place], self._referring[place], self._grades[place]
        )

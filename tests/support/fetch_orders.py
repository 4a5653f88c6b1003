"""How good an order of fetching is: the share of all PageRank that it holds after a quarter of the pages.

An `Order` is anything that is told the seeds, asked for the next page, and told the links of a page that was fetched;
`fetched_first` runs it on a graph. So the orders here and a frontier on a disk are measured by the same few lines.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Protocol

from page_graphs import PageGraph
from xxhash import xxh3_64_intdigest

from nephila.frontier import rank


class Order(Protocol):
    """An order of fetching."""

    def begin(self, seeds: Sequence[int]) -> None:
        """Take the seeds; once, before all else."""

    def next(self) -> int | None:
        """The page to fetch now, each page once; None when there is no more."""

    def settle(self, page: int, links: Sequence[int]) -> None:
        """The page that was given last was fetched, and these are its links."""


def fetched_first(graph: PageGraph, order: Order, share: float = 0.25) -> list[int]:
    """The pages that an order fetches until it has that share of all of them."""
    fetched: list[int] = []
    order.begin(graph.seeds)
    while len(fetched) < round(share * len(graph.links)) and (page := order.next()) is not None:
        fetched.append(page)
        order.settle(page, graph.links[page])
    return fetched


def held_by(graph: PageGraph, order: Order, page_rank: Sequence[float]) -> float:
    """The share of all PageRank in the first quarter of the pages."""
    pages = fetched_first(graph, order)
    assert len(set(pages)) == len(pages) == round(len(page_rank) / 4)
    return sum(page_rank[page] for page in pages)


class BestFirst:
    """Orders in which each page has a worth that links raise; equals go in the order in which they were found."""

    def __init__(self, worth_of_seed: float, gain: Callable[[float, int], float]) -> None:
        self._worth_of_seed = worth_of_seed
        self._gain = gain  # what a link adds, by the worth of its page and the number of the page's links
        self._worth: dict[int, float] = {}
        self._found: dict[int, int] = {}
        self._fetched: set[int] = set()
        self._heap: list[tuple[float, int, int]] = []

    def begin(self, seeds: Sequence[int]) -> None:
        for page in seeds:
            self._add(page, self._worth_of_seed)

    def next(self) -> int | None:
        while self._heap:
            _, _, page = heapq.heappop(self._heap)  # a page's best entry comes first, its older ones are passed over
            if page not in self._fetched:
                self._fetched.add(page)
                return page
        return None

    def settle(self, page: int, links: Sequence[int]) -> None:
        gain = self._gain(self._worth[page], len(links))
        for target in links:
            self._add(target, gain)

    def _add(self, page: int, gain: float) -> None:
        worth = self._worth[page] = self._worth.get(page, 0.0) + gain
        if page not in self._fetched:
            heapq.heappush(self._heap, (-worth, self._found.setdefault(page, len(self._found)), page))


class BreadthFirst:
    """What was found first is fetched first."""

    def __init__(self) -> None:
        self._queue: deque[int] = deque()
        self._known: set[int] = set()

    def begin(self, seeds: Sequence[int]) -> None:
        self.settle(-1, seeds)

    def next(self) -> int | None:
        return self._queue.popleft() if self._queue else None

    def settle(self, page: int, links: Sequence[int]) -> None:
        self._queue.extend(target for target in links if target not in self._known)
        self._known.update(links)


def by_back_links() -> BestFirst:
    """Most links found so far first."""
    return BestFirst(0.0, lambda _worth, _links: 1.0)


def by_opic() -> BestFirst:
    """OPIC without rounding: a seed has cash 1, a fetched page gives its cash to its links in equal parts."""
    return BestFirst(1.0, lambda worth, links: worth / max(1, links))


@dataclass
class ByAuthority:
    """The order of `frontier.rank` alone: highest score first, then least depth, then a hash.

    The score is a whole number, made when a URL is met and whenever its rank moves, as the frontier does it.
    """

    graph: PageGraph
    seed: int
    points: int = 40
    ranks: dict[int, int] = field(default_factory=dict)
    known_links: int = 0
    rank_moves: int = 0
    place_moves: int = 0
    _mean: int = rank.FIRST_MEAN
    _depths: dict[int, int] = field(default_factory=dict)
    _scores: dict[int, int] = field(default_factory=dict)
    _domain_pages: dict[int, int] = field(default_factory=dict)
    _referrers: dict[int, set[int]] = field(default_factory=dict)
    _heap: list[tuple[int, int, int, int]] = field(default_factory=list)

    def begin(self, seeds: Sequence[int]) -> None:
        for page in seeds:
            self._depths[page], self.ranks[page] = 0, rank.SEED_RANK
            self._place(page)

    def next(self) -> int | None:
        while self._heap:
            negative, _, _, page = heapq.heappop(self._heap)
            if self._scores.get(page) == -negative:
                del self._scores[page]
                return page
        return None

    def settle(self, page: int, links: Sequence[int]) -> None:
        domain = self.graph.domains[page]
        self._domain_pages[domain] = self._domain_pages.get(domain, 0) + 1
        given = rank.share(self.ranks[page], len(links), self._domain_pages[domain])
        salt = rank.salt_of(self.graph.urls[page].encode(), self.seed)
        for target in links:
            part = given.inside
            if self.graph.domains[target] != domain:
                part = given.abroad
                self._referrers.setdefault(self.graph.domains[target], set()).add(domain)
            chance = rank.chance_of(self.graph.urls[target].encode(), salt)
            if target in self.ranks:
                self._raise(target, rank.raised(part, self.ranks[target], chance))
            else:
                self._depths[target], self.ranks[target] = self._depths[page] + 1, rank.first(part, chance)
                self._mean = rank.next_mean(self._mean, self.ranks[target])
                self._place(target)

    def _raise(self, page: int, new_rank: int) -> None:
        self.known_links += 1
        if new_rank != self.ranks[page]:
            self.rank_moves += 1
            self.ranks[page] = new_rank
            if page in self._scores:
                self._place(page)

    def _place(self, page: int) -> None:
        referrers = len(self._referrers.get(self.graph.domains[page], ()))
        score = round(self.points * rank.authority(self.ranks[page], self._mean, log2(1.0 + referrers)))
        if self._scores.get(page) != score:
            self.place_moves += page in self._scores
            self._scores[page] = score
            tie = xxh3_64_intdigest(self.graph.urls[page].encode(), self.seed)
            heapq.heappush(self._heap, (-score, self._depths[page], tie, page))

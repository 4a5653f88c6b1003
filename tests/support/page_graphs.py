"""Page graphs, real and made up, and the PageRank of their pages.

A graph is pages by number with their links, the registrable domain of each, and the seeds. It holds what can be
reached from the seeds.
"""

from __future__ import annotations

import gzip
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PageGraph:
    """Every page is reachable from the seeds; nobody links to itself or twice to the same page."""

    urls: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    domains: tuple[int, ...]
    seeds: tuple[int, ...]

    def page_rank(self, damping: float = 0.85, rounds: int = 40) -> list[float]:
        """By power iteration, what dangling pages hold spread evenly; 40 rounds leave an error below 0.2 %."""
        count = len(self.links)
        held = [1 / count] * count
        for _ in range(rounds):
            dangling = sum(amount for amount, links in zip(held, self.links, strict=True) if not links)
            following = [(1 - damping + damping * dangling) / count] * count
            for amount, links in zip(held, self.links, strict=True):
                part = damping * amount / max(1, len(links))
                for target in links:
                    following[target] += part
            held = following
        return held


def graph_of(
    urls: Sequence[str], links: Sequence[Sequence[int]], domains: Sequence[int], seeds: Sequence[int]
) -> PageGraph:
    """The part that can be reached from the seeds, numbered in the order of reaching."""
    number = {page: index for index, page in enumerate(seeds)}
    queue = deque(seeds)
    while queue:
        for target in links[queue.popleft()]:
            if target not in number:
                number[target] = len(number)
                queue.append(target)
    kept = {page: dict.fromkeys(number[target] for target in links[page] if target != page) for page in number}
    return PageGraph(
        tuple(urls[page] for page in number),
        tuple(tuple(targets) for targets in kept.values()),
        tuple(domains[page] for page in number),
        tuple(range(len(seeds))),
    )


def hollins(material: Path) -> PageGraph:
    """The crawl of hollins.edu of 2004, from its first page, the home page of www1."""
    text = gzip.decompress((material / "08-graph-hosts" / "hollins" / "hollins.dat.gz").read_bytes()).decode("latin-1")
    lines = text.splitlines()
    pages = int(lines[0].split()[0])
    urls = [line.split(maxsplit=1)[1].strip() for line in lines[1 : pages + 1]]
    links: list[list[int]] = [[] for _ in urls]
    for line in lines[pages + 1 :]:
        source, target = map(int, line.split())
        links[source - 1].append(target - 1)
    return graph_of(urls, links, [0] * pages, [0])


@dataclass(frozen=True)
class SiteWeb:
    """A made-up web of sites: each a tree with menus, joined by links that prefer what is linked already."""

    sites: int
    pages_of_site: int
    linking_out: float
    menu: int
    seeds: int

    def grow(self, seed: int) -> PageGraph:
        """One of these webs."""
        chance = random.Random(seed)
        sites, domains, links = self._sites(chance)
        home = [pages[0] for pages in sites]
        linked = home.copy()
        for page in chance.sample(range(len(links)), round(self.linking_out * len(links))):
            for _ in range(min(40, int(chance.paretovariate(1.1)))):
                target = chance.choice(linked)
                if chance.random() < 0.2:
                    target = chance.choice(sites[domains[target]])
                if domains[target] != domains[page]:
                    links[page].append(target)
                    linked.append(target)
        urls = [f"http://site{domain}.test/{page}" for page, domain in enumerate(domains)]
        return graph_of(urls, links, domains, chance.sample(home, self.seeds))

    def _sites(self, chance: random.Random) -> tuple[list[range], list[int], list[list[int]]]:
        """Sites of very different size, without links between them."""
        sites: list[range] = []
        domains: list[int] = []
        links: list[list[int]] = []
        for domain in range(self.sites):
            size = max(1, min(2000, int(0.35 * self.pages_of_site * chance.paretovariate(1.2))))
            pages = range(len(links), len(links) + size)
            sites.append(pages)
            domains += [domain] * size
            links += [[] for _ in pages]
            fan = chance.randint(3, 15)
            menu = pages[: 1 + chance.randint(0, min(2 * self.menu, size - 1))]
            for index, page in enumerate(pages):
                if index:
                    links[pages[(index - 1) // fan]].append(page)
                if chance.random() < 0.6:
                    links[page].extend(menu)
                links[page].extend(pages[int(size * chance.random() ** 2)] for _ in range(chance.randint(0, 6)))
        return sites, domains, links


@dataclass(frozen=True)
class AttachedWeb:
    """A made-up web without sites: each page links to earlier ones, mostly to those that are linked already."""

    pages: int
    links_of_page: int

    def grow(self, seed: int) -> PageGraph:
        """One of these webs."""
        chance = random.Random(seed)
        links: list[list[int]] = [[] for _ in range(self.pages)]
        linked = [0]
        for page in range(1, self.pages):
            links[chance.choice(linked)].append(page)
            linked.append(page)
            if chance.random() < 0.6:
                for _ in range(int(chance.paretovariate(1.3)) + chance.randint(0, self.links_of_page)):
                    links[page].append(chance.randrange(page) if chance.random() < 0.1 else chance.choice(linked))
                linked += links[page]
        return graph_of([f"http://one.test/{page}" for page in range(self.pages)], links, [0] * self.pages, [0])

"""Small graphs of pages, and their exact PageRank by another way than the crawler's: a linear system in fractions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from nephila.ranking import Kind, LinkGraph, Row, RunBuffer, page_name, rest_of, text_name, write_grades
from nephila.ranking.adjacency import Adjacency
from nephila.urls import fingerprint

SEGMENT = "a.warc.gz"


def name_of(url: str) -> int:
    return page_name(fingerprint(url, 7))


def domain_of(url: str) -> str:
    return url.partition("/")[0]


def row_of(
    url: str,
    links: Iterable[str] = (),
    *,
    at: int = 1,
    kind: Kind = Kind.PAGE,
    canonical: str = "",
    segment: str = SEGMENT,
    offset: int = 0,
) -> Row:
    """A capture of a page; URLs here are `domain/path`."""
    known = fingerprint(url, 7)
    others = dict.fromkeys(link for link in links if link != url)
    foreign = dict.fromkeys(domain_of(link) for link in others if domain_of(link) != domain_of(url))
    return Row(
        page_name(known),
        rest_of(known),
        at,
        kind,
        text_name(domain_of(url)),
        text_name(segment),
        offset,
        name_of(canonical) if canonical else 0,
        [name_of(link) for link in others],
        [text_name(domain) for domain in foreign],
    )


def buffer_of(rows: Sequence[Row], spans: Mapping[str, tuple[int, int]] | None = None) -> RunBuffer:
    buffer = RunBuffer()
    for row in rows:
        buffer.add(row)
    for segment, (start, end) in (spans or {SEGMENT: (0, 100)}).items():
        buffer.cover(segment, start, end)
    return buffer


def graph_of(folder: Path, *parts: Sequence[Row]) -> LinkGraph:
    """A graph that was read in so many goes."""
    graph = LinkGraph(folder, "crawl")
    for number, rows in enumerate(parts):
        graph.add(buffer_of(rows, {SEGMENT: (100 * number, 100 * number + 100)}))
    return graph


def web_of(pages: Mapping[str, Iterable[str]]) -> list[Row]:
    """A capture of each page, with its links."""
    return [row_of(url, links, offset=place) for place, (url, links) in enumerate(pages.items(), 1)]


def adjacency_of(links: Sequence[Sequence[int]], outside: Sequence[int] = ()) -> Adjacency:
    """A graph by numbers; `outside` has how many links of each lead nowhere."""
    sizes = array("I", map(len, links))
    more = outside or [0] * len(links)
    degrees = array("I", (size + other for size, other in zip(sizes, more, strict=True)))
    return Adjacency(degrees, sizes, array("I", (target for own in links for target in own)))


def exact_ranks(
    links: Sequence[Sequence[int]], outside: Sequence[int], jumps: Sequence[int], damping: Fraction
) -> list[Fraction]:
    """The stationary distribution of the surfer, by solving for it."""
    count, goals = len(links), sum(jumps)
    moves = [[Fraction(0)] * count for _ in range(count)]
    for node, own in enumerate(links):
        degree = len(own) + (outside[node] if outside else 0)
        stays = damping * len(own) / degree if degree else Fraction(0)
        for target in own:
            moves[node][target] += damping / degree
        for goal in range(count):
            moves[node][goal] += (1 - stays) * Fraction(jumps[goal], goals)
    # x = x P and sum(x) = 1: the first equation gives way to the sum.
    system = [[moves[column][line] - (line == column) for column in range(count)] for line in range(count)]
    system[0] = [Fraction(1)] * count
    right = [Fraction(1)] + [Fraction(0)] * (count - 1)
    for pivot in range(count):
        best = next(line for line in range(pivot, count) if system[line][pivot])
        system[pivot], system[best] = system[best], system[pivot]
        right[pivot], right[best] = right[best], right[pivot]
        for line in range(count):
            if line != pivot and system[line][pivot]:
                factor = system[line][pivot] / system[pivot][pivot]
                system[line] = [one - factor * two for one, two in zip(system[line], system[pivot], strict=True)]
                right[line] -= factor * right[pivot]
    return [right[line] / system[line][line] for line in range(count)]


def write_some_grades(path: Path, identity: str, known: Mapping[str, int]) -> Path:
    """A file of grades by domain."""
    named = {text_name(domain): grade for domain, grade in known.items()}
    names = sorted(named)
    write_grades(path, identity, array("Q", names), bytes(named[name] for name in names), 5)
    return path

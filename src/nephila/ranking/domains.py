"""The graph of registrable domains (R3).

A link from one domain to another counts once, however many pages of the one link to however many of the other. Pages
cost nothing, and a footer is on all of them; if every page had a vote, whoever publishes most would elect. A domain
costs money, and speaks once, to each that it links to in equal parts: to be heard twice as loud, somebody has to own
twice as many that others link to. (Names below a public suffix that are given away, as on ``github.io``, are domains,
too: there a farm is cheap, and each of its members has the share of the jump that every domain has, and no more.)

The jump goes to domains of which a page is stored: naming one in a link does not make it exist. Others have what links
bring them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat

from .adjacency import Adjacency
from .members import Members
from .row import Kind
from .run import Run
from .words import NOWHERE, make_unique, places_of

PAIRS_AT_ONCE = 1 << 22
"""Pairs that are gathered before those that are there twice are thrown away: 32 MB."""


@dataclass(frozen=True, slots=True)
class DomainGraph:
    """Domains that were fetched or linked to, and who links to whom."""

    names: array[int]
    """Sorted; a number stands for its place here."""
    pages: array[int]
    """Pages stored of each."""
    referring: array[int]
    """Other domains that link to each."""
    links: Adjacency

    @property
    def jumps(self) -> bytes:
        """A 1 for each domain of which a page is stored."""
        return bytes(map(bool, self.pages))


def domain_graph(runs: Sequence[Run], members: Members) -> DomainGraph:
    """Build it. Takes 24 bytes a domain, and 12 for each pair of domains that are linked."""
    names = _names(runs, members)
    pages, referring = array("I", bytes(4 * len(names))), array("I", bytes(4 * len(names)))
    pairs, most = array("Q"), PAIRS_AT_ONCE
    for run, nodes, chosen in zip(runs, members.nodes, members.chosen, strict=True):
        own = places_of(names, run.column("domains"))
        for node, domain in zip(nodes, own, strict=True):
            if node != NOWHERE:
                pages[domain] += 1
        for found in _pairs(run, nodes, chosen, own, names):
            pairs.extend(found)
            if len(pairs) > most:
                make_unique(pairs)
                most = len(pairs) + PAIRS_AT_ONCE
    make_unique(pairs)
    degrees, targets = array("I", bytes(4 * len(names))), array("I", bytes(4 * len(pairs)))
    for at, pair in enumerate(pairs):
        target = pair & NOWHERE
        degrees[pair >> 32] += 1
        referring[target] += 1
        targets[at] = target
    return DomainGraph(names, pages, referring, Adjacency(degrees, degrees, targets))


def _counts(kind: int, node: int, chosen: int) -> bool:
    """Whether the links of a row are its domain's: it is a page that stands for itself, or leads somewhere."""
    return bool(chosen) and (node != NOWHERE or kind == Kind.MOVED)


def _names(runs: Sequence[Run], members: Members) -> array[int]:
    """All domains that occur in what counts."""
    names = array("Q")
    for run, nodes, chosen in zip(runs, members.nodes, members.chosen, strict=True):
        domains, foreign, kinds = run.column("domains"), run.column("foreign"), run.column("kinds")
        ends = list(accumulate(run.column("foreign_of"), initial=0))
        for row in range(run.rows):
            if _counts(kinds[row], nodes[row], chosen[row]):
                names.append(domains[row])
                names.extend(foreign[ends[row] : ends[row + 1]])
        make_unique(names)
    return names


def _pairs(
    run: Run, nodes: array[int], chosen: bytearray, own: array[int], names: array[int]
) -> Iterator[Iterator[int]]:
    """Who links to whom in one run, row by row: the number of one above that of the other."""
    kinds = run.column("kinds")
    ends = list(accumulate(run.column("foreign_of"), initial=0))
    others = places_of(names, run.column("foreign"))
    for row in range(run.rows):
        if ends[row] < ends[row + 1] and _counts(kinds[row], nodes[row], chosen[row]):
            above = own[row] << 32
            yield map(int.__or__, repeat(above), others[ends[row] : ends[row + 1]])

"""The whole computation: from the runs of a graph to the two files of ranks (R3)."""

from __future__ import annotations

from pathlib import Path

from .adjacency import Adjacency, page_links
from .domains import domain_graph
from .graph import LinkGraph
from .members import members_of
from .power import Ranked, pagerank
from .results import DOMAINS, PAGES, Computation, write_domains, write_pages


def compute(graph: LinkGraph, folder: Path, identity: str, damping: float, now_ms: int) -> bool:
    """Compute the ranks of pages and domains, and put them in place; False where there is no page to rank.

    What was there before is removed then.
    """
    members = members_of(graph.runs)
    if not members.pages:
        for name in (PAGES, DOMAINS):
            (folder / name).unlink(missing_ok=True)
        return False
    everywhere = b"\1" * members.pages
    with page_links(graph.runs, members, folder) as links:
        ranked = pagerank(links, everywhere, damping)
        said = _said(links, everywhere, ranked, damping, graph.mark, now_ms)
    write_pages(folder, identity, graph.runs, members, ranked, said)
    domains = domain_graph(graph.runs, members)
    ranked = pagerank(domains.links, domains.jumps, damping)
    said = _said(domains.links, domains.jumps, ranked, damping, graph.mark, now_ms)
    write_domains(folder, identity, domains, ranked, said)
    return True


def _said(links: Adjacency, jumps: bytes, ranked: Ranked, damping: float, mark: str, now_ms: int) -> Computation:
    handed_on = sum(
        damping * rank * size / degree
        for rank, size, degree in zip(ranked.ranks, links.sizes, links.degrees, strict=True)
        if degree
    )
    floor = (1.0 - handed_on) / jumps.count(1)
    return Computation(now_ms, mark, len(ranked.ranks), len(links.targets), damping, ranked.steps, ranked.change, floor)

"""How much of what matters is fetched early, on a real page graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest
from fetch_orders import BreadthFirst, ByAuthority, Order, by_back_links, by_opic, held_by
from frontier_order import ByFrontier
from page_graphs import PageGraph, hollins

DRAWS = range(20)
NOISE = 0.015
"""A little more than the standard deviation between draws."""
DISK_DRAWS = range(8)
MARGIN = 0.005
"""About the standard error of the mean of eight draws."""


@pytest.fixture(scope="module")
def graph(material: Path) -> PageGraph:
    return hollins(material)


@pytest.fixture(scope="module")
def page_rank(graph: PageGraph) -> list[float]:
    return graph.page_rank()


@pytest.fixture(scope="module")
def known_orders(graph: PageGraph, page_rank: list[float]) -> dict[str, float]:
    """What the orders hold that others are measured by."""
    orders: dict[str, Order] = {"breadth first": BreadthFirst(), "back-links": by_back_links(), "OPIC": by_opic()}
    return {name: held_by(graph, order, page_rank) for name, order in orders.items()}


@pytest.mark.parametrize("points", [40, 100])
def test_the_order_by_authority_holds_more_page_rank_than_the_known_orders(
    points: int,
    graph: PageGraph,
    page_rank: list[float],
    known_orders: dict[str, float],
    say: Callable[[str], None],
) -> None:
    """R1: on hollins.edu after a quarter of the pages, in the mean of several draws, and nearly so in the worst."""
    orders = [ByAuthority(graph, draw, points) for draw in DRAWS]
    ours = [held_by(graph, order, page_rank) for order in orders]
    most = sum(sorted(page_rank)[-round(len(page_rank) / 4) :])
    say(f"{len(page_rank)} pages; {', '.join(f'{name} {share:.3f}' for name, share in known_orders.items())}")
    say(f"ours {mean(ours):.3f} ({min(ours):.3f}-{max(ours):.3f} in {len(ours)} draws); {most:.3f} if all were known")
    say(
        f"of the links to known pages {sum(order.rank_moves for order in orders) / _known(orders):.2f} moved a rank, "
        f"{sum(order.place_moves for order in orders) / _known(orders):.2f} a place"
    )
    for name, share in known_orders.items():
        assert mean(ours) > share + NOISE, name
        assert min(ours) > share - NOISE, name


def test_the_frontier_on_disk_hands_out_pages_in_such_an_order(
    graph: PageGraph,
    page_rank: list[float],
    known_orders: dict[str, float],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """R1, F6: with importance only, in the mean of several draws; here what waits moves by whole bands of ranks."""
    ours: list[float] = []
    for draw in DISK_DRAWS:
        with ByFrontier(tmp_path / str(draw), draw) as order:
            ours.append(held_by(graph, order, page_rank))
    say(f"{', '.join(f'{name} {share:.3f}' for name, share in known_orders.items())}")
    say(f"the frontier {mean(ours):.3f} ({min(ours):.3f}-{max(ours):.3f} in {len(ours)} draws)")
    for name, share in known_orders.items():
        assert mean(ours) > share + MARGIN, name
        assert min(ours) > share - 2 * NOISE, name


def _known(orders: list[ByAuthority]) -> int:
    return sum(order.known_links for order in orders)

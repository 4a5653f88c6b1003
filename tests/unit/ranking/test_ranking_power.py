"""PageRank against an exact solution, known graphs and itself."""

from __future__ import annotations

from array import array
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from link_graphs import adjacency_of, exact_ranks

from nephila.native import AVAILABLE, native
from nephila.ranking.power import MOST_STEPS, pagerank, plain_rank_step

DAMPING = 0.85


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    count = draw(st.integers(1, 9))
    nodes = st.integers(0, count - 1)
    links = [sorted(draw(st.sets(nodes, max_size=count)) - {node}) for node in range(count)]
    outside = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    jumps = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count).filter(any))
    return links, outside, jumps


@given(graphs())
def test_ranks_are_those_of_the_exact_solution(graph: tuple[list[list[int]], list[int], list[int]]) -> None:
    """R3: PageRank, with links that lead outside, pages without links, and jumps to some nodes only."""
    links, outside, jumps = graph
    found = pagerank(adjacency_of(links, outside), bytes(jumps), DAMPING, 1e-13)
    exact = exact_ranks(links, outside, jumps, Fraction(85, 100))
    assert list(found.ranks) == pytest.approx([float(rank) for rank in exact], abs=1e-11)


@given(graphs())
def test_ranks_add_up_to_one(graph: tuple[list[list[int]], list[int], list[int]]) -> None:
    """R3: what leads nowhere is handed on by a jump."""
    links, outside, jumps = graph
    found = pagerank(adjacency_of(links, outside), bytes(jumps), DAMPING)
    assert sum(found.ranks) == pytest.approx(1.0, abs=1e-12)
    assert min(found.ranks) >= 0.0


@given(graphs(), st.integers(0, 2**32))
def test_numbers_of_nodes_mean_nothing(graph: tuple[list[list[int]], list[int], list[int]], seed: int) -> None:
    """R3: another order of the same pages gives the same ranks."""
    links, outside, jumps = graph
    order = list(range(len(links)))
    Random(seed).shuffle(order)
    place = {node: at for at, node in enumerate(order)}
    moved = adjacency_of(
        [sorted(place[target] for target in links[node]) for node in order], [outside[node] for node in order]
    )
    found = pagerank(adjacency_of(links, outside), bytes(jumps), DAMPING, 1e-13).ranks
    other = pagerank(moved, bytes(jumps[node] for node in order), DAMPING, 1e-13).ranks
    assert [other[place[node]] for node in range(len(links))] == pytest.approx(list(found), abs=1e-11)


def test_the_ranks_of_known_graphs() -> None:
    """R3: a ring is even; of a star the middle has what follows from solving it by hand."""
    ring = pagerank(adjacency_of([[1], [2], [0]]), b"\1\1\1", DAMPING).ranks
    assert list(ring) == pytest.approx([1 / 3] * 3)
    star = pagerank(adjacency_of([[1, 2, 3], [0], [0], [0]]), b"\1" * 4, DAMPING, 1e-13).ranks
    base = 0.15 / 4
    middle = base * (1 + 3 * 0.85) / (1 - 0.85**2)  # m = b + 3 d l, l = b + d m / 3
    assert list(star) == pytest.approx([middle, *[base + 0.85 * middle / 3] * 3])


def test_links_that_lead_outside_take_their_share_away() -> None:
    """R3: a page with a hundred links of which one was fetched gives it a hundredth."""
    one = pagerank(adjacency_of([[1], []], [99, 0]), b"\1\1", DAMPING).ranks
    all_of_it = pagerank(adjacency_of([[1], []]), b"\1\1", DAMPING).ranks
    assert one[1] < 0.51
    assert all_of_it[1] > 0.6


def test_the_steps_are_bounded() -> None:
    found = pagerank(adjacency_of([[1], [0], [0]]), b"\1" * 3, 0.9999999, 0.0)
    assert found.steps == MOST_STEPS


def test_without_a_node_there_is_nothing_to_rank() -> None:
    with pytest.raises(ValueError, match="no node"):
        pagerank(adjacency_of([]), b"", DAMPING)


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
@given(graphs(), st.floats(0, 1))
def test_c_and_python_agree_to_the_last_bit(
    graph: tuple[list[list[int]], list[int], list[int]], damping: float
) -> None:
    links, outside, jumps = graph
    known = adjacency_of(links, outside)
    ranks = array("d", (1 / (node + 2) for node in range(len(links))))
    one, two = array("d", ranks), array("d", ranks)
    told = [
        step(ranks, known.degrees, known.sizes, known.targets, bytes(jumps), into, damping)
        for step, into in ((native.rank_step, one), (plain_rank_step, two))
    ]
    assert told[0] == told[1]
    assert one == two


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
@pytest.mark.parametrize(("targets", "sizes"), [([5], [1, 0]), ([1], [2, 0]), ([1, 0, 0], [1, 1]), ([1], [1])], ids=str)
def test_arrays_that_contradict_each_other_are_refused(targets: list[int], sizes: list[int]) -> None:
    ranks = array("d", [0.5, 0.5])
    with pytest.raises(ValueError, match="contradict"):
        native.rank_step(
            ranks, array("I", [2, 2]), array("I", sizes), array("I", targets), b"\1\1", array("d", [0, 0]), 0.85
        )

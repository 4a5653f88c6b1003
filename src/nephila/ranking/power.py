"""PageRank by power iteration (R3).

A surfer follows, with the probability of the *damping*, one of the links of the page he is on, all alike; otherwise,
and whenever there is no link or it leads outside the graph, he jumps to one of the nodes that may be jumped to, all
alike. The rank of a node is the share of his time that he spends there; all ranks add up to 1.

    rank(v) = sum over links u -> v of damping * rank(u) / links(u)  +  what is left of 1, / goals, where v is a goal

A step takes one pass over the links in the order of the nodes, and every sum is made in that order, in C as in Python:
the results are the same to the last bit. Between two steps the sum of all changes shrinks by the damping at least; when
it is below `tolerance`, what is missing to the limit is at most tolerance * damping / (1 - damping) of all rank.

Memory: 24 bytes a node (two ranks, links, links inside), and a byte for whether it is jumped to.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Final

from nephila.native import AVAILABLE, native

from .adjacency import Adjacency
from .words import Words

TOLERANCE: Final = 1e-9
"""Of all rank, in a step. Then what is wrong, of ten million pages together, is a seventeenth of one mean rank."""
MOST_STEPS: Final = 300
"""0.85 ** 128 is 1e-9: more are needed with a higher damping only, and are cut off here."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """What an iteration came to."""

    ranks: array[float]
    steps: int
    change: float
    """The sum of all changes in the last step."""


def plain_rank_step(
    ranks: array[float],
    degrees: Words,
    sizes: Words,
    targets: Words,
    jumps: bytes,
    following: array[float],
    damping: float,
) -> float:
    """One step: writes to `following` what follows from `ranks`; how much that differs."""
    for node in range(len(ranks)):
        following[node] = 0.0
    first = 0
    for node, size in enumerate(sizes):
        if size:
            part = damping * ranks[node] / degrees[node]
            for target in targets[first : first + size]:
                following[target] += part
            first += size
    total, goals = 0.0, 0
    for node, rank in enumerate(following):
        total += rank
        goals += jumps[node]
    part = (1.0 - total) / goals if goals else 0.0
    change = 0.0
    for node, before in enumerate(ranks):
        if jumps[node]:
            following[node] += part
        change += abs(following[node] - before)
    return change


rank_step = native.rank_step if AVAILABLE else plain_rank_step


def pagerank(graph: Adjacency, jumps: bytes, damping: float, tolerance: float = TOLERANCE) -> Ranked:
    """The ranks of all nodes. `jumps` has a 1 for each node that may be jumped to; there must be one."""
    goals = jumps.count(1)
    if not goals:
        raise ValueError("there is no node to begin at")
    ranks = array("d", (one / goals for one in jumps))
    following = array("d", bytes(8 * len(jumps)))
    steps, change = 0, 1.0
    while steps < MOST_STEPS and change > tolerance:
        change = rank_step(ranks, graph.degrees, graph.sizes, graph.targets, jumps, following, damping)
        ranks, following = following, ranks
        steps += 1
    return Ranked(ranks, steps, change)

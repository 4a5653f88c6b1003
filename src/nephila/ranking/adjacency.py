"""From links by name to links by number: the graph as the iteration reads it, in a file of its own (R3).

Of each page, in the order of their numbers: the numbers of the pages that it links to, sorted, each once, none its own.
Links that lead to no page (never fetched, gone, out of scope) are only counted: what a page hands to them leaves the
graph, and comes back by a jump. So a page with a hundred links of which three were fetched gives each of these a
hundredth, not a third, and nobody gains by linking to what a crawl does not take.

The file has four bytes a link, is deleted as soon as it is open, and is read from front to end by each step.
"""

from __future__ import annotations

import mmap
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from nephila.native import AVAILABLE, native

from .members import Members
from .run import Run
from .sections import refused
from .words import NOWHERE, Words, places_of

LINKS_AT_ONCE = 1 << 20
"""Links that are looked up together: 12 MB."""


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A graph by numbers."""

    degrees: array[int]
    """Links of each node, those that lead outside included."""
    sizes: array[int]
    """And those that do not."""
    targets: Words
    """Where these lead, of all nodes in order."""


def plain_join_links(
    names: Words,
    standing: Words,
    links: Words,
    counts: Words,
    nodes: Words,
    targets: array[int],
    degrees: array[int],
    sizes: array[int],
) -> int:
    """Write what rows link to into `targets`, `degrees` and `sizes`; how many targets there are.

    `counts` has the number of links of each row, `nodes` its page, or `NOWHERE` for a row that does not count.
    """
    used = first = 0
    for row, node in enumerate(nodes):
        last = first + counts[row]
        if node != NOWHERE:
            places = places_of(names, links[first:last])
            led = [NOWHERE if place == NOWHERE else standing[place] for place in places]
            own = sorted({target for target in led if target not in (NOWHERE, node)})
            targets[used : used + len(own)] = array("I", own)
            sizes[node] = len(own)
            degrees[node] = len(own) + led.count(NOWHERE)
            used += len(own)
        first = last
    return used


_join_links = native.join_links if AVAILABLE else plain_join_links


@contextmanager
def page_links(runs: Sequence[Run], members: Members, folder: Path) -> Iterator[Adjacency]:
    """The graph of pages, until the end of the block. Takes 8 bytes a page; the links are in a file in `folder`."""
    degrees, sizes = array("I", bytes(4 * members.pages)), array("I", bytes(4 * members.pages))
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            for run, nodes in zip(runs, members.nodes, strict=True):
                for part in _joined(run, nodes, members, degrees, sizes):
                    stream.write(part)
            stream.flush()
            if not stream.tell():
                yield Adjacency(degrees, sizes, array("I"))
                return
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                mapped.madvise(mmap.MADV_SEQUENTIAL)
                with memoryview(mapped) as raw, raw.cast("I") as targets:
                    yield Adjacency(degrees, sizes, targets)
    except OSError as error:
        raise refused(folder, error) from error


def _joined(
    run: Run, nodes: array[int], members: Members, degrees: array[int], sizes: array[int]
) -> Iterator[memoryview[int]]:
    """The targets of one run, some rows at a time."""
    links, counts = run.column("links"), run.column("links_of")
    ends = list(accumulate(counts, initial=0))
    first = 0
    while first < run.rows:
        last = first + 1
        while last < run.rows and ends[last + 1] - ends[first] <= LINKS_AT_ONCE:
            last += 1
        room = array("I", bytes(4 * (ends[last] - ends[first])))
        used = _join_links(
            members.names,
            members.standing,
            links[ends[first] : ends[last]],
            counts[first:last],
            nodes[first:last],
            room,
            degrees,
            sizes,
        )
        yield memoryview(room)[:used]
        first = last

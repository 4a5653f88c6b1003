"""Where a crawl keeps its state: frontier, catalogue, contents seen. Here: all of it in the crawl directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nephila.dedup import LmdbDigestIndex, SharedLearning
from nephila.engines.disk import LOCAL_DISK
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.sharing import Sharing
from nephila.frontier.estimated import recrawl_of
from nephila.frontier.policy import Policy
from nephila.interfaces.catalogue import BookedCatalogue
from nephila.interfaces.duplicates import DigestIndex, SharedDigests
from nephila.interfaces.network import SharedNames
from nephila.interfaces.renderer import Renderer, Shelf
from nephila.interfaces.repute import Repute
from nephila.model.record import SegmentId
from nephila.model.settings import Settings

from .cataloguing import identity_of, open_catalogue
from .directory import CrawlDirectory
from .evidence import Afar
from .frontiers import NodeFrontier
from .importance.grades import DirectoryRanks

if TYPE_CHECKING:
    from .ground import Ground


LEAST_AHEAD_MS = 100
"""A claim takes as long as a group or two of the frontier."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Where a crawl keeps its state: in its directory, or on the servers of a fleet."""

    frontier: NodeFrontier
    catalogue: BookedCatalogue
    duplicates: DigestIndex
    known: Callable[[], Iterable[SegmentId]]
    """Segments that were confirmed: new ones are named otherwise."""
    wire_bytes: Callable[[], int]
    """Bytes that were fetched so far."""
    shared: SharedDigests | None = None
    """`duplicates`, where workers on other machines add to them."""
    shelf: Shelf | None = None
    """What pages in browsers need of other hosts, where workers on other machines need it, too."""
    browsers: Renderer | None = None
    """The browsers of other workers, for one that has none."""
    names: SharedNames | None = None
    """Addresses that workers on other machines have learned."""
    learned: SharedLearning | None = None
    """What workers on other machines have learned of sites."""
    writer: int = 0
    """The number that segments are named by, where that is not the seat's."""
    span_ms: int = 0
    """How long leases are meant to last through the delays of their hosts; 0: such hosts are given back at once."""
    together_s: float = 0.0
    """How long pages of a lease wait to be settled in one call; 0: each is settled for itself."""
    afar: Afar | None = None
    """Where the evidence is carried away, for others to read."""


def embedded_engines(
    directory: CrawlDirectory,
    settings: Settings,
    ground: Ground,
    stack: AsyncExitStack,
    *,
    sharing: Sharing | None,
    alone: bool,
    tell: Callable[[str, str], None] | None = None,
) -> Engines:
    """Everything in the crawl directory, but for a catalogue that the settings have elsewhere; closed by `stack`.

    `alone`: no other process fetches. `tell` hears of a database that goes away and comes back.
    """
    joining = sharing is not None
    ranks = DirectoryRanks(directory.rank, ground.clock.steady_ms)
    stack.callback(ranks.close)
    policy = policy_of(settings, sharing, ranks)
    frontier = LmdbFrontier(
        directory.frontier,
        ground.clock,
        policy,
        threaded=ground.threaded,
        joining=joining,
        alone=alone,
        disk=ground.disk or LOCAL_DISK,
    )
    stack.push_async_callback(frontier.close)
    ranks.identity = identity_of(frontier.secret)
    duplicates = LmdbDigestIndex(directory.duplicates, ground.clock.boot_id(), joining=joining)
    stack.callback(duplicates.close)
    catalogue = open_catalogue(directory, settings, secret=frontier.secret, tell=tell)
    stack.callback(catalogue.close)
    return Engines(frontier, catalogue, duplicates, frontier.view.marks, catalogue.wire_bytes)


def look_ahead_ms(settings: Settings) -> int:
    """How long before their time hosts are claimed: half their rest at most, as others may want them, too."""
    return min(settings.frontier.look_ahead_ms, max(LEAST_AHEAD_MS, int(settings.politeness.delay_s * 500)))


def policy_of(settings: Settings, sharing: Sharing | None = None, repute: Repute | None = None) -> Policy:
    """What the frontier needs to know of a crawl.

    With one exchange at a time ranks that are computed meanwhile do not count: no timing may change the order (F6).
    """
    ordered = settings.fetch.concurrency == 1 and sharing is None
    return Policy(
        settings=replace(settings.frontier, look_ahead_ms=look_ahead_ms(settings)),
        base_delay_ms=int(settings.politeness.delay_s * 1000),
        max_pages_per_host=settings.limits.max_pages_per_host,
        robots=settings.robots.obey,
        random_seed=settings.random_seed,
        verify_every=settings.fetch.verify_unchanged_every,
        ordered=ordered,
        ordered_wait_ms=int(min(settings.limits.max_wait_s, 120) * 1000),
        priority=settings.priority,
        budget=settings.budget,
        traps=settings.traps,
        politeness=settings.politeness,
        recrawl=recrawl_of(settings.recrawl),
        repute=None if ordered else repute,
        target_domains=settings.limits.target_domains,
        sharing=sharing,
    )

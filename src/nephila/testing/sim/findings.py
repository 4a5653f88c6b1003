"""What must hold when the last, calm life of a crawl is over: each breach is told in a sentence.

`books` compares archive, index and catalogue; `reached` walks the web and asks what became of every URL; here are the
servers' verdict, the recount of the frontier, and what memory may hold.
"""

from __future__ import annotations

from nephila.frontier.embedded import LmdbFrontier
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.node.engines import policy_of
from nephila.testing.loop import run_virtual
from nephila.testing.recount import check_tables
from nephila.testing.web import Violation, ViolationKind

from .books import Books
from .reached import check_reached
from .scenario import TIGHT_BYTES
from .world import World

SEGMENT_BYTES = 16_384
"""One read of a connection: the budget may be passed by so much for each."""
LARGEST = 16_384
"""The oldest exchange is never held back: one answer may come whole on top of the budget."""
MOST_TOLD = 8


def findings(world: World, summary: CrawlSummary) -> list[str]:
    """Everything that is not as it must be."""
    found = _politeness(world) + _ending(world, summary) + _memory(world)
    settings = world.scenario.settings

    async def look() -> list[str]:
        frontier = LmdbFrontier(world.out / "frontier", world.clock, policy_of(settings), threaded=False)
        try:
            told = _recount(frontier)
            books = Books(world, frontier)
            told += books.check()
            told += check_reached(world, frontier, books.answers, books.cut)
        finally:
            await frontier.close()
        return told

    return found + run_virtual(look, world.clock)


def _politeness(world: World) -> list[str]:
    """What the servers say."""
    violations = [one for one in world.auditor.report().violations if not _is_excused(world, one)]
    told = [
        f"{one.kind}: {one.host}{one.target} at {one.at_ms / 1000:.3f} s, {one.detail}"
        for one in violations[:MOST_TOLD]
    ]
    return told + ([f"and {len(violations) - MOST_TOLD} more violations"] if len(violations) > MOST_TOLD else [])


def _is_excused(world: World, violation: Violation) -> bool:
    """Whether something was asked for again for a reason that its server cannot see.

    A robots.txt that is one end of a redirect: the other may have failed. A page under a tight budget: the server had
    sent all of it, and we ran out of time while we held it back.
    """
    host = violation.host
    if violation.kind is not ViolationKind.REPEAT:
        return False
    if violation.target != "/robots.txt":
        return world.scenario.settings.fetch.max_in_flight_bytes == TIGHT_BYTES
    return world.web.robots_source(host) != host or world.web.robots_borrowers(host) > 0


def _ending(world: World, summary: CrawlSummary) -> list[str]:
    if summary.stopped_by is StoppedBy.DONE:
        return []
    return [f"the calm life ended by {summary.stopped_by}: {summary.failure}; warnings: {world.warnings[-3:]}"]


def _memory(world: World) -> list[str]:
    """Bodies in flight stay within their budget, and nothing is left when a crawl has ended."""
    fetch = world.scenario.settings.fetch
    most = fetch.max_in_flight_bytes + LARGEST + SEGMENT_BYTES * min(fetch.concurrency, world.scenario.web.hosts)
    told = list(world.left_behind)
    if world.peak_in_flight_bytes > most:
        told.append(f"{world.peak_in_flight_bytes} bytes of bodies were in memory, {most} may be")
    bugs = [warning for warning in world.warnings if warning.startswith("bug")]
    return told + [f"a bug of ours was caught: {warning}" for warning in bugs[:MOST_TOLD]]


def _recount(frontier: LmdbFrontier) -> list[str]:
    """Counters and indexes of the frontier against its tables."""
    try:
        check_tables(frontier)
    except AssertionError as error:
        return [f"the frontier's books are wrong: {error}"]
    snapshot = frontier.snapshot()
    leased = snapshot.hosts_leased
    return [f"{leased} host(s) are still leased"] if leased else []

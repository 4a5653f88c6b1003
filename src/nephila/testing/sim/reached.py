"""Is every URL that could be reached done, or explained? The web is walked from the inside, and the frontier asked.

From the seeds on: a page that was stored must have brought all its links to the frontier, a redirect its target, a
sitemap what it names; a URL that the frontier holds must be completed, or say why it is not, and until when. What was
never met because the page before it was given up is explained with that page. What the scope keeps out has a note that
says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.frontier import UrlStory
from nephila.node.addressing import identifier_of
from nephila.testing.web.atlas import Spot
from nephila.testing.web.hosts import Host
from nephila.testing.web.links import family_links, links_of
from nephila.testing.web.roles import Role
from nephila.urls import Address, Identifier

from .books import Place
from .scenario import MAX_WAIT_S
from .sitemaps import TARGET as SITEMAP

if TYPE_CHECKING:
    from .world import World

ENDING_S = 2.0
"""From the moment that a crawl finds itself over to its last word: what it waits for comes nearer meanwhile. It takes
longer by what the books wait between two syncs."""
_EXPLAINED = frozenset({"dead_letter", "dropped", "refused", "parked"})


def check_reached(
    world: World, frontier: LmdbFrontier, answers: AbstractSet[Place], cut: AbstractSet[Place]
) -> list[str]:
    """URLs that nobody can explain. `answers` and `cut`: where the archive has captures, and such of half a body."""
    told: list[str] = []
    lost: list[str] = []
    closing_s = max(0.0, world.clock.elapsed_s() - world.closed_at_s)
    longest_ms = (MAX_WAIT_S - ENDING_S - closing_s) * 1000 - world.scenario.settings.archive.sync_ms
    for url, story in stories(world, frontier, cut, lost):
        problem = _unexplained(story, longest_ms)
        if problem:
            told.append(f"{url}: {problem}")
        if story.state == "completed" and (story.segment, story.offset) not in answers:
            told.append(f"{url} is completed, and its capture is not in the archive")
    return told + ([] if world.scenario.learns else [f"{url} was never admitted" for url in lost])


def _unexplained(story: UrlStory, longest_ms: float) -> str:
    """Why the state of a URL is no end; empty where it is, or where it waits for longer than that."""
    if story.state == "completed":
        return ""
    if story.state in _EXPLAINED:
        return "" if story.reason else f"{story.state} without a reason"
    wait_ms = max(story.host_wait_ms, story.due_in_ms or 0)
    if story.state in {"queued", "delayed"} and story.reason and wait_ms > longest_ms:
        return ""
    return f"is {story.state} ({story.reason or 'no reason'}), and could be asked for in {wait_ms / 1000:.0f} s"


def stories(
    world: World, frontier: LmdbFrontier, cut: AbstractSet[Place], lost: list[str]
) -> Iterator[tuple[str, UrlStory]]:
    """Every URL of the web that the crawl has or must have met, with what became of it; `lost` gets the others."""
    identifier = identifier_of(world.scenario.settings, frontier.secret)
    web = world.web
    located = [web.atlas.locate_url(url) for url in web.seeds(2)]
    queue = deque(one.spot for one in located if one is not None)
    met: set[Spot] = set()
    asked: set[int] = set()
    while queue:
        spot = queue.popleft()
        if spot in met:
            continue
        met.add(spot)
        url = web.atlas.identity(spot)
        address = identifier.identify(url)
        if not isinstance(address, Address):
            continue
        story = frontier.story(address.host, address.fingerprint)
        if story is None:
            lost.append(url)
            continue
        yield url, story
        if (story.segment, story.offset) not in cut:
            queue.extend(_next(world, spot, story))
        if spot.host not in asked:
            asked.add(spot.host)
            queue.extend(_listed(world, frontier, identifier, cut, web.hosts[spot.host]))


def _listed(
    world: World, frontier: LmdbFrontier, identifier: Identifier, cut: AbstractSet[Place], host: Host
) -> list[Spot]:
    """What the sitemap of a host has brought, if it was stored whole."""
    address = identifier.identify(world.web.atlas.origin(host) + SITEMAP)
    story = frontier.story(address.host, address.fingerprint) if isinstance(address, Address) else None
    if story is None or story.state != "completed" or story.status != 200 or (story.segment, story.offset) in cut:
        return []
    return world.network.service.sitemaps.named(host.name)


def _next(world: World, spot: Spot, story: UrlStory) -> list[Spot]:
    """Where a page leads that was stored whole."""
    atlas = world.web.atlas
    onward = atlas.onward(spot)
    if story.state != "completed":
        return []
    if onward is not None:
        return [onward] if 300 <= story.status < 400 else []
    host = atlas.hosts[spot.host]
    role = atlas.role(host, spot.page)
    if story.status != 200 or role in {Role.PDF, Role.PNG, Role.JSON} or (role is Role.NOFOLLOW and spot.step == 0):
        return []
    if role is Role.DUPLICATE:
        return [link.spot for link in family_links(atlas, world.web.documents.family(spot))]
    return [link.spot for link in links_of(atlas, spot) if not link.nofollow]

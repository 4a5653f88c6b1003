"""What a crawler ought to find: the web walked from the inside.

The walk follows the links that the model made, by the places they lead to, and asks the model what each place does. No
URL is parsed, no HTML read, no robots.txt matched: a crawler that comes to the same result has understood the web.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .atlas import SHADOW, Atlas, Spot
from .documents import DocumentMaker
from .hosts import Door, Host
from .links import family_links, links_of
from .robots import Ruling, in_forbidden_part, ruling
from .roles import RECOVERING, Role


class Expect(StrEnum):
    """What a page gives to a crawler that asks for it as often as needed."""

    PAGE = "page"
    """200 and HTML."""
    RECOVERS = "recovers"
    """429 or 503 once or twice, then 200 and HTML."""
    DOCUMENT = "document"
    """200 and something else than HTML."""
    REDIRECT = "redirect"
    LOOP = "loop"
    """A redirect that never ends."""
    NOT_FOUND = "not_found"
    """404 or 410."""
    SERVER_ERROR = "server_error"
    CUT = "cut"
    """200, but the body never comes whole."""
    NEVER = "never"
    """No answer: reset or silence before the first byte."""


_EXPECTED = {
    Role.NOT_FOUND: Expect.NOT_FOUND,
    Role.GONE: Expect.NOT_FOUND,
    Role.ERROR: Expect.SERVER_ERROR,
    Role.RESET: Expect.NEVER,
    Role.HANG: Expect.NEVER,
    Role.RESET_BODY: Expect.CUT,
    Role.HANG_BODY: Expect.CUT,
    Role.CUT: Expect.CUT,
    Role.PDF: Expect.DOCUMENT,
    Role.PNG: Expect.DOCUMENT,
    Role.JSON: Expect.DOCUMENT,
    Role.LOOP: Expect.LOOP,
    Role.SELF: Expect.LOOP,
    **dict.fromkeys(RECOVERING, Expect.RECOVERS),
}
_READABLE = frozenset({Expect.PAGE, Expect.RECOVERS, Expect.CUT})
"""Pages whose links count. Those that never come whole lead home only: nothing hangs on them."""


@dataclass(frozen=True, slots=True)
class WalkPolicy:
    """Which links the crawler under test follows; the defaults are those of `nephila crawl --scope all`."""

    scope: str = "all"
    """``all``, ``domain`` or ``host`` of the seeds."""
    obey_robots: bool = True
    obey_nofollow: bool = True
    builtin_excludes: bool = True
    skipped_extensions: tuple[str, ...] = (".pdf", ".png")
    max_depth: int = 15
    max_hops: int = 10
    pdf_links: bool = False
    """Whether it reads PDFs (X4); then ``.pdf`` is not among the skipped extensions."""
    patient: bool = True
    """Whether it waits until a robots.txt that fails at first has recovered."""


DEFAULT_POLICY = WalkPolicy()


@dataclass(frozen=True, slots=True)
class TruePage:
    """A page that the crawler asks for."""

    url: str
    """Its identity."""
    expect: Expect
    depth: int
    """Links from a seed; redirects cost none."""
    role: Role
    host: str
    family: int | None = None
    """Members of a family serve the same body."""
    near_family: int | None = None
    """Members of such a family say nearly the same."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is asked for and what is not, by identity."""

    pages: Mapping[str, TruePage]
    refused: Mapping[str, str]
    """Met but not asked for, and why: robots, robots_unavailable, unreachable, nofollow, excluded, extension, scope,
    depth, hops."""

    def urls(self, *expected: Expect) -> frozenset[str]:
        """Identities of the pages that come to one of these (of all when none is named)."""
        return frozenset(url for url, page in self.pages.items() if not expected or page.expect in expected)

    def forbidden(self) -> frozenset[str]:
        """Identities that robots.txt keeps from the crawler."""
        return frozenset(url for url, why in self.refused.items() if why in ("robots", "robots_unavailable"))

    def duplicates(self) -> list[frozenset[str]]:
        """Groups of pages that serve the same body, those with at least two members."""
        return self._families(lambda page: page.family)

    def near_duplicates(self) -> list[frozenset[str]]:
        """Groups of pages that say nearly the same, those with at least two members."""
        return self._families(lambda page: page.near_family)

    def _families(self, family_of: Callable[[TruePage], int | None]) -> list[frozenset[str]]:
        families: defaultdict[int, set[str]] = defaultdict(set)
        for url, page in self.pages.items():
            if (family := family_of(page)) is not None:
                families[family].add(url)
        return [frozenset(members) for members in families.values() if len(members) > 1]


class _Visit(NamedTuple):
    spot: Spot
    depth: int
    hops: int


def walk(
    atlas: Atlas, documents: DocumentMaker, agent: str, seeds: Sequence[Spot], policy: WalkPolicy = DEFAULT_POLICY
) -> Truth:
    """Walk the model breadth first from the seeds; redirects are followed at the depth they are met at."""
    pages: dict[str, TruePage] = {}
    refused: dict[str, str] = {}
    judge = _Judge(atlas, agent, policy, [atlas.hosts[spot.host] for spot in seeds])
    queue = deque(_Visit(spot, 0, 0) for spot in seeds)
    while queue:
        visit = queue.popleft()
        spot, url = visit.spot, atlas.identity(visit.spot)
        if url in pages:
            continue
        reason = judge.refusal(visit)
        if reason:
            refused.setdefault(url, reason)
            continue
        page = pages[url] = _page(atlas, documents, url, visit)
        onward = atlas.onward(spot)
        if onward is not None:
            queue.appendleft(_Visit(onward, visit.depth, visit.hops + 1))
        elif page.expect in _READABLE or (policy.pdf_links and page.role is Role.PDF):
            for link in family_links(atlas, page.family) if page.family is not None else links_of(atlas, spot):
                if policy.obey_nofollow and (link.nofollow or (page.role is Role.NOFOLLOW and spot.step == 0)):
                    refused.setdefault(atlas.identity(link.spot), "nofollow")
                else:
                    queue.append(_Visit(link.spot, visit.depth + 1, 0))
    return Truth(pages, {url: reason for url, reason in refused.items() if url not in pages})


def _page(atlas: Atlas, documents: DocumentMaker, url: str, visit: _Visit) -> TruePage:
    host = atlas.hosts[visit.spot.host]
    role = atlas.role(host, visit.spot.page)
    onward = atlas.onward(visit.spot) is not None
    expect = _EXPECTED.get(role, Expect.REDIRECT if onward else Expect.PAGE)
    if role is Role.PDF and visit.spot.step == SHADOW:
        expect = Expect.PAGE
    family = documents.family(visit.spot) if role is Role.DUPLICATE else None
    near_family = documents.near_family(visit.spot) if role is Role.NEAR else None
    return TruePage(url, expect, visit.depth, role, host.name, family, near_family)


class _Judge:
    """Says why a place is not asked for."""

    def __init__(self, atlas: Atlas, agent: str, policy: WalkPolicy, homes: Sequence[Host]) -> None:
        self._atlas = atlas
        self._agent = agent
        self._policy = policy
        self._domains = {host.domain for host in homes}
        self._names = {host.name for host in homes}

    def refusal(self, visit: _Visit) -> str:
        """A reason, or an empty string."""
        host, policy = self._atlas.hosts[visit.spot.host], self._policy
        role, target = self._atlas.role(host, visit.spot.page), self._atlas.target(visit.spot)
        reasons = {
            "scope": (policy.scope == "domain" and host.domain not in self._domains)
            or (policy.scope == "host" and host.name not in self._names),
            "excluded": policy.builtin_excludes and role is Role.EXCLUDED,
            "extension": target.endswith(policy.skipped_extensions),
            "depth": visit.depth > policy.max_depth,
            "hops": visit.hops > policy.max_hops,
            "unreachable": host.door is not Door.OPEN,
        }
        why = next((reason for reason, holds in reasons.items() if holds), "")
        return why or (self._robots_refusal(host, target) if policy.obey_robots else "")

    def _robots_refusal(self, host: Host, target: str) -> str:
        found = ruling(self._atlas.hosts, host, self._agent, recovered=self._policy.patient)
        if found is Ruling.UNAVAILABLE:
            return "robots_unavailable"
        if found is Ruling.NOTHING or (found is Ruling.PARTS and in_forbidden_part(target)):
            return "robots"
        return ""

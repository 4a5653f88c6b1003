"""Where everything lies: from a place in the web to its URL, and from any spelling of a URL back to the place.

A `Spot` is a page by its numbers. Its URL carries the page's number in it, so that going back needs no table: read the
number, spell the page there, compare. Every spelling that a browser or RFC 3986 takes for the same resource, and those
that differ by tracking parameters, lead to the same spot; the *identity* of a spot is its one canonical URL.

This is the model's own logic, written apart from the crawler's: the one is the yardstick of the other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from .draw import Salt, draw
from .hosts import Host, HostBook
from .roles import REDIRECTING_ROLES, Role
from .words import WORDS, slug

LANDED = -1
"""Step of the page at the end of a redirect chain."""
SHADOW = -2
"""Step of the page behind a nofollow page or a PDF, to which nothing else leads."""

TRACKERS = ("utm_source", "utm_medium", "gclid", "fbclid")
_NUMBER = re.compile(r"[-/=](\d{1,9})(?:_(\d{1,3}))?(?=/?(?:$|[.&?]))")
_FOREIGN = tuple(quote(f"/{word}/") for word in ("café", "größe", "река", "川"))
_SHELVES = {
    # A place for each kind of rule in `robots.PARTS`.
    Role.FORBIDDEN: ("/private/{name}.html", "/{name}.print", "/search?q=words&id={page}"),
    Role.EXCLUDED: ("/login?next={page}", "/admin/{name}", "/cart/{name}"),
    Role.PDF: ("/files/{name}.pdf",),
    Role.PNG: ("/files/{name}.png",),
    Role.JSON: ("/data/{name}",),
    Role.CLEANED: ("/letters/{name}",),
    Role.DUPLICATE: ("/copies/{name}.html",),
    Role.NEAR: ("/versions/{name}.html",),
}
"""Where pages of special roles are found; all others stand among the articles."""
_EXTRA_STEPS = {"/landed/": LANDED, "/shadow/": SHADOW}
"""By the first eight characters of a target."""


class Spot(NamedTuple):
    """A page by its numbers; `step` tells the pages of a redirect chain apart."""

    host: int
    page: int
    step: int = 0


class Located(NamedTuple):
    """A spot, and how the spelling that led there differed from the canonical one."""

    spot: Spot
    slashless: bool = False
    tracked: bool = False


class Atlas:
    """All pages of a spec."""

    def __init__(self, hosts: HostBook) -> None:
        self.hosts = hosts
        self._seed = hosts.spec.seed
        self._chains = hosts.spec.page_mix.chains or (2,)
        self._bounds: list[float] = []
        self._roles: list[Role] = []
        self._lay_out_roles()
        self.target = lru_cache(maxsize=1 << 16)(self._target)

    def role(self, host: Host, page: int) -> Role:
        """What a page is there for. Roles are spread evenly over hosts and pages (Roberts' R2 sequence)."""
        if page < host.articles:
            return Role.ARTICLE
        place = (
            host.number * 0.7548776662466927
            + (page - host.articles) * 0.5698402909980532
            + (self._seed % 9973) * 0.6180339887498949
        ) % 1.0
        return self._roles[bisect_right(self._bounds, place)]

    def origin(self, host: Host) -> str:
        """Scheme, host and port as they are written canonically."""
        port = self.hosts.spec.port
        return f"http://{host.name}" if port == 80 else f"http://{host.name}:{port}"

    def identity(self, spot: Spot) -> str:
        """The one canonical URL of a spot."""
        return self.origin(self.hosts[spot.host]) + self.target(spot)

    def locate(self, host: Host, target: str) -> Located | None:
        """The spot that a request target of a host leads to, None when there is no such page."""
        spot = self._named(host, target)
        if spot is not None and self.target(spot) == target:  # as it was written in most links
            return Located(spot)
        path, _, query = target.partition("?")
        path, params = unquote(path), _untracked(query)
        tracked = len(params) != len([param for param in query.split("&") if param])
        if path == "/" and not params:
            return Located(Spot(host.number, 0), tracked=tracked)
        spot = self._named(host, "?".join((path, *params)))
        return self._compare(spot, path, params, tracked=tracked) if spot else None

    def locate_url(self, url: str) -> Located | None:
        """The same for a whole URL of this web, port included."""
        match = re.fullmatch(r"http://([^/:?#]+)(?::(\d+))?(/[^?#]*)?(\?[^#]*)?(#.*)?", url, re.IGNORECASE)
        if match is None or int(match[2] or 80) != self.hosts.spec.port:
            return None
        host = self.hosts.find(match[1])
        return self.locate(host, (match[3] or "/") + (match[4] or "")) if host else None

    def onward(self, spot: Spot) -> Spot | None:
        """Where a spot redirects to, None when it does not."""
        host = self.hosts[spot.host]
        bits = draw(self._seed, Salt.TARGET, spot.host, spot.page)
        match self.role(host, spot.page):
            case Role.HOP:
                return Spot(spot.host, bits % host.articles)
            case Role.ACROSS:
                other = self.hosts[bits % len(self.hosts)]
                other = other if other.open else self.hosts[0]
                return Spot(other.number, (bits >> 20) % other.articles)
            case Role.CHAIN if spot.step >= 0:
                return spot._replace(step=spot.step + 1 if spot.step + 1 < self._chain_length(bits) else LANDED)
            case Role.LOOP:
                return spot._replace(step=1 - spot.step)
            case Role.SELF:
                return spot
            case _:
                return None

    def exists(self, spot: Spot) -> bool:
        """Whether there is such a page."""
        host = self.hosts[spot.host]
        if not 0 <= spot.page < host.pages:
            return False
        if spot.step == 0:
            return True
        role = self.role(host, spot.page)
        if role is Role.CHAIN:
            return spot.step == LANDED or 0 < spot.step < self._chain_length(
                draw(self._seed, Salt.TARGET, spot.host, spot.page)
            )
        return (role is Role.LOOP and spot.step == 1) or (role in (Role.NOFOLLOW, Role.PDF) and spot.step == SHADOW)

    def _chain_length(self, bits: int) -> int:
        return self._chains[(bits >> 24) % len(self._chains)]

    def _named(self, host: Host, target: str) -> Spot | None:
        """The spot whose numbers a target names, if there is one; whether it is spelled so is another question."""
        found = _NUMBER.findall(target)
        if not found:
            return None
        number, step = found[-1]
        extra = _EXTRA_STEPS.get(target[:8], 0)
        spot = Spot(host.number, int(number), extra or int(step or 0))
        return spot if self.exists(spot) else None

    def _compare(self, spot: Spot, path: str, params: list[str], *, tracked: bool) -> Located | None:
        own_path, _, own_query = self.target(spot).partition("?")
        own_path = unquote(own_path)
        slashless = own_path == path + "/"
        if (path != own_path and not slashless) or sorted(params) != sorted(_untracked(own_query)):
            return None
        return Located(spot, slashless, tracked)

    def _lay_out_roles(self) -> None:
        parts = [(share / len(roles), role) for share, roles in self.hosts.spec.page_mix.shares() for role in roles]
        total, so_far = sum(share for share, _ in parts), 0.0
        for share, role in parts:
            if share > 0:
                so_far += share / total
                self._bounds.append(so_far)
                self._roles.append(role)
        if self._bounds:
            self._bounds[-1] = 1.0

    def _target(self, spot: Spot) -> str:
        """The canonical path and query of a spot."""
        if spot.page == 0:
            return "/"
        bits = draw(self._seed, Salt.PATH, spot.host, spot.page)
        name = f"{slug(bits)}-{spot.page}"
        host = self.hosts[spot.host]
        if spot.page < host.articles:  # most pages: not a word more than needed
            return _common_target(bits >> 40, name, spot.page)
        if spot.step in (LANDED, SHADOW):
            return f"/{'landed' if spot.step == LANDED else 'shadow'}/{name}.html"
        role = self.role(host, spot.page)
        if role in REDIRECTING_ROLES and role is not Role.CLEANED:
            return f"/go/{spot.page}_{spot.step}" if spot.step else f"/go/{spot.page}"
        shelves = _SHELVES.get(role)
        if shelves is None:
            return _common_target(bits >> 40, name, spot.page)
        return shelves[(bits >> 40) % len(shelves)].format(name=name, page=spot.page)


def _common_target(bits: int, name: str, page: int) -> str:
    word, kind = WORDS[bits % len(WORDS)], (bits >> 8) % 12
    if kind < 7:
        return f"/{word}/{name}.html" if kind < 4 else f"/{word}/{name}"
    match kind:
        case 7:
            return f"/guide/{name}/"
        case 8:
            return f"/item?id={page}&view={word}"
        case 9:
            return f"{_FOREIGN[bits % len(_FOREIGN)]}{name}"
        case 10:
            return f"/{name}.print.html"
        case _:
            return f"/private/open/{name}.html"


def _untracked(query: str) -> list[str]:
    return [param for param in query.split("&") if param and param.partition("=")[0] not in TRACKERS]

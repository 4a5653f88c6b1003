"""Which page leads where, before anybody spells it as HTML.

Articles are the trunk: the articles of a host form a tree with its home page as the root, every other page hangs on one
of them, home pages introduce other hosts and their own sister hosts. So everything can be reached from any open host's
home page by some way, except what is meant to be hidden. The remaining links of an article go anywhere, to a few
popular pages more often than to others. Pages with roles are leaves: they lead back home, so that nobody's
reachability hangs on whether a broken answer was read.
"""

from __future__ import annotations

from typing import NamedTuple

from .atlas import SHADOW, Atlas, Spot
from .draw import Salt, draw
from .hosts import Host
from .roles import Role

_LOCAL_SHARE = 7
"""Of ten links that go anywhere, so many stay on the host."""


class Link(NamedTuple):
    """One link of a page."""

    spot: Spot
    nofollow: bool = False
    bits: int = 0
    """Chance for whoever spells it."""


def links_of(atlas: Atlas, spot: Spot) -> list[Link]:
    """The links of an HTML page or a PDF."""
    host = atlas.hosts[spot.host]
    role = atlas.role(host, spot.page)
    if role is Role.ARTICLE:
        return menu_links(atlas, host) + article_links(atlas, host, spot.page)
    home = Link(Spot(host.number, 0))
    trunk = Link(Spot(host.number, (spot.page - host.articles) % host.articles))
    if role in (Role.NOFOLLOW, Role.PDF) and spot.step == 0:
        return [home, trunk, Link(spot._replace(step=SHADOW))]
    return [home, trunk]


def menu_links(atlas: Atlas, host: Host) -> list[Link]:
    """The menu that stands on every article of a host: most of a page's links, as on real sites."""
    spec = atlas.hosts.spec
    links = [Link(Spot(host.number, 0), bits=draw(spec.seed, Salt.SPELLING, host.number, 1))]
    links += [_link_anywhere(atlas, host, -1, place) for place in range(1, _menu_size(atlas))]
    return links


def article_links(atlas: Atlas, host: Host, article: int) -> list[Link]:
    """The links of one article beside the menu."""
    spec = atlas.hosts.spec
    fan_out = max(2, spec.links_per_page // 4)
    first = article * fan_out + 1
    pages = list(range(first, min(first + fan_out, host.articles)))
    pages += range(host.articles + article, host.pages, host.articles)
    links = [_local_link(atlas, host, page, draw(spec.seed, Salt.SPELLING, page, article)) for page in pages]
    if article == 0:
        links += [
            Link(Spot(guest.number, 0), bits=draw(spec.seed, Salt.SPELLING, guest.number))
            for guest in (*atlas.hosts.sisters(host), *atlas.hosts.guests(host))
        ]
    wanted = spec.links_per_page - _menu_size(atlas)
    return links + [_link_anywhere(atlas, host, article, place) for place in range(len(links), wanted)]


def family_links(atlas: Atlas, family: int) -> list[Link]:
    """The links in the body that a family of duplicates shares: to home pages."""
    seed, count = atlas.hosts.spec.seed, len(atlas.hosts)
    numbers = (draw(seed, Salt.FAMILY, family, place) % count for place in range(3))
    return [Link(Spot(number, 0)) for number in numbers if atlas.hosts[number].open]


def _menu_size(atlas: Atlas) -> int:
    return atlas.hosts.spec.links_per_page * 2 // 3


def _link_anywhere(atlas: Atlas, host: Host, article: int, place: int) -> Link:
    bits = draw(atlas.hosts.spec.seed, Salt.LINK, host.number << 32 | (article + 1), place)
    if bits % 10 < _LOCAL_SHARE:
        popularity = (bits >> 8 & 0xFFFF) / 0x10000
        return _local_link(atlas, host, int(popularity * popularity * popularity * host.pages), bits >> 24)
    other = atlas.hosts[(bits >> 8) % len(atlas.hosts)]
    return Link(Spot(other.number, (bits >> 24) % other.articles), bits=bits >> 24)


def _local_link(atlas: Atlas, host: Host, page: int, bits: int) -> Link:
    hidden = page >= host.articles and atlas.role(host, page) is Role.HIDDEN
    return Link(Spot(host.number, page), hidden, bits)

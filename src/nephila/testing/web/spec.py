"""What a simulated web is made of, in one frozen noun: the same spec gives the same web, byte for byte.

Shares are fractions: of hosts in `HostMix`, of pages in `PageMix`, of answers in `WireMix`. Every phenomenon can be
switched off by a share of 0 or an empty tuple, and made the rule by a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from .roles import FAILING_ROLES, REDIRECTING_ROLES, Role
from .trap_sites import TrapSite


class RobotsKind(StrEnum):
    """What a host answers to /robots.txt, and so what it allows."""

    MISSING = "missing"
    """404: everything is allowed."""
    OPEN = "open"
    """An empty Disallow: everything is allowed."""
    PARTS = "parts"
    """Parts are forbidden, with wildcards, $ and a longer Allow."""
    DELAY = "delay"
    """Parts, and a Crawl-delay."""
    OURS = "ours"
    """Nothing for others; two groups of our own, to be merged, forbid parts."""
    BANNED = "banned"
    """Everything for others, nothing for us."""
    DENIED = "denied"
    """403: a 4xx means that everything is allowed (RFC 9309, 2.3.1.3)."""
    BROKEN = "broken"
    """500 for ever: nothing may be fetched."""
    BUSY = "busy"
    """503 twice, then parts."""
    MOVED = "moved"
    """Redirects to the robots.txt of another host, whose rules count."""
    BOM = "bom"
    """Parts, behind a byte order mark."""
    HUGE = "huge"
    """Parts; past 500 KiB, where nobody reads any more, everything would be forbidden."""
    HTML = "html"
    """200 with a web page: no rules in it, so everything is allowed."""
    SLOW = "slow"
    """Parts, after a long wait."""
    SIGNAL = "signal"
    """Parts, and Content-Signal lines."""


_K = RobotsKind
MIXED_ROBOTS = (
    *(_K.PARTS, _K.MISSING, _K.OPEN, _K.DELAY, _K.OURS, _K.PARTS, _K.DENIED, _K.BANNED, _K.MOVED, _K.BOM),
    *(_K.PARTS, _K.HUGE, _K.HTML, _K.BUSY, _K.OPEN, _K.SLOW, _K.SIGNAL, _K.DELAY, _K.BROKEN, _K.MISSING),
)
"""Any twenty neighbouring hosts have every kind."""


@dataclass(frozen=True, slots=True)
class HostMix:
    """What hosts are like."""

    robots: tuple[RobotsKind, ...] = MIXED_ROBOTS
    """Dealt out to the hosts in turn; the seed decides who begins."""
    subhosts: float = 0.2
    """Hosts that belong to the registrable domain of a neighbour: www., blog., ..."""
    shared_addresses: float = 0.3
    """Hosts that live on a server with others."""
    max_addresses: int = 0
    """At most so many distinct addresses in all (0: no limit); a real server needs a listening socket for each."""
    slow: float = 0.04
    """Hosts that take `Timing.slow_ms` for every answer."""
    refusing: float = 0.03
    """Hosts whose port is closed."""
    stalling: float = 0.0
    """Hosts that never finish connecting."""
    nameless: float = 0.03
    """Hosts that are linked to and have no name in the DNS."""
    closing: float = 0.2
    """Hosts that close the connection after every answer."""
    skew: float = 0.7
    """0: all hosts are equally large; 1: sizes are spread exponentially."""


@dataclass(frozen=True, slots=True)
class PageMix:
    """What pages are like. What these shares leave over are ordinary articles, which carry the links."""

    failing: float = 0.05
    failures: tuple[Role, ...] = FAILING_ROLES
    redirecting: float = 0.06
    redirections: tuple[Role, ...] = REDIRECTING_ROLES
    chains: tuple[int, ...] = (2, 3, 5, 12)
    """Lengths of redirect chains. Crawlers give up after ten (H2)."""
    duplicate: float = 0.06
    """Members of families that serve one body at several URLs, on one host or on several."""
    dripping: float = 0.01
    """Pages that arrive at `Timing.drip_bytes_s`."""
    document: float = 0.03
    """PDF, PNG, JSON."""
    forbidden: float = 0.06
    """In the parts that many robots.txt forbid; served all the same, to those who ask."""
    noindex: float = 0.02
    nofollow: float = 0.02
    """Pages with a robots nofollow; they alone lead to one more page each."""
    hidden: float = 0.02
    """Pages that only rel=nofollow links lead to."""
    excluded: float = 0.02
    """/login, /admin/, /cart/."""
    canonical: float = 0.02
    """Pages that name another one as canonical."""
    near: float = 0.0
    """Members of families that say nearly the same: copies with another time and another advertisement (D3)."""

    def shares(self) -> tuple[tuple[float, tuple[Role, ...]], ...]:
        """Each share with the roles that divide it evenly."""
        return (
            (self.failing, self.failures),
            (self.redirecting, self.redirections),
            (self.duplicate, (Role.DUPLICATE,)),
            (self.dripping, (Role.DRIP,)),
            (self.document, (Role.PDF, Role.PNG, Role.JSON)),
            (self.forbidden, (Role.FORBIDDEN,)),
            (self.noindex, (Role.NOINDEX,)),
            (self.nofollow, (Role.NOFOLLOW,)),
            (self.hidden, (Role.HIDDEN,)),
            (self.excluded, (Role.EXCLUDED,)),
            (self.canonical, (Role.CANONICAL,)),
            (self.near, (Role.NEAR,)),
        )


@dataclass(frozen=True, slots=True)
class WireMix:
    """How answers are written."""

    messy_links: float = 0.4
    """Links written otherwise than as a plain path or a plain URL."""
    compressed: float = 0.6
    """Answers with a content coding (of those that the client accepts)."""
    odd_framing: float = 0.4
    """Answers that are chunked or ended by closing, not by Content-Length."""
    odd_charset: float = 0.25
    """Articles not in UTF-8 said by the header."""
    validators: float = 0.5
    """Articles with ETag, Last-Modified or both."""
    lying: float = 0.05
    """Articles whose validators are wrong."""
    changing: float = 0.1
    """Articles whose content changes with time."""
    base_href: float = 0.1
    """Articles with a base element."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things take in this web. Real webs are slower; tests scale it to their patience."""

    latency_ms: float = 20.0
    """Middle of the time to the first byte; hosts differ by a factor of two either way."""
    slow_ms: float = 2500.0
    """Time to the first byte of slow hosts and slow robots.txt."""
    drip_bytes_s: float = 2000.0
    """Rate of pages that drip."""
    crawl_delay_s: float = 2.0
    """The longest Crawl-delay; hosts ask for this, half or a quarter of it."""
    retry_after_s: float = 2.0
    change_s: float = 3600.0
    """The shortest interval at which a changing page changes; others take 4 or 24 times as long."""
    idle_s: float = 15.0
    """An idle connection is closed by the server after so long."""


@dataclass(frozen=True, slots=True)
class WebSpec:
    """A web, wholly described."""

    seed: int
    hosts: int = 50
    pages: int = 2000
    """In all; robots.txt, redirect hops and the like are extra."""
    port: int = 80
    """Where all hosts are served: it is part of every absolute link."""
    agent: str = "Nephila"
    """The product token that robots.txt files single out."""
    page_bytes: int = 3000
    """Middle size of an article; they differ by half of it either way."""
    links_per_page: int = 20
    host_mix: HostMix = HostMix()
    page_mix: PageMix = PageMix()
    wire: WireMix = WireMix()
    timing: Timing = Timing()
    traps: tuple[TrapSite, ...] = ()
    """Sites of endless pages, each at a host of its own beside the others (see `trap_sites`)."""

    def __post_init__(self) -> None:
        if self.hosts < 1 or self.pages < self.hosts:
            raise ValueError("a web needs at least one host, and at least one page for each host")
        if not self.host_mix.robots:
            raise ValueError("name at least one kind of robots.txt")
        if sum(share for share, _ in self.page_mix.shares()) > 0.9:
            raise ValueError("at least a tenth of the pages must be articles: they carry the links")

    @classmethod
    def standard(cls, seed: int) -> WebSpec:
        """50 hosts, 2,000 pages, mixed robots, redirects, duplicates, 5 % failing URLs."""
        return cls(seed)

    @classmethod
    def plain(cls, seed: int, *, hosts: int, pages: int, page_bytes: int = 3000, links_per_page: int = 20) -> WebSpec:
        """Nothing but articles on fast, open hosts: what speed is measured on."""
        return cls(
            seed,
            hosts,
            pages,
            page_bytes=page_bytes,
            links_per_page=links_per_page,
            host_mix=HostMix(
                robots=(RobotsKind.OPEN,),
                subhosts=0,
                shared_addresses=0,
                slow=0,
                refusing=0,
                nameless=0,
                closing=0,
                skew=0,
            ),
            page_mix=PageMix(0, (), 0, (), (), 0, 0, 0, 0, 0, 0, 0, 0, 0),
            wire=WireMix(0, 0, 0, 0, 0, 0, 0, 0),
            timing=Timing(latency_ms=0),
        )

    def at_port(self, port: int) -> WebSpec:
        """The same web, served at another port."""
        return replace(self, port=port)

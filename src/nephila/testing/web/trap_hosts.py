"""The trap sites of a web at their hosts: names, addresses, answers, and the server's own count of what was wasted.

Each site has a host and a registrable domain of its own, beside the numbered hosts, which it changes in nothing. A
request is *wasted* when there is nothing real behind its URL, or when the same real content was served before under
another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from .listed_sites import ListedSite
from .script_sites import BundleSite, FramedSite, ScriptSite
from .spec import WebSpec
from .trap_sites import SitePage, TrapSite
from .wire import ServedAnswer, write_answer
from .words import SentenceBank

_PAGES_KEPT = 64
_NOT_FOUND = b"<!doctype html><title>404</title><h1>404</h1>"


@dataclass(frozen=True, slots=True)
class TrapHost:
    """A site and where it is served."""

    name: str
    address: str
    site: TrapSite


@dataclass(frozen=True, slots=True)
class TrapFigures:
    """What one site saw."""

    requests: int
    wasted: int
    found: int
    """Different real contents that were served."""
    real_pages: int


class TrapBook:
    """All trap sites of a spec."""

    def __init__(self, spec: WebSpec) -> None:
        self._port = spec.port
        self._latency_s = spec.timing.latency_ms / 1000
        self._bank = SentenceBank(spec.seed)
        named = (
            TrapHost(_name(site, number), f"127.150.{number // 250 + 1}.{number % 250 + 1}", site)
            for number, site in enumerate(spec.traps)
        )
        self._hosts = {host.name: host for host in named}
        self._page = lru_cache(maxsize=_PAGES_KEPT)(self._make)

    def __iter__(self) -> Iterator[TrapHost]:
        return iter(self._hosts.values())

    def find(self, name: str) -> TrapHost | None:
        """The host of that name."""
        return self._hosts.get(name.lower().removesuffix("."))

    def home(self, host: TrapHost) -> str:
        """The URL of its home page."""
        return f"http://{host.name}/" if self._port == 80 else f"http://{host.name}:{self._port}/"

    def page(self, host: TrapHost, target: str) -> SitePage | None:
        """What a site has at a target."""
        return self._page(host.name, target)

    def answer(
        self, host: TrapHost, target: str, headers: Mapping[str, str] | None = None, now: int = 0
    ) -> ServedAnswer:
        """What the host answers; `now` is in UTC milliseconds."""
        if isinstance(host.site, ListedSite | ScriptSite | FramedSite | BundleSite):
            served = host.site.serve(target, headers or {}, now, self.home(host)[:-1], self._bank)
            return served or write_answer(404, [("Content-Type", "text/html")], _NOT_FOUND)
        if target == "/robots.txt":
            return write_answer(200, [("Content-Type", "text/plain")], b"User-agent: *\nDisallow:\n")
        page = self.page(host, target)
        content_type = [("Content-Type", "text/html; charset=utf-8")]
        if page is None:
            return write_answer(404, content_type, _NOT_FOUND)
        if page.location:
            return write_answer(301, [("Location", page.location)], b"")
        return write_answer(200, content_type, page_body(page))

    @property
    def latency_s(self) -> float:
        """Time to the first byte."""
        return self._latency_s

    def _make(self, name: str, target: str) -> SitePage | None:
        return self._hosts[name].site.page(target, self._bank)


@dataclass(slots=True)
class _Ledger:
    requests: int = 0
    wasted: int = 0
    found: set[str] = field(default_factory=set)


class TrapWitness:
    """Counts on the servers' side what was asked of the trap sites."""

    def __init__(self, book: TrapBook) -> None:
        self._book = book
        self._ledgers = {host.name: _Ledger() for host in book}

    def asked(self, host: TrapHost, target: str) -> None:
        """A page was asked for; robots.txt does not count, nor does the sitemap that every host is asked for."""
        if target in {"/robots.txt", "/sitemap.xml"}:
            return
        if isinstance(host.site, ScriptSite) and host.site.is_part(target):
            return
        ledger = self._ledgers[host.name]
        page = self._book.page(host, target)
        real = page.real if page else ""
        ledger.requests += 1
        ledger.wasted += not real or real in ledger.found
        if real:
            ledger.found.add(real)

    def figures(self) -> dict[str, TrapFigures]:
        """By host name."""
        return {
            host.name: TrapFigures(ledger.requests, ledger.wasted, len(ledger.found), host.site.real_pages)
            for host, ledger in zip(self._book, self._ledgers.values(), strict=True)
        }


def _name(site: TrapSite, number: int) -> str:
    """The host of a site: a domain of its own, unless its label is a whole name already."""
    return site.label if site.label.endswith(".test") else f"{site.label}-{number}.test"


def page_body(page: SitePage) -> bytes:
    """A page of a site as HTML; the links are numbered, so that their texts tell nothing."""
    links = "\n".join(f'<li><a href="{escape(href)}">link {n}</a></li>' for n, href in enumerate(page.links))
    canonical = f'<link rel="canonical" href="{escape(page.canonical)}">' if page.canonical else ""
    head = f"<!doctype html><html lang=en><head><title>{escape(page.title)}</title>{canonical}</head>"
    body = f"<body><h1>{escape(page.title)}</h1><p>{escape(page.text)}</p>\n<ul>\n{links}\n</ul></body></html>\n"
    return (head + body).encode()

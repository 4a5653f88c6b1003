"""Sites whose pages are found by their sitemaps and feeds alone, honest ones and others (X3).

The home page leads to two of the pages; all the others stand only in lists. How a site names its lists, and whether the
dates in them are true, is told by its fields: that is the truth by which a crawler is judged. Pages change with time,
and lists with them; lists have validators that are right.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from enum import StrEnum
from functools import lru_cache

from .draw import Salt, draw
from .trap_sites import SitePage
from .wire import ServedAnswer, write_answer
from .words import SentenceBank, title

FORBIDDEN = "/private/report"
"""Stands in the lists as well; robots.txt keeps everybody from it."""
INDEX, FEED = "/maps/index.xml", "/news/feed.xml"
PARTS = ("/maps/one.xml.gz", "/maps/two.xml", "/maps/three.txt")
_URLSET = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
_LINKED = 2
_HOUR_MS = 3_600_000


class Naming(StrEnum):
    """How a site names its lists."""

    ROBOTS = "robots"
    """robots.txt names an index of three sitemaps: compressed, plain and text."""
    GUESS = "guess"
    """There is a sitemap.xml, and nobody says so."""
    FEED = "feed"
    """The home page names a feed."""


class Dates(StrEnum):
    """What a site says of the last change of its pages."""

    TRUE = "true"
    RESTLESS = "restless"
    """Always a new date, while the pages stay as they are."""
    SILENT = "silent"
    """Always the same date, while the pages change."""


@dataclass(frozen=True, slots=True)
class ListedSite:
    """One site."""

    pages: int = 30
    naming: Naming = Naming.ROBOTS
    dates: Dates = Dates.TRUE
    change_s: float = 0.0
    """How long a page stays as it is; 0 for ever. Pages change one after the other, not all at once."""
    label: str = "listed"

    @property
    def real_pages(self) -> int:
        """The home page and all others."""
        return 1 + self.pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """What a target holds, at the beginning of time."""
        return self._page(target, bank, 0)

    def lastmod_ms(self, number: int, now_ms: int) -> int:
        """When a page is said to have changed last."""
        if self.dates is Dates.RESTLESS:
            return now_ms - now_ms % _HOUR_MS
        return self._changed_ms(number, 0 if self.dates is Dates.SILENT else now_ms)

    def serve(
        self, target: str, headers: Mapping[str, str], now_ms: int, origin: str, bank: SentenceBank
    ) -> ServedAnswer | None:
        """What is sent for a target; None for a 404."""
        if target == "/robots.txt":
            line = f"Sitemap: {origin}{INDEX}\n" if self.naming is Naming.ROBOTS else ""
            text = f"User-agent: *\nDisallow: /private/\n{line}"
            return write_answer(200, [("Content-Type", "text/plain")], text.encode())
        found = self._list(target, now_ms, origin)
        if found is not None:
            content_type, body = found
            etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            known = headers.get("if-none-match") == etag
            return write_answer(
                304 if known else 200, [("Content-Type", content_type), ("ETag", etag)], b"" if known else body
            )
        page = self._page(target, bank, now_ms)
        if page is None:
            return None
        feed = f'<link rel="alternate" type="application/rss+xml" href="{FEED}">' if self.naming is Naming.FEED else ""
        links = "".join(f'<li><a href="{href}">on</a></li>' for href in page.links)
        html = (
            f"<!doctype html><html><head><title>{page.title}</title>{feed}</head><body><p>{page.text}</p>"
            f"<ul>{links}</ul></body></html>"
        )
        return write_answer(200, [("Content-Type", "text/html; charset=utf-8")], html.encode())

    def _page(self, target: str, bank: SentenceBank, now_ms: int) -> SitePage | None:
        if target == "/":
            return SitePage("Home", "Look at our sitemap.", [f"/story/{n}" for n in range(1, _LINKED + 1)], "/")
        match = re.fullmatch(r"/story/([1-9]\d*)", target)
        if match is None or int(match[1]) > self.pages:
            return None
        number = int(match[1])
        bits = draw(67, Salt.TEXT, 70_000 + number, self._version(number, now_ms))
        return SitePage(title(bits), " ".join(bank.passages(bits, 600)), ["/"], target)

    def _version(self, number: int, now_ms: int) -> int:
        if not self.change_s or self.dates is Dates.RESTLESS or not now_ms:
            return 0
        return int((now_ms / 1000 + number * 977) // self.change_s)

    def _changed_ms(self, number: int, now_ms: int) -> int:
        if not self.change_s or not now_ms:
            return 1_700_000_000_000
        return int((self._version(number, now_ms) * self.change_s - number * 977) * 1000)

    def _list(self, target: str, now_ms: int, origin: str) -> tuple[str, bytes] | None:
        numbers = range(1, self.pages + 1)
        match self.naming, target:
            case Naming.ROBOTS, "/maps/index.xml":
                maps = "".join(f"<sitemap><loc>{origin}{part}</loc></sitemap>\n" for part in PARTS)
                found = "application/xml", f"<sitemapindex>\n{maps}</sitemapindex>".encode()
            case Naming.ROBOTS, "/maps/one.xml.gz":
                found = "application/octet-stream", _packed(self._urlset(numbers[::3], now_ms, origin))
            case Naming.ROBOTS, "/maps/two.xml":
                found = "text/xml", self._urlset(numbers[1::3], now_ms, origin)
            case Naming.ROBOTS, "/maps/three.txt":
                found = "text/plain", "\n".join(f"{origin}/story/{n}" for n in numbers[2::3]).encode()
            case Naming.GUESS, "/sitemap.xml":
                found = "application/xml", self._urlset(numbers, now_ms, origin)
            case Naming.FEED, "/news/feed.xml":
                found = "application/rss+xml", self._feed(numbers, now_ms, origin)
            case _:
                return None
        return found

    def _urlset(self, numbers: range, now_ms: int, origin: str) -> bytes:
        entries = [f"<url><loc>{origin}{FORBIDDEN}</loc></url>"]
        for number in numbers:
            at = datetime.fromtimestamp(self.lastmod_ms(number, now_ms) / 1000, UTC).isoformat(timespec="seconds")
            entries.append(f"<url><loc>{origin}/story/{number}</loc><lastmod>{at}</lastmod></url>")
        return (_URLSET + "\n".join(entries) + "\n</urlset>\n").encode()

    def _feed(self, numbers: range, now_ms: int, origin: str) -> bytes:
        items = "".join(
            f"<item><title>{n}</title><link>{origin}/story/{n}</link>"
            f"<pubDate>{formatdate(self.lastmod_ms(n, now_ms) / 1000, usegmt=True)}</pubDate></item>\n"
            for n in numbers
        )
        head = f"<link>{origin}/</link><description>All that there is.</description>"
        return f'<rss version="2.0"><channel><title>News</title>{head}\n{items}</channel></rss>'.encode()


@lru_cache(maxsize=64)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 1, mtime=0)

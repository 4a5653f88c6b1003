"""The ranks of an archive found a second time: read by warcio, by names instead of numbers, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from warcio.archiveiterator import ArchiveIterator

from nephila.frontier.embedded import LmdbFrontierView
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of
from nephila.node.clock import SystemClock
from nephila.urls import Address, Identifier, registrable_domain

Graph = dict[str, tuple[set[str], int]]
"""Where each leads to, and how many of its links lead nowhere."""
QUIET = {"nofollow", "ugc", "sponsored"}


@dataclass
class Capture:
    """One capture as its records tell it."""

    url: str
    status: str
    location: str
    date: str
    lines: list[str]

    def said(self, name: str) -> str:
        return next((line.partition(": ")[2] for line in self.lines if line.startswith(f"{name}: ")), "")

    @property
    def kind(self) -> str:
        """What it says of its URL; nothing where it says nothing."""
        if self.said("robots-origin") or self.said("visited-page"):
            return ""
        if self.status in {"404", "410"} or any(map(self.said, ("note-softNotFound", "note-notFoundProbe"))):
            return "gone"
        if self.status[0] == "2":
            return "gone" if self.said("note-listing") else "page"
        return "moved" if self.status in {"301", "302", "303", "307", "308"} else ""

    def votes(self) -> Iterator[str]:
        if "nofollow" in self.said("note-directives"):
            return
        for line in self.lines:
            url, tag, *rel = line.removeprefix("outlink: ").split() or ("", "")
            if line.startswith("outlink: ") and tag in {"a", "area", "frame", "meta"} and not QUIET & set(rel):
                yield url


def captures(out: Path) -> Iterator[Capture]:
    for path in sorted((out / "warc").glob("*.warc.gz")):
        status = location = date = ""
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type in {"response", "revisit"}:
                    status = record.http_headers.get_statuscode()
                    location = record.http_headers.get_header("Location") or ""
                    date = record.rec_headers.get_header("WARC-Date")
                elif record.rec_type == "metadata":
                    lines = record.raw_stream.read().decode("utf-8", "replace").split("\r\n")
                    yield Capture(record.rec_headers.get_header("WARC-Target-URI"), status, location, date, lines)


class Reread:
    """What each URL is by its newest capture."""

    def __init__(self, identifier: Identifier) -> None:
        self._identifier = identifier
        self._dates: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.links: dict[str, set[str]] = {}
        self.canonicals: dict[str, str] = {}

    def key(self, url: str) -> str:
        address = self._identifier.identify(url) if url else None
        return address.key if isinstance(address, Address) else ""

    def take(self, capture: Capture) -> None:
        own, kind = self.key(capture.url), capture.kind
        target = self.key(urljoin(capture.url, capture.location)) if kind == "moved" else ""
        if not kind or target == own or capture.date < self._dates.get(own, ""):
            return
        self._dates[own], self.kinds[own] = capture.date, kind
        self.links[own] = {target} if target else {self.key(url) for url in capture.votes()} - {own, ""}
        self.canonicals[own] = self.key(capture.said("note-canonical")) if kind == "page" else ""

    def led(self, one: str) -> str:
        for _ in range(17):
            if self.kinds.get(one) != "moved":
                return one if self.kinds.get(one) == "page" else ""
            (one,) = self.links[one]
        return ""

    def canonical(self, one: str) -> str:
        return self.led(self.canonicals[one]) or one

    def stands(self, one: str) -> str:
        page = self.led(one)
        other = self.canonical(page) if page else ""
        return other if other and self.canonical(other) == other else page

    def pages(self) -> Graph:
        own = [one for one, kind in self.kinds.items() if kind == "page" and self.stands(one) == one]
        return {
            one: (
                {self.stands(link) for link in self.links[one]} - {one, ""},
                sum(not self.stands(link) for link in self.links[one]),
            )
            for one in own
        }

    def domains(self, pages: Graph) -> Graph:
        found: dict[str, set[str]] = {}
        for one, kind in self.kinds.items():
            if one in pages or kind == "moved":
                others = {domain_of(link) for link in self.links[one]} - {domain_of(one)}
                found.setdefault(domain_of(one), set()).update(others)
        for other in {other for others in found.values() for other in others}:
            found.setdefault(other, set())
        return {one: (others, 0) for one, others in found.items()}


def domain_of(url: str) -> str:
    return registrable_domain(urlsplit(url).hostname or "")


def iterated(graph: Graph, goals: set[str]) -> dict[str, float]:
    found = {one: 1 / len(graph) for one in graph}
    for _ in range(400):
        following = dict.fromkeys(graph, 0.0)
        for one, (own, outside) in graph.items():
            for other in own:
                following[other] += 0.85 * found[one] / (len(own) + outside)
        rest = (1 - sum(following.values())) / len(goals)
        found = {one: rank + rest * (one in goals) for one, rank in following.items()}
    return found


def reread(out: Path, settings: Settings, secret: int | None = None) -> tuple[dict[str, float], dict[str, float]]:
    """The ranks of pages and of domains; `secret` is the crawl's, where there is no frontier that knows it."""
    if secret is None:
        with closing(LmdbFrontierView.open(out / "frontier", SystemClock(), 1 << 30)) as view:
            secret = view.secret
    known = Reread(identifier_of(settings, secret))
    for capture in captures(out):
        known.take(capture)
    pages = known.pages()
    return iterated(pages, set(pages)), iterated(known.domains(pages), {domain_of(one) for one in pages})

"""Bringing the ranks of a crawl up to date, beside those who may be crawling (R3): `nephila rank`.

Everything lies in one folder, and nothing else is written. It can be deleted at any time: what was read of the archive
is read again then. Where archive and catalogue are is the business of whoever calls: `premises` for a crawl directory,
`node.fleet.ranking` for a fleet.

What was purged must go here, too (K2). A takedown changes the list of takedowns when it is filed and when it is done;
so when that looks otherwise than the last time, all that was read is held against the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import Catalogue
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.clock import SystemClock
from nephila.ranking import (
    DOMAINS,
    PAGES,
    Computation,
    DamagedFileError,
    DomainRanks,
    LinkGraph,
    PageRanks,
    compute,
    read_foremost,
    text_name,
    write_foremost,
)
from nephila.ranking.sections import DRAFT, refused

from .freshening import last_seen
from .reading import LinkReader, Read, is_page, read_links

_TAKEDOWNS = "takedowns"
"""The file with what the takedowns looked like when all was held against the catalogue."""
_MADE = frozenset({".links", ".ranks", ".grades", DRAFT})
"""Endings of the files that are made in the folder."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a crawl, for whoever computes its ranks."""

    identity: str
    """Tells the crawl from others."""
    catalogue: Catalogue
    marks: Mapping[SegmentId, int]
    """Up to where each file of the archive is durable."""
    open_file: Callable[[SegmentId], DiskFile]
    """Raises FileNotFoundError for one that is not there."""
    reader: LinkReader
    takedowns: str
    """What they look like: other when one was filed or carried out."""


@dataclass(frozen=True, slots=True)
class RankedUrl:
    """A page with its rank."""

    url: str
    rank: float
    times_mean: float
    """Its rank in mean ranks."""


@dataclass(frozen=True, slots=True)
class RankedName:
    """A registrable domain with its rank."""

    domain: str
    rank: float
    times_mean: float
    pages: int
    """Pages stored of it."""
    referring: int
    """Other domains that link to it."""
    grade: int
    """What the score makes of it, 0 to 64."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How many of the most important pages were visited of late (R2)."""

    pages: int
    """The pages of highest rank that were looked at: as many as the settings say, or all."""
    fresh: int
    """Those of them whose last answer is not older than that."""
    age_s: float


@dataclass(frozen=True, slots=True)
class Importance:
    """The ranks of a crawl."""

    pages: Computation | None
    """None where no page is stored."""
    domains: Computation | None
    read: Read
    top_pages: Sequence[RankedUrl] = ()
    top_domains: Sequence[RankedName] = ()
    freshness: Freshness | None = None
    """None where no page is stored, or none is to be fresh."""
    published: bool = False
    """Whether the workers of a fleet were given other ranks than they had."""
    made_due: int = 0
    """Of a fleet: pages of highest rank that were about to be too old, and are asked for now."""


def renewed(
    folder: Path,
    stored: Stored,
    settings: Settings,
    *,
    pages: int = 0,
    domains: int = 0,
    reading: Callable[[int], None] | None = None,
) -> Importance:
    """Bring the ranks in a folder that is held up to date, and tell the highest, so many of pages and of domains.

    `reading` is told how many bytes of the archive are new, before they are read. Raises `NephilaError`.
    """
    with LinkGraph(folder, stored.identity) as graph:
        if reading is not None:
            reading(sum(max(0, end - graph.upto(segment)) for segment, end in stored.marks.items()))
        read = _bring_up_to_date(folder, stored, settings, graph)
        with suppress(FileNotFoundError, DamagedFileError):
            found = _told(folder, stored, graph, read, pages, domains)
            if settings.recrawl.target_pages:
                found = replace(found, freshness=_freshness(folder, stored, settings))
            return found
        return Importance(None, None, read)


def _bring_up_to_date(folder: Path, stored: Stored, settings: Settings, graph: LinkGraph) -> Read:
    """Read what is new, leave out what has gone, and compute where anything has changed."""
    graph.forget(graph.segments - stored.marks.keys())
    purged = stored.takedowns != _last_look(folder)
    if purged:
        graph.hold_against(lambda segment: _listed(stored.catalogue, SegmentId(segment)))
    read = read_links(graph, stored.marks, stored.catalogue, stored.open_file, stored.reader)
    graph.forget(frozenset(read.missing))
    if not _is_computed(folder, stored.identity, graph.mark, settings.rank.damping):
        compute(graph, folder, stored.identity, settings.rank.damping, SystemClock().wall_ms())
    if purged:
        _note_look(folder, stored.takedowns)
    return read


def _listed(catalogue: Catalogue, segment: SegmentId) -> set[int]:
    return {row.offset for row in catalogue.captures(segment) if is_page(row)}


def _last_look(folder: Path) -> str:
    try:
        return (folder / _TAKEDOWNS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _note_look(folder: Path, looks: str) -> None:
    draft = folder / f"{_TAKEDOWNS}.new"
    try:
        draft.write_text(looks, encoding="utf-8")
        draft.replace(folder / _TAKEDOWNS)
    except OSError as error:
        raise refused(folder, error) from error


def _is_computed(folder: Path, identity: str, mark: str, damping: float) -> bool:
    """Whether there are ranks of just this graph."""
    try:
        with PageRanks(folder / PAGES, identity) as pages, DomainRanks(folder / DOMAINS, identity) as domains:
            return all((one.said.graph, one.said.damping) == (mark, damping) for one in (pages, domains))
    except (FileNotFoundError, DamagedFileError):
        return False


def clear(folder: Path) -> None:
    """Remove what was made here: the archive is read anew. The lock is held, and what is not ours stays."""
    try:
        for path in folder.iterdir():
            if path.suffix in _MADE or path.name == _TAKEDOWNS:
                path.unlink()
    except OSError as error:
        raise refused(folder, error) from error


def _told(folder: Path, stored: Stored, graph: LinkGraph, read: Read, pages: int, domains: int) -> Importance:
    identity = stored.identity
    with PageRanks(folder / PAGES, identity) as of_pages, DomainRanks(folder / DOMAINS, identity) as of_domains:
        count, goals = of_pages.said.count, of_domains.said.count
        top_pages = [
            RankedUrl(_url_of(stored.catalogue, page.fingerprint), page.rank, page.rank * count)
            for page in of_pages.top(pages)
        ]
        highest = of_domains.top(domains)
        spelled = _spelled(graph, {one.name for one in highest})
        top_domains = [
            RankedName(spelled.get(name, "?"), rank, rank * goals, own, referring, grade)
            for name, rank, own, referring, grade in highest
        ]
        return Importance(of_pages.said, of_domains.said, read, top_pages, top_domains)


def _freshness(folder: Path, stored: Stored, settings: Settings) -> Freshness:
    """How fresh the most important pages are; they are noted for whoever keeps them so (`freshening`)."""
    target, now = settings.recrawl, SystemClock().wall_ms()
    with PageRanks(folder / PAGES, stored.identity) as ranks:
        foremost = [page.fingerprint for page in ranks.top(target.target_pages)]
    if read_foremost(folder, stored.identity) != foremost:
        write_foremost(folder, stored.identity, foremost)
    last = [last_seen(stored.catalogue.captures_of(fingerprint)) for fingerprint in foremost]
    return Freshness(len(last), sum(now - at <= target.target_age_s * 1000 for at in last), target.target_age_s)


def _url_of(catalogue: Catalogue, fingerprint: bytes) -> str:
    captures = catalogue.captures_of(fingerprint)
    return captures[0].url if captures else "?"  # purged meanwhile


def _spelled(graph: LinkGraph, names: set[int]) -> dict[int, str]:
    """The spellings of domains by their names."""
    found: dict[int, str] = {}
    for run in graph.runs if names else ():
        for text in run.texts():
            if (name := text_name(text)) in names:
                found[name] = text
    return found

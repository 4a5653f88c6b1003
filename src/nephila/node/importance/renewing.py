"""Bringing the ranks of a crawl directory up to date, beside a crawl that may be running (R3): `nephila rank`.

Everything lies in the folder `rank` of the directory, and nothing else is written. It can be deleted at any time: what
was read of the archive is read again then.

What was purged must go here, too (K2). A takedown changes the folder of takedowns when it is filed and when it is done;
so when that looks otherwise than the last time, all that was read is held against the catalogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.dedup import LearnedAliases, LearnedEnvironment, LearningRules, LmdbAliasStorage
from nephila.engines.disk import DiskFile, LookingDisk
from nephila.frontier.embedded import LmdbFrontierView
from nephila.interfaces.catalogue import Catalogue
from nephila.interfaces.objects import ObjectStore
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of, read_catalogue
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.inspect import begun
from nephila.ranking import (
    DOMAINS,
    PAGES,
    Computation,
    DamagedFileError,
    DomainRanks,
    LinkGraph,
    PageRanks,
    compute,
    held,
    read_foremost,
    text_name,
    write_foremost,
)
from nephila.ranking.graph import LOCK
from nephila.ranking.sections import refused
from nephila.store import ArchivePlace
from nephila.store.remote_disk import ArchiveFolder
from nephila.urls import Identifier

from .freshening import last_seen
from .reading import LinkReader, Read, is_page, read_links

_TAKEDOWNS = "takedowns"
"""The file with what the folder of takedowns looked like when all was held against the catalogue."""


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


def importance_of(
    out: Path,
    *,
    pages: int = 0,
    domains: int = 0,
    anew: bool = False,
    waiting: Callable[[], None] | None = None,
    reading: Callable[[int], None] | None = None,
    objects: ObjectStore | None = None,
) -> Importance | None:
    """Bring the ranks of a crawl up to date and tell the highest, so many of pages and of domains.

    `anew` reads all of the archive once more. `waiting` is called before somebody else who does the same is waited for;
    without it nobody is, and None says that somebody does. `reading` is told how many bytes of the archive are new,
    before they are read. `objects` stands in for the store that the crawl's settings name. Raises `NephilaError`.
    """
    directory, settings = begun(out)
    with held(directory.rank, waiting) as is_ours, ExitStack() as stack:
        if not is_ours:
            return None
        if anew:
            _clear(directory.rank)
        catalogue = stack.enter_context(read_catalogue(directory, settings))
        view = LmdbFrontierView.open(directory.frontier, SystemClock(), settings.frontier.map_bytes)
        stack.callback(view.close)
        graph = stack.enter_context(LinkGraph(directory.rank, identity_of(view.secret)))
        open_file = stack.enter_context(_opener(directory, settings, objects))
        if reading is not None:
            reading(sum(max(0, end - graph.upto(segment)) for segment, end in view.marks().items()))
        read = _bring_up_to_date(directory, settings, catalogue, graph, view, open_file)
        with suppress(FileNotFoundError, DamagedFileError):
            found = _told(directory.rank, identity_of(view.secret), graph, catalogue, read, pages, domains)
            if settings.recrawl.target_pages:
                fresh = _freshness(directory.rank, identity_of(view.secret), catalogue, settings)
                found = replace(found, freshness=fresh)
            return found
        return Importance(None, None, read)


def _bring_up_to_date(
    directory: CrawlDirectory,
    settings: Settings,
    catalogue: Catalogue,
    graph: LinkGraph,
    view: LmdbFrontierView,
    open_file: Callable[[SegmentId], DiskFile],
) -> Read:
    """Read what is new, leave out what has gone, and compute where anything has changed."""
    folder, identity = directory.rank, identity_of(view.secret)
    marks = view.marks()
    graph.forget(graph.segments - marks.keys())
    looks = _look_of(directory.takedowns)
    purged = looks != _last_look(folder)
    if purged:
        graph.hold_against(lambda segment: _listed(catalogue, SegmentId(segment)))
    with _reader(directory, settings, identifier_of(settings, view.secret)) as reader:
        read = read_links(graph, marks, catalogue, open_file, reader)
    graph.forget(frozenset(read.missing))
    if not _is_computed(folder, identity, graph.mark, settings.rank.damping):
        compute(graph, folder, identity, settings.rank.damping, SystemClock().wall_ms())
    if purged:
        _note_look(folder, looks)
    return read


def _listed(catalogue: Catalogue, segment: SegmentId) -> set[int]:
    return {row.offset for row in catalogue.captures(segment) if is_page(row)}


@contextmanager
def _reader(directory: CrawlDirectory, settings: Settings, identifier: Identifier) -> Iterator[LinkReader]:
    """What makes rows of captures, by what was learned of aliases; none of them is tested here."""
    if not (directory.aliases / "data.mdb").exists():
        yield LinkReader(identifier, None)
        return
    environment = LearnedEnvironment(directory.aliases, read_only=True)
    try:
        wanted, clock = settings.aliases, SystemClock()
        rules = LearningRules(wanted.votes, verify_every=0, enabled=wanted.learn)
        storage = LmdbAliasStorage(environment, wanted.votes)
        yield LinkReader(
            identifier, LearnedAliases(storage, rules, identifier.address_of, clock.steady_ms, clock.wall_ms)
        )
    finally:
        environment.close()


@contextmanager
def _opener(
    directory: CrawlDirectory, settings: Settings, objects: ObjectStore | None
) -> Iterator[Callable[[SegmentId], DiskFile]]:
    """How files of the archive are opened: here, or in the store where they went and the spool where they wait."""
    disk = LookingDisk()

    def open_here(segment: SegmentId) -> DiskFile:
        try:
            return disk.open(directory.warc / segment)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"the archive file {segment} cannot be read: {error.strerror or error}") from error

    if not settings.archive.url:
        yield open_here
        return
    place = ArchivePlace.parse(settings.archive.url)
    store = objects or object_store(settings, SystemClock(), uploads=1)
    try:
        yield ArchiveFolder(store, {}, place.key(""), directory.spool, disk).open
    finally:
        if objects is None:
            asyncio.run(store.close())


def _look_of(takedowns: Path) -> str:
    """What a folder of takedowns looks like: other when one was filed or carried out."""
    if not takedowns.is_dir():
        return ""
    known = ((path.name, path.stat()) for path in sorted(takedowns.iterdir()) if path.suffix == ".json")
    return "".join(f"{name} {stat.st_size} {stat.st_mtime_ns}\n" for name, stat in known)


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


def _clear(folder: Path) -> None:
    """Everything but the lock, which is held."""
    try:
        for path in folder.iterdir():
            if path.name != LOCK:
                path.unlink()
    except OSError as error:
        raise refused(folder, error) from error


def _told(
    folder: Path, identity: str, graph: LinkGraph, catalogue: Catalogue, read: Read, pages: int, domains: int
) -> Importance:
    with PageRanks(folder / PAGES, identity) as of_pages, DomainRanks(folder / DOMAINS, identity) as of_domains:
        count, goals = of_pages.said.count, of_domains.said.count
        top_pages = [
            RankedUrl(_url_of(catalogue, page.fingerprint), page.rank, page.rank * count)
            for page in of_pages.top(pages)
        ]
        highest = of_domains.top(domains)
        spelled = _spelled(graph, {one.name for one in highest})
        top_domains = [
            RankedName(spelled.get(name, "?"), rank, rank * goals, own, referring, grade)
            for name, rank, own, referring, grade in highest
        ]
        return Importance(of_pages.said, of_domains.said, read, top_pages, top_domains)


def _freshness(folder: Path, identity: str, catalogue: Catalogue, settings: Settings) -> Freshness:
    """How fresh the most important pages are; they are noted for whoever keeps them so (`freshening`)."""
    target, now = settings.recrawl, SystemClock().wall_ms()
    with PageRanks(folder / PAGES, identity) as ranks:
        foremost = [page.fingerprint for page in ranks.top(target.target_pages)]
    if read_foremost(folder, identity) != foremost:
        write_foremost(folder, identity, foremost)
    last = [last_seen(catalogue.captures_of(fingerprint)) for fingerprint in foremost]
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

"""What a crawl directory has stored, as its ranks are computed from it (R3). The archive may be in S3."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nephila.dedup import LearnedAliases, LearnedEnvironment, LearningRules, LmdbAliasStorage
from nephila.engines.disk import DiskFile, LookingDisk
from nephila.frontier.embedded import LmdbFrontierView
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
from nephila.ranking import held
from nephila.store import ArchivePlace
from nephila.store.remote_disk import ArchiveFolder
from nephila.urls import Identifier

from .reading import LinkReader
from .renewing import Importance, Stored, clear, renewed


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
            clear(directory.rank)
        stored = _stored(directory, settings, objects, stack)
        return renewed(directory.rank, stored, settings, pages=pages, domains=domains, reading=reading)


def _stored(directory: CrawlDirectory, settings: Settings, objects: ObjectStore | None, stack: ExitStack) -> Stored:
    catalogue = stack.enter_context(read_catalogue(directory, settings))
    view = LmdbFrontierView.open(directory.frontier, SystemClock(), settings.frontier.map_bytes)
    stack.callback(view.close)
    return Stored(
        identity_of(view.secret),
        catalogue,
        view.marks(),
        stack.enter_context(_opener(directory, settings, objects)),
        stack.enter_context(_reader(directory, settings, identifier_of(settings, view.secret))),
        _look_of(directory.takedowns),
    )


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

"""The ranks of a fleet's crawl (R3): what its workers have stored, read beside them, and kept in a folder here.

The archive is read in the store of objects, as far as the catalogue in PostgreSQL lists it; the engine tells the
crawl's secret, which names are seeded with, and the aliases that were learned. Nothing of them is changed. What workers
have in their spools is read when it has arrived. In `rank.directory` each crawl, and each region, has a folder of its
own: what was read once stays read. What the scores of URLs need of the result is put beside the archive (`repute`).
"""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from nephila.config import Configured
from nephila.dedup import LearnedAliases
from nephila.engines.disk import DiskFile
from nephila.interfaces.objects import ObjectStore
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.importance.freshening import Freshening
from nephila.node.importance.grades import FileGrades
from nephila.node.importance.reading import LinkReader
from nephila.node.importance.renewing import Importance, Stored, clear, renewed
from nephila.ranking import DOMAINS, GRADES, DomainGrades, DomainRanks, held, write_grades
from nephila.ranking.sections import refused
from nephila.store import ArchivePlace
from nephila.store.postgres import PostgresCatalogue
from nephila.store.remote_disk import opened

from .access import check_fleet
from .learned import rules_of_fleet
from .regions import regional
from .repute import publish
from .servers import open_frontier
from .takedown_records import TakedownObjects


def importance_of_fleet(
    configured: Configured,
    *,
    pages: int = 0,
    domains: int = 0,
    anew: bool = False,
    publishing: bool = True,
    every_s: float = 0.0,
    waiting: Callable[[], None],
    reading: Callable[[int], None] | None = None,
) -> Importance:
    """Bring the ranks of a fleet's crawl up to date and tell the highest, so many of pages and of domains.

    The grades of domains are put where the workers find them, and the most important pages made due before they are too
    old, unless it is not `publishing`; `every_s` says how often it is called, 0 for once. `anew` reads all of the
    archive once more. `waiting` is called before somebody else on this machine who does the same is waited for.
    `reading` is told how many bytes of the archive are new, before they are read. Raises `NephilaError`.
    """
    settings = regional(configured.settings)
    folder = folder_of(settings)
    with held(folder, waiting):
        if anew:
            clear(folder)
        objects = object_store(settings, SystemClock(), uploads=1)
        try:
            with _stored(settings, objects) as stored:
                found = renewed(folder, stored, settings, pages=pages, domains=domains, reading=reading)
            if publishing:
                _write_grades(folder, stored.identity, found)
                place = ArchivePlace.parse(settings.archive.url)
                published = asyncio.run(publish(objects, place, folder / GRADES))
                found = replace(found, published=published)
            made_due = asyncio.run(_freshen(settings, folder, stored.identity, every_s)) if publishing else 0
            return replace(found, made_due=made_due)
        finally:
            asyncio.run(objects.close())


async def _freshen(settings: Settings, folder: Path, identity: str, every_s: float) -> int:
    """Make the most important pages due that are about to be too old (R2); how many."""
    target, name = settings.recrawl, settings.catalogue.name or settings.fleet.crawl
    if not (target.enabled and target.target_pages):
        return 0

    def catalogue() -> AbstractContextManager[PostgresCatalogue]:
        return closing(PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True))

    async with AsyncExitStack() as stack:
        clock = SystemClock()
        _, frontier = await open_frontier(settings, clock, "visitor", stack, visiting=True)
        grades = FileGrades(folder / GRADES, DomainGrades, clock.steady_ms, identity)
        stack.callback(grades.close)
        frontier.heed(grades)
        identifier = identifier_of(settings, frontier.secret)
        return await Freshening(
            folder, identity, target, frontier, identifier, catalogue, clock.wall_ms, every_s
        ).look()


def _write_grades(folder: Path, identity: str, found: Importance) -> None:
    """What workers need of it; where no page is stored (any more), that no domain has a grade."""
    if found.domains is None:
        write_grades(folder / GRADES, identity, array("Q"), b"", 0)
        return
    with DomainRanks(folder / DOMAINS, identity) as ranks:
        write_grades(folder / GRADES, identity, *ranks.columns(), found.domains.made_at)


def folder_of(settings: Settings) -> Path:
    """Where the ranks of the crawl that settings name are kept here; it is made, but for the last step."""
    name, parent = check_fleet(settings), Path(settings.rank.directory)
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(parent, error) from error
    return parent / name


@contextmanager
def _stored(settings: Settings, objects: ObjectStore) -> Iterator[Stored]:
    """What the fleet has stored."""
    place, name = ArchivePlace.parse(settings.archive.url), settings.catalogue.name or settings.fleet.crawl
    secret, aliases = asyncio.run(_known(settings))
    with closing(PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)) as catalogue:
        yield Stored(
            identity_of(secret),
            catalogue,
            catalogue.extent(),
            _opener(objects, place),
            LinkReader(identifier_of(settings, secret), aliases),
            TakedownObjects(objects, place).look(),
        )


async def _known(settings: Settings) -> tuple[int, LearnedAliases | None]:
    """What the engine tells: the crawl's secret, and the aliases that were learned, where they are applied."""
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        state, frontier = await open_frontier(settings, clock, "visitor", stack, looking=True)
        aliases = await rules_of_fleet(state, settings, clock) if settings.aliases.learn else None
        return frontier.secret, aliases


def _opener(objects: ObjectStore, place: ArchivePlace) -> Callable[[SegmentId], DiskFile]:
    def open_file(segment: SegmentId) -> DiskFile:
        return opened(objects, place.key(segment))

    return open_file

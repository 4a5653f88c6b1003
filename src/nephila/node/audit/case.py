"""What an audit is held over: archives, event files and chains, wherever they lie (K1, W2).

A crawl directory has all three, or its archives are in a store of objects and what waits for its upload in a spool. A
fleet has all of it in the store: archives of all workers in one folder, and of each worker its event files and its
chain. For whoever reads it makes no difference: a folder is a folder (`store.remote_disk`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nephila.config import load, read_stored
from nephila.engines.disk import Disk, LookingDisk
from nephila.interfaces.objects import ObjectStore
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.store import ArchivePlace
from nephila.store.remote_disk import ArchiveFolder, Folder, ObjectFolder, RemoteDisk, StretchFolder
from nephila.store.trail import ARCHIVES, CHAINS, EVENTS, FIRST, SUFFIX
from nephila.store.trail_check import TrailCheck
from nephila.store.trail_place import TrailListing
from nephila.store.trails_check import Seen, WorkerTrail, check_trails

ROOT = Path("/")
"""Of what lies in a store: it has no directory."""


@dataclass(frozen=True, slots=True)
class DirectoryCase:
    """One crawl directory."""

    root: Path
    disk: Disk
    event_disk: Disk

    @property
    def archives(self) -> tuple[Path, Disk]:
        """Where the archive is read."""
        return self.root, self.disk

    @property
    def trails(self) -> Sequence[WorkerTrail]:
        """Where event files are read."""
        return (WorkerTrail("", self.root, self.event_disk),)

    def check(self, expect: tuple[str, ...]) -> Seen:
        """Check the chains."""
        return Seen(TrailCheck(self.root, self.disk, self.event_disk).run(expect), frozenset())


@dataclass(frozen=True, slots=True)
class FleetCase:
    """All that the workers of a fleet have brought to the store."""

    disk: Disk
    names: Sequence[str]
    trails: Sequence[WorkerTrail]

    @property
    def archives(self) -> tuple[Path, Disk]:
        """Where the archive is read."""
        return ROOT, self.disk

    def check(self, expect: tuple[str, ...]) -> Seen:
        """Check the chains of all workers."""
        return check_trails(self.trails, self.names, expect)


Case = DirectoryCase | FleetCase


@contextmanager
def case_of_directory(
    root: Path, disk: Disk | None = None, event_disk: Disk | None = None, objects: ObjectStore | None = None
) -> Iterator[DirectoryCase]:
    """The case of a crawl directory; its archives are read from their store where they are in one.

    `objects` stands in for the store that the crawl's settings name.
    """
    directory, looking = CrawlDirectory(root), LookingDisk()
    directory.check()
    disk, event_disk = disk or looking, event_disk or looking
    stored = read_stored(root)
    settings = load(stored=stored).settings if stored is not None else None
    if settings is None or not settings.archive.url:
        yield DirectoryCase(root, disk, event_disk)
        return
    place = ArchivePlace.parse(settings.archive.url)
    with _store(settings, objects) as store:
        listing = TrailListing(place, asyncio.run(store.keys(place.key(""))))
        folder = ArchiveFolder(store, listing.archives, place.key(""), directory.spool, disk)
        yield DirectoryCase(root, RemoteDisk({directory.warc: folder}, disk), event_disk)


@contextmanager
def case_of_fleet(settings: Settings, objects: ObjectStore | None = None) -> Iterator[FleetCase]:
    """The case of a fleet: what lies in the store that its settings name."""
    place = ArchivePlace.parse(settings.archive.url)
    with _store(settings, objects) as store:
        listing = TrailListing(place, asyncio.run(store.keys(place.key(""))))
        archives = ObjectFolder(store, listing.archives)
        trails = []
        for owner in listing.owners:
            chains = {FIRST + SUFFIX: [one.key for one in listing.chains[owner]]} if owner in listing.chains else {}
            folders: dict[Path, Folder] = {
                ROOT / ARCHIVES: archives,
                ROOT / EVENTS: ObjectFolder(store, listing.events.get(owner, {})),
                ROOT / CHAINS: StretchFolder(store, chains),
            }
            trails.append(WorkerTrail(owner, ROOT, RemoteDisk(folders, LookingDisk())))
        disk = RemoteDisk({ROOT / ARCHIVES: archives}, LookingDisk())
        yield FleetCase(disk, sorted(listing.archives), trails)


@contextmanager
def _store(settings: Settings, objects: ObjectStore | None) -> Iterator[ObjectStore]:
    if objects is not None:
        yield objects
        return
    store = object_store(settings, SystemClock(), uploads=1)
    try:
        yield store
    finally:
        asyncio.run(store.close())

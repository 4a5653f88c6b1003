"""A fleet's frontier built anew onto its engine after that was lost (N8): `nephila frontier rebuild --config FILE`.

The archive is brought from the store of objects into a folder, the frontier is built there as that of any crawl
directory (`node.rebuilding`), and goes onto the engine as an import does. The catalogue names pages by fingerprints
that the lost secret made: it is set aside under another name, with the far ends of queues that nobody knows any more,
and written anew under its own.

The order: what can be refused is looked at first; the catalogue is there before the frontier, and the frontier cannot
be opened before all of it is. Begun again after it was cut off, it brings only files that are missing, and sets aside
once more what it had begun.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from nephila.frontier.moving import check_stream
from nephila.frontier.redis.importing import check_free
from nephila.interfaces.clock import Clock
from nephila.interfaces.objects import ObjectStore
from nephila.model.errors import DatabaseRefusedError, FrontierError
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.directory import CrawlDirectory
from nephila.node.moving import export_directory
from nephila.node.rebuilding import Rebuilt, rebuild_directory
from nephila.node.takedown import TakedownFolder
from nephila.store import MARKER, ArchivePlace, SqliteCatalogue
from nephila.store.postgres import PostgresCatalogue, set_aside
from nephila.store.remote_disk import opened
from nephila.store.rotation import WARC_SUFFIXES
from nephila.store.s3 import S3ObjectStore

from .access import check_fleet, valkey_servers
from .moving import import_fleet
from .regions import AtHome, Regions, regional
from .takedown_records import TakedownObjects

PIECE_BYTES = 8_000_000
OF = ".rebuild-of"
"""The file that says whose archive was copied into a folder."""


def rebuild_fleet(settings: Settings, file: Path, folder: Path, clock: Clock) -> Rebuilt:
    """Build the frontier of the crawl that the settings (of `file`) name; `folder` holds the archive meanwhile."""
    whole, settings = settings, regional(settings)
    crawl = check_fleet(settings)
    asyncio.run(check_free(valkey_servers(settings, os.environ), crawl))
    name = settings.catalogue.name or crawl
    directory = CrawlDirectory(folder)
    directory.warc.mkdir(parents=True, exist_ok=True)
    _take_up(directory, crawl)
    place = ArchivePlace.parse(settings.archive.url)
    segments = asyncio.run(_bring(object_store(settings, clock), place, directory.warc))
    _bring_takedowns(TakedownObjects(object_store(settings, clock, uploads=1), place), directory.takedowns)
    old = _catalogue(settings, name)
    try:
        rebuilt = rebuild_directory(folder, clock, file, old)
    finally:
        if old is not None:
            old.close()
    stream = folder / "frontier.jsonl.gz"
    stream.unlink(missing_ok=True)
    export_directory(folder, stream, clock)
    identity = identity_of(int(check_stream(stream)[0].secret, 16))
    if old is not None:
        set_aside(settings.catalogue, name, os.environ, f"before_{clock.wall_ms()}", identity)
    with (
        closing(SqliteCatalogue(directory.catalogue, read_only=True)) as here,
        closing(PostgresCatalogue(settings.catalogue, name, os.environ, identity=identity)) as there,
    ):
        for segment in segments:
            there.record(list(here.whole_captures(segment)), [])
    asyncio.run(_forget_owner(object_store(settings, clock), place))
    home = AtHome(Regions(whole.fleet.regions), settings.fleet.group)
    moved = import_fleet(stream, settings, clock, home.rows)
    if moved.dropped:
        told = f"{moved.dropped:,} URLs that the crawl was given since it was lost (give them again)"
        rebuilt = replace(rebuilt, lost=(*rebuilt.lost, told))
    if home.left_out:
        told = f"{home.left_out:,} URLs of other regions, where they are not known there"
        return replace(rebuilt, queued=rebuilt.queued - home.left_out, lost=(*rebuilt.lost, told))
    return rebuilt


def _take_up(directory: CrawlDirectory, crawl: str) -> None:
    """Remove the frontier that a rebuild of this crawl has left here when it was cut off, and nobody else's."""
    mark = directory.warc / OF
    if mark.exists():
        if (known := mark.read_text(encoding="utf-8")) != crawl:
            raise FrontierError(f"{directory.root} holds a rebuild of the crawl {known}", "choose another --work")
        shutil.rmtree(directory.frontier, ignore_errors=True)
    elif not directory.frontier.exists():
        mark.write_text(crawl, encoding="utf-8")


async def _forget_owner(store: ObjectStore, place: ArchivePlace) -> None:
    """The archive bears a mark of the crawl that was lost: the next worker writes that of the new one."""
    key = place.key(MARKER)
    if key in await store.keys(key) and not (isinstance(store, S3ObjectStore) and await store.remove(key)):
        raise FrontierError(
            f"the mark of the lost crawl in {place} may not be removed with these credentials",
            f"remove the object {key}, and repeat this: nothing is copied twice",
        )


def _catalogue(settings: Settings, name: str) -> PostgresCatalogue | None:
    """The catalogue of the lost crawl, which knows the answers that belong to nobody; None where it is lost, too."""
    try:
        return PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)
    except DatabaseRefusedError:
        return None


async def _bring(store: ObjectStore, place: ArchivePlace, folder: Path) -> list[SegmentId]:
    """Copy the files of the archive that are not there yet; their names."""
    found: list[SegmentId] = []
    for name, key in place.names(await store.keys(place.key(""))).items():  # a region is another crawl
        if not name.endswith(WARC_SUFFIXES):
            continue
        found.append(SegmentId(name))
        await asyncio.to_thread(_copy, store, key, folder / name)
    if not found:
        raise FrontierError(
            f"there is no archive under {place}",
            "see archive.url; where nothing was stored, begin another crawl (fleet.crawl, archive.url)",
        )
    return found


def _bring_takedowns(records: TakedownObjects, folder: Path) -> None:
    """What was taken down stays blocked (K2)."""
    folder.mkdir(parents=True, exist_ok=True)
    here = TakedownFolder(folder)
    for takedown in records.newest(records.count()):
        here.save(takedown)


def _copy(store: ObjectStore, key: str, target: Path) -> None:
    """The file that an object stands for, unless it is there."""
    try:
        source = opened(store, key)
    except FileNotFoundError:  # since it was listed
        return
    with closing(source):
        if target.exists() and target.stat().st_size == source.size():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        partly = target.with_name(f".{target.name}")
        with partly.open("wb") as file:
            for start in range(0, source.size(), PIECE_BYTES):
                file.write(source.read_at(start, PIECE_BYTES))
        partly.replace(target)

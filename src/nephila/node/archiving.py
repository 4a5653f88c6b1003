"""Building the archive: in the crawl directory, or in a store of objects by way of a spool, and the books of either."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from nephila import VERSION
from nephila.fetch import archive_files, decode_payload
from nephila.interfaces.catalogue import Catalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.events import EventSink
from nephila.interfaces.near_duplicates import NearIndex
from nephila.interfaces.objects import ObjectStore, RewritingStore
from nephila.model.errors import NephilaError
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.model.terms import Terms
from nephila.store import (
    ArchivePlace,
    CrawlIdentity,
    Disk,
    LocalArchive,
    RowJournal,
    SpooledArchive,
    Trail,
)
from nephila.urls import registrable_domain

from .bookkeeper import Bookkeeper, Disowner, Flushed
from .directory import CrawlDirectory
from .shipping import Shipper
from .spooled_books import Outbound, SpooledBookkeeper


@dataclass(frozen=True, slots=True)
class Medium:
    """What an archive is written on."""

    clock: Clock
    disk: Disk
    objects: ObjectStore | None = None
    """The store that `archive.url` names; S3 where it is not given."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes."""

    number: int
    secret: int
    """The crawl's."""
    shares: bool
    """Whether it is one of several, whose supervisor has the last word."""
    known: Callable[[], Iterable[SegmentId]]
    """All segments that were ever confirmed."""
    events: EventSink
    fail: Callable[[NephilaError], None]
    trail: Trail
    """Seals the files of the archive, in the spool before they leave it."""


@dataclass(frozen=True, slots=True)
class Books:
    """What is told when captures have become durable."""

    frontier: Disowner
    catalogue: Catalogue
    duplicates: DigestIndex
    near: NearIndex | None
    learned: Sequence[Flushed]


@dataclass(frozen=True, slots=True)
class Archiving:
    """An archive with its books."""

    archive: LocalArchive | SpooledArchive
    bookkeeper: Bookkeeper
    shipper: Shipper | None = None


def archiving(
    directory: CrawlDirectory,
    settings: Settings,
    medium: Medium,
    writer: Writer,
    books: Books,
    stack: AsyncExitStack,
) -> Archiving:
    """Build the archive that the settings ask for; what it opens is closed by `stack`."""

    def write_index(segment: SegmentId) -> None:
        archive.write_index(segment, books.catalogue.captures(segment))

    told = (books.frontier, books.catalogue, books.duplicates, write_index, books.near, books.learned)
    archive: LocalArchive | SpooledArchive
    if not settings.archive.url:
        archive = local_archive(directory.warc, settings, medium, writer.secret, writer.number)
        archive.trail = writer.trail
        return Archiving(archive, _bounded(Bookkeeper(archive, *told), settings))
    outbound = _outbound(directory, settings, medium, writer)
    stack.push_async_callback(outbound.shipper.close)
    archive = outbound.archive
    return Archiving(archive, _bounded(SpooledBookkeeper(outbound, *told), settings), outbound.shipper)


def _bounded(bookkeeper: Bookkeeper, settings: Settings) -> Bookkeeper:
    bookkeeper.most_waiting = settings.catalogue.max_waiting
    return bookkeeper


def _outbound(directory: CrawlDirectory, settings: Settings, medium: Medium, writer: Writer) -> Outbound:
    """A local archive as the spool, and the way from there to the store."""
    place = ArchivePlace.parse(settings.archive.url)
    objects = medium.objects or object_store(settings, medium.clock)
    rolls = settings.archive.layout == "rolling"
    age_s = settings.spool.segment_age_s if rolls else settings.archive.max_age_s
    rolled = replace(settings.archive, max_bytes=settings.spool.segment_bytes, max_age_s=age_s)
    spool = local_archive(directory.spool, replace(settings, archive=rolled), medium, writer.secret, writer.number)
    spool.count_on_from(writer.known())
    spool.trail = writer.trail
    archive = SpooledArchive(spool, directory.spool, medium.disk, objects, place, payload_decoder(settings))
    draw = Random(f"{settings.random_seed}/{writer.number}")  # noqa: S311 - jitter
    uploads = settings.s3.uploads
    shipper = Shipper(archive, objects, place, settings.spool, uploads, medium.clock, writer.events, draw)
    shipper.fail, shipper.in_order = writer.fail, rolls
    journal = RowJournal(directory.spool, medium.disk)
    return Outbound(archive, journal, shipper, settings.limits.max_wait_s, tells=not writer.shares, in_order=rolls)


def local_archive(directory: Path, settings: Settings, medium: Medium, secret: int, writer: int = 0) -> LocalArchive:
    """The archive in a folder of the crawl directory, unsealed; `secret` is the crawl's, `writer` the process."""
    identity = CrawlIdentity(
        secret=secret,
        software=f"Nephila/{VERSION}",
        user_agent=settings.fetch.user_agent,
        robots="obey" if settings.robots.obey else "ignore",
        crawl=directory.parent.name,
        writer=writer,
        terms=Terms.of(settings).to_json(),
    )
    return LocalArchive(
        directory,
        settings.archive,
        medium.clock,
        identity,
        medium.disk,
        payload_decoder(settings),
        registrable_domain,
        archive_files(),
    )


def payload_decoder(settings: Settings) -> Callable[[bytes, bytes], bytes]:
    """How stored answers become bodies: within the bounds that they were fetched with."""
    limit, longest = settings.fetch.max_decoded_bytes, settings.fetch.max_bytes
    of_lists = max(limit, settings.sitemaps.max_bytes)

    def decode(head: bytes, payload: bytes) -> bytes:
        return decode_payload(head, payload, limit if len(payload) <= longest else of_lists)  # only lists are longer

    return decode


def object_store(settings: Settings, clock: Clock, uploads: int = 0) -> RewritingStore:
    """The store that `archive.url` names; `uploads` at once, where that is not to be the setting's."""
    from nephila.store.s3 import CredentialChain, S3ObjectStore  # noqa: PLC0415 - only where it is asked for

    place = ArchivePlace.parse(settings.archive.url)
    told = replace(settings.s3, uploads=uploads) if uploads else settings.s3
    return S3ObjectStore(place.bucket, told, CredentialChain(os.environ, clock.wall_ms), clock.wall_ms)

"""The parts of a crawl that takedowns reach into, put together for them."""

from __future__ import annotations

from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.catalogue import RemovableCatalogue
from nephila.node.addressing import identify_with
from nephila.node.archiving import Archiving, Books
from nephila.node.bookkeeper import Bookkeeper
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.observe import JsonlEventSink
from nephila.store import LocalArchive, LocalDisk, SpooledArchive, Trail
from nephila.urls import Identifier

from .carrying_out import OwnContents, Parts, Takedowns
from .keeping import TakedownKeeper
from .premises import LocalPremises
from .record import TakedownFolder


def takedowns_of(
    directory: CrawlDirectory,
    ground: Ground,
    books: Books,
    kept: Archiving,
    trail: Trail,
    sink: JsonlEventSink,
    identifier: Identifier,
) -> TakedownKeeper | None:
    """Who carries out takedowns; nobody where archive or frontier are not in the crawl's directory (`check_order`)."""
    if not isinstance(kept.archive, LocalArchive) or not isinstance(books.catalogue, RemovableCatalogue):
        return None
    if not isinstance(books.frontier, LmdbFrontier):
        return None
    records = TakedownFolder(directory.takedowns)
    premises = LocalPremises(directory, ground.disk or LocalDisk(), kept.archive, trail, sink.roll)
    parts = Parts(
        ground.clock,
        books.frontier,
        books.catalogue,
        OwnContents(books.duplicates, books.near, directory.rendering),
        premises,
        books.frontier.view.all_orphans,
        identify_with(identifier),
        records.save,
        threaded=ground.threaded,
    )
    view, nudge = books.frontier.view, kept.bookkeeper.nudge
    return TakedownKeeper(Takedowns(parts), records, premises, view, kept.archive, nudge)


def roll_files(archive: LocalArchive | SpooledArchive, sink: JsonlEventSink, bookkeeper: Bookkeeper) -> None:
    """Close the files of this process: a takedown is to rewrite them."""
    sink.roll()
    if isinstance(archive, LocalArchive):
        archive.roll()
    bookkeeper.nudge()

"""Opening the catalogue of a crawl, wherever the settings have it: in its directory, or in PostgreSQL (W3)."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from nephila.interfaces.catalogue import WholeCatalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.store import SqliteCatalogue

from .directory import CrawlDirectory
from .telling import telling

READERS_KEPT = 4


def open_catalogue(
    directory: CrawlDirectory,
    settings: Settings,
    *,
    read_only: bool = False,
    secret: int = 0,
    tell: Callable[[str, str], None] | None = None,
) -> WholeCatalogue:
    """The catalogue of a crawl, for writing unless it is only to be read; the caller closes it.

    `secret` is the crawl's, and tells it from others of its name. `tell` hears, in a thread, of servers that go away
    and come back. Where the settings name a stream, one that is written tells it of pages (W7).
    """
    name, identity = crawl_name(directory, settings), identity_of(secret)
    catalogue: WholeCatalogue
    if settings.catalogue.url:
        from nephila.store.postgres import PostgresCatalogue  # noqa: PLC0415 - only where it is asked for

        catalogue = PostgresCatalogue(
            settings.catalogue, name, os.environ, identity=identity, read_only=read_only, tell=tell
        )
    else:
        catalogue = SqliteCatalogue(directory.catalogue, read_only=read_only)
    if read_only or not settings.stream.url:
        return catalogue
    try:
        return telling(catalogue, settings.stream, name, identity, tell)
    except BaseException:
        catalogue.close()
        raise


def crawl_name(directory: CrawlDirectory, settings: Settings) -> str:
    """What a crawl is called in a database that it shares with others."""
    return settings.catalogue.name or directory.root.resolve().name


def identity_of(secret: int) -> str:
    """What tells a crawl from others, and tells nothing of its secret."""
    return sha256(secret.to_bytes(16, "big")).hexdigest()[:32]


def warnings_of(events: EventSink, clock: Clock) -> Callable[[str, str], None]:
    """Tells the listeners of the crawl on this loop, from any thread, what concerns the crawl as a whole."""
    loop = asyncio.get_running_loop()

    def tell(reason: str, detail: str) -> None:
        event = Event(EventKind.WARNING, clock.wall_ms(), reason=reason, detail=detail)
        with suppress(RuntimeError):  # the loop has ended meanwhile, and nobody listens any more
            loop.call_soon_threadsafe(events.emit, event)

    return tell


def has_catalogue(directory: CrawlDirectory, settings: Settings) -> bool:
    """Whether there may be one to read."""
    return bool(settings.catalogue.url) or directory.catalogue.exists()


@contextmanager
def read_catalogue(directory: CrawlDirectory, settings: Settings) -> Iterator[WholeCatalogue]:
    """The catalogue of a crawl, to be read until the end of the block."""
    catalogue = open_catalogue(directory, settings, read_only=True)
    try:
        yield catalogue
    finally:
        catalogue.close()


class CatalogueReaders:
    """Catalogues that are open for reading, for whoever serves many: connecting costs more than most questions.

    Each is asked by one thread at a time; one on which a question failed is closed.
    """

    def __init__(self, open_one: Callable[[], WholeCatalogue]) -> None:
        self._open_one = open_one
        self._idle: deque[WholeCatalogue] = deque()

    @contextmanager
    def __call__(self) -> Iterator[WholeCatalogue]:
        """One to be read until the end of the block."""
        try:
            catalogue = self._idle.pop()
        except IndexError:
            catalogue = self._open_one()
        try:
            yield catalogue
        except BaseException:
            catalogue.close()
            raise
        if len(self._idle) < READERS_KEPT:
            self._idle.append(catalogue)
        else:
            catalogue.close()

    def close(self) -> None:
        """Close those that are idle."""
        while self._idle:
            self._idle.pop().close()

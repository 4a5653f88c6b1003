"""A crawl directory opened for one crawl: the machine's limits, the lock, the parts, and the way back.

Whoever crawls (the command, the library) comes through here, so both leave the same behind: a directory that was begun
for a command that made no sense is taken back; anything that holds a crawl stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from nephila.config import Configured, load, read_stored, write_stored
from nephila.fetch import raise_descriptor_limit
from nephila.interfaces.events import EventSink
from nephila.model.errors import (
    CrawlDirectoryError,
    DatabaseAwayError,
    DatabaseRefusedError,
    ObjectStoreError,
    StreamAwayError,
    StreamRefusedError,
    UsageError,
)
from nephila.model.settings import Settings
from nephila.pipeline import CrawledPage
from nephila.store import check_layout

from .crawl import Crawl
from .directory import CrawlDirectory
from .ground import Ground
from .losses import check_frontier
from .wiring import build

NOT_BEGUN = (ObjectStoreError, DatabaseAwayError, DatabaseRefusedError, StreamAwayError, StreamRefusedError)
"""A server that the crawl was to stand on is not there, or will not have it."""


@asynccontextmanager
async def opened(
    out: Path,
    configured: Configured,
    ground: Ground,
    *,
    listeners: Sequence[EventSink] = (),
    deliver: Callable[[CrawledPage], Awaitable[None]] | None = None,
    for_good: bool = True,
) -> AsyncIterator[Crawl]:
    """Hold the directory and build the crawl in it; everything is closed again at the end.

    `for_good`: the settings are those of the crawl from now on, and not of this run only.
    """
    settings, warning = sized(configured.settings)
    crawl: Crawl | None = None
    with begun(out, configured, lambda: crawl is None or crawl.is_untouched) as (directory, _):
        async with AsyncExitStack() as stack:
            crawl = await build(directory, settings, ground, stack, listeners=listeners, deliver=deliver)
            if for_good:
                write_stored(out, configured.settings)
            if warning:
                crawl.warn("descriptors", warning)
            yield crawl


@contextmanager
def begun(out: Path, configured: Configured, is_untouched: Callable[[], bool]) -> Iterator[tuple[CrawlDirectory, int]]:
    """Hold the directory, and take it back where it was begun for nothing; with the descriptor that holds it.

    Raises `CrawlDirectoryError` where it has an archive, but no frontier.
    """
    directory = CrawlDirectory(out)
    check_layout(configured.settings.archive)
    _refuse_another_normal_form(out, configured)
    _refuse_another_archive(out, configured)
    with directory.held() as lock:
        try:
            check_frontier(directory)
        except CrawlDirectoryError:
            if directory.is_new:
                directory.marker.unlink()
            raise
        try:
            yield directory, lock
        except (UsageError, *NOT_BEGUN):
            if directory.is_new and is_untouched():
                directory.discard()
            raise


def _refuse_another_normal_form(out: Path, configured: Configured) -> None:
    """The form of URLs never changes during a crawl: every page would be taken for a new one (DESIGN section 11)."""
    stored = read_stored(out)
    if stored is not None and load(stored=stored).settings.urls != configured.settings.urls:
        raise UsageError(
            f"the settings urls.* differ from those that the crawl in {out} was begun with",
            hint="leave them as they were, or begin a new directory",
        )


def _refuse_another_archive(out: Path, configured: Configured) -> None:
    """An archive lies in one place: what is confirmed must be found where the crawl looks for it."""
    stored = read_stored(out)
    if stored is None:
        return
    before, now = load(stored=stored).settings.archive.url, configured.settings.archive.url
    if before.rstrip("/") != now.rstrip("/"):
        raise UsageError(
            f"the archive of the crawl in {out} goes to {before or 'the crawl directory'}, not to "
            f"{now or 'the crawl directory'}",
            hint="leave archive.url as it was, or begin a new directory",
        )


def sized(settings: Settings) -> tuple[Settings, str]:
    """The settings with what the machine allows of exchanges and idle connections; a sentence where that is too few."""
    wanted = settings.fetch.concurrency
    granted = raise_descriptor_limit(wanted, settings.fetch.kept_connections)
    possible = granted.exchanges
    fetch = replace(settings.fetch, concurrency=possible, kept_connections=granted.idle)
    if fetch != settings.fetch:
        settings = replace(settings, fetch=fetch)
    if possible >= wanted:
        return settings, ""
    warning = (
        f"{possible} exchanges at once instead of {wanted}, because this process may open too few files: "
        "raise the limit with ulimit -n, or lower --concurrency"
    )
    return settings, warning

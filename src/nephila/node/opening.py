"""A crawl directory opened for one crawl: the machine's limits, the lock, the parts, and the way back.

Whoever crawls (the command, the library) comes through here, so both leave the same behind: a directory that was begun
for a command that made no sense is taken back; anything that holds a crawl stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from nephila.config import Configured, load, read_stored, write_stored
from nephila.fetch import Granted, raise_descriptor_limit
from nephila.interfaces.events import EventSink
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.pipeline import CrawledPage

from .crawl import Crawl
from .directory import CrawlDirectory
from .wiring import Ground, build


@asynccontextmanager
async def opened(
    out: Path,
    configured: Configured,
    ground: Ground,
    *,
    listeners: Sequence[EventSink] = (),
    deliver: Callable[[CrawledPage], Awaitable[None]] | None = None,
) -> AsyncIterator[Crawl]:
    """Hold the directory and build the crawl in it; everything is closed again at the end."""
    wanted = configured.settings.fetch.concurrency
    granted = raise_descriptor_limit(wanted, configured.settings.fetch.kept_connections)
    directory = CrawlDirectory(out)
    _refuse_another_normal_form(out, configured)
    crawl: Crawl | None = None
    with directory.held():
        try:
            async with AsyncExitStack() as stack:
                settings = _sized(configured.settings, granted)
                crawl = await build(directory, settings, ground, stack, listeners=listeners, deliver=deliver)
                write_stored(out, configured.settings)
                if granted.exchanges < wanted:
                    crawl.warn("descriptors", _too_few(wanted, granted.exchanges))
                yield crawl
        except UsageError:
            if directory.is_new and (crawl is None or crawl.is_untouched):
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


def _sized(settings: Settings, granted: Granted) -> Settings:
    """The settings with the concurrency, and the idle connections, that the machine allows."""
    sized = replace(settings.fetch, concurrency=granted.exchanges, kept_connections=granted.idle)
    return settings if sized == settings.fetch else replace(settings, fetch=sized)


def _too_few(wanted: int, possible: int) -> str:
    return (
        f"{possible} exchanges at once instead of {wanted}, because this process may open too few files: "
        "raise the limit with ulimit -n, or lower --concurrency"
    )

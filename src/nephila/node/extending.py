"""The plugins of a crawl, built: those that ship, those that are installed and switched on, those that were passed in.

Where each lives follows from what it is: a process of its own, the loop, or (under virtual time) right here. What is
counted of each is kept in the crawl directory, for `status`, whichever process of the crawl it was.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress

from nephila.interfaces.clock import Clock
from nephila.model.errors import UsageError
from nephila.model.exchange import Fetched
from nephila.model.page import Page
from nephila.model.plugin import OFFICE_LINKS, PDF_LINKS
from nephila.model.settings import OfficeSettings, PdfSettings, PluginSettings, Settings
from nephila.observe import Fanout
from nephila.parse import PDF_TYPE, OfficeBounds, OfficeLinks, PdfBounds, PdfLinks, directives_of, document_type
from nephila.plugins import Kept, Patience, PluginExtensions, load_plugins
from nephila.plugins.answers import seeds_of
from nephila.plugins.calling import AwaitedCaller, Caller, ChildCaller, QuickCaller
from nephila.plugins.child import Confines
from nephila.plugins.keeping import FAILURES
from nephila.plugins.offspring import Child
from nephila.plugins.points import CLOSE, Point, is_asynchronous, is_quick, name_of, points_of
from nephila.seeds import Seed, SeedSource

from .plugin_books import PluginBooks

PDF_SAVED = frozenset({PDF_TYPE, "application/*", "*/*"})
"""Types to save (S2) among which PDFs are: whoever names one wants their bodies."""


def extensions_of(
    settings: Settings, plugins: Sequence[object], clock: Clock, *, threaded: bool
) -> PluginExtensions | None:
    """All plugins of a crawl as one; None where there is none. `threaded` is False under virtual time.

    Raises `UsageError` for what is no plugin, has the name of another, or cannot be loaded.
    """
    wanted = settings.plugins
    kept: list[Kept] = [_pdf_reader(settings.pdf, clock, threaded=threaded)] if settings.pdf.links else []
    kept += [_office_reader(settings.office, clock, threaded=threaded)] if settings.office.links else []
    given = [(name_of(plugin), plugin) for plugin in plugins] + load_plugins(wanted.enabled, wanted.options)
    for name, plugin in given:
        if name in {PDF_LINKS, OFFICE_LINKS} or any(name == one.name for one in kept):
            raise UsageError(f"two plugins are called {name}", hint="give one of them another `name`")
        kept.append(_kept(name, plugin, wanted, clock, threaded=threaded))
    if not kept:
        return None
    return PluginExtensions(
        kept,
        document_type,
        clock,
        max_document_bytes=wanted.max_document_bytes,
        allow_credentials=wanted.allow_credentials,
    )


def _kept(name: str, plugin: object, wanted: PluginSettings, clock: Clock, *, threaded: bool) -> Kept:
    points, caller = points_of(plugin), _caller(name, plugin, wanted, threaded=threaded)
    return Kept(name, plugin, points, caller, Patience(wanted.failures, wanted.overruns), clock)


def _caller(name: str, plugin: object, wanted: PluginSettings, *, threaded: bool) -> Caller:
    if is_asynchronous(plugin):
        return AwaitedCaller(plugin, wanted.deadline_s)
    if is_quick(plugin) or not threaded:
        return QuickCaller(plugin, wanted.quick_s if is_quick(plugin) else wanted.deadline_s)
    closes = callable(getattr(plugin, CLOSE, None))
    return ChildCaller(Child(name, plugin, Confines(wanted.memory_bytes)), wanted.deadline_s, closes=closes)


def _pdf_reader(settings: PdfSettings, clock: Clock, *, threaded: bool) -> Kept:
    plugin = PdfLinks(PdfBounds(settings.time_s, settings.max_pages, settings.text))
    return _shipped(PDF_LINKS, plugin, settings.memory_bytes, settings.deadline_s, clock, threaded=threaded)


def _office_reader(settings: OfficeSettings, clock: Clock, *, threaded: bool) -> Kept:
    plugin = OfficeLinks(OfficeBounds(settings.time_s, settings.max_unpacked_bytes))
    return _shipped(OFFICE_LINKS, plugin, settings.memory_bytes, settings.deadline_s, clock, threaded=threaded)


def _shipped(name: str, plugin: object, memory_bytes: int, deadline_s: float, clock: Clock, *, threaded: bool) -> Kept:
    """A reader that ships: in a process that can write no file and start no other."""
    caller: Caller = QuickCaller(plugin, deadline_s)
    if threaded:
        caller = ChildCaller(Child(name, plugin, Confines(memory_bytes, sealed=True)), deadline_s, closes=False)
    return Kept(name, plugin, points_of(plugin), caller, Patience.endless(), clock)


def start_plugins(
    extensions: PluginExtensions | None, books: PluginBooks, events: Fanout, stack: AsyncExitStack
) -> None:
    """Let plugins tell and listen; what was counted of them is written when all have closed."""
    if extensions is None:
        return
    extensions.tell(events)
    if extensions.listens:
        events.add(extensions)
    books.keep(extensions.plugins)
    stack.callback(books.write)
    stack.push_async_callback(extensions.end)


def read_by(extensions: PluginExtensions | None) -> tuple[str, ...]:
    """Media types that plugins read."""
    return () if extensions is None else extensions.media_types


def fetched_types(settings: Settings, extensions: PluginExtensions | None) -> tuple[str, ...] | None:
    """Media types whose bodies are fetched: those of the settings, and those that plugins read; None for all."""
    types = settings.fetch.types
    return None if "*/*" in types or settings.scope.requisites else tuple(dict.fromkeys((*types, *read_by(extensions))))


def bare_page(fetched: Fetched, kind: str, settings: Settings) -> Page:
    """What the headers say of a body that is no HTML; its bytes stand for its text where pages are compared."""
    tags = [value for name, value in fetched.headers if name == "x-robots-tag"]
    directives = directives_of((), tags, settings.fetch.user_agent)
    mark = hashlib.sha256(fetched.body).digest()[:8]
    keep = _keeps(kind, settings)
    return Page(fetched.url, fetched.url, "", "", (), directives, text_hash=mark, shape_hash=mark, keep_body=keep)


def _keeps(kind: str, settings: Settings) -> bool:
    """Whether the body of a document is stored: of those that are read for their links only where that is asked for."""
    if kind == PDF_TYPE:
        return settings.pdf.keep or not PDF_SAVED.isdisjoint(settings.fetch.types)
    if settings.office.links and kind in OfficeLinks.media_types:
        return settings.office.keep or not {kind, "application/*", "*/*"}.isdisjoint(settings.fetch.types)
    return True


def seeds_by(extensions: PluginExtensions | None) -> Sequence[SeedSource]:
    """The seeds that plugins bring."""
    return () if extensions is None else [PluginSeeds(one) for one in extensions.supplies]


class PluginSeeds:
    """The seeds of a plugin, as a source that is read beside the loop like any other."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._loop: asyncio.AbstractEventLoop | None = None
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[Seed]:
        origin = f"plugin {self._kept.name}"
        while True:
            try:
                seeds = self._more()
            except FAILURES:
                return  # counted and told; what it has brought so far is crawled
            if not seeds:
                return
            yield from (Seed(text.strip(), origin) for text in seeds)

    def _more(self) -> list[str]:
        if self._kept.is_called_here:
            return seeds_of(self._kept.ask_now(Point.SEEDS))
        if self._loop is None:
            raise RuntimeError("a plugin's seeds are read where a loop runs")
        return seeds_of(asyncio.run_coroutine_threadsafe(self._kept.ask(Point.SEEDS), self._loop).result())

"""The plugins of a crawl, built: those that ship, those that are installed and switched on, those that were passed in.

Where each lives follows from what it is: a process of its own, the loop, or (under virtual time) right here. What is
counted of each is kept in the crawl directory, for `status`, whichever process of the crawl it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from nephila.frontier.scope import document_endings
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

COUNTED = ("calls", "failures", "overruns", "lost")
WRITTEN_EVERY_MS = 1000
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
    return None if "*/*" in types else tuple(dict.fromkeys((*types, *read_by(extensions))))


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


def documents_of(settings: Settings) -> frozenset[str]:
    """Endings of documents that are fetched because links are taken out of them."""
    return document_endings(pdf=settings.pdf.links, office=settings.office.links)


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


class PluginBooks:
    """What plugins did, over all runs, in a file of the crawl directory for each process."""

    def __init__(self, folder: Path, writer: int, clock: Clock) -> None:
        self._file = folder / f"{writer}.json"
        self._clock = clock
        self._plugins: Sequence[Kept] = ()
        self._before: dict[str, dict[str, int]] = {}
        self._written_ms = -WRITTEN_EVERY_MS

    def keep(self, plugins: Sequence[Kept]) -> None:
        """Keep the books of these from now on."""
        self._plugins, self._before = plugins, read_books(self._file)
        for one in plugins:
            one.changed = self._changed

    def _changed(self) -> None:
        if self._clock.steady_ms() - self._written_ms >= WRITTEN_EVERY_MS:
            self.write()

    def write(self) -> None:
        """Write the counts. A full disk costs them, and nothing else: the crawl itself will say so."""
        self._written_ms = self._clock.steady_ms()
        counts = {name: dict(known) for name, known in self._before.items()}
        for one in self._plugins:
            known = Counter(counts.get(one.name, {}))
            known.update({name: getattr(one, name) for name in COUNTED})
            counts[one.name] = {**known, "off": int(one.is_off)}
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            fresh = self._file.with_suffix(".new")
            fresh.write_text(json.dumps(counts), encoding="utf-8")
            fresh.replace(self._file)


def read_books(file: Path) -> dict[str, dict[str, int]]:
    """The counts of one file, by plugin; nothing where it cannot be read."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        str(name): {str(key): value for key, value in counts.items() if isinstance(value, int)}
        for name, counts in document.items()
        if isinstance(counts, dict)
    }


def plugin_counts(folder: Path) -> Mapping[str, Mapping[str, int]]:
    """What plugins did in all processes and runs of a crawl."""
    total: dict[str, Counter[str]] = {}
    for file in sorted(folder.glob("*.json")):
        for name, counts in read_books(file).items():
            total.setdefault(name, Counter()).update(counts)
    return {name: dict(counts) for name, counts in sorted(total.items())}

"""Nephila as a library (E2): the same crawl as the command's, in ten lines of Python.

    async for page in nephila.crawl("https://example.org", out="site", max_pages=100):
        print(page.url, page.status, page.title)

A page is handed over when it is stored and settled, once: what counts as a page in the summary, but for one that its
server says has not changed (304). That has no body, and was handed over when it was stored. A listener hears of it: an
event `fetch_ok` with status 304; and the catalogue has it as a capture with that status (`nephila sql`).

The crawl waits for its reader (a bounded queue lies between the two), so a slow loop body slows the crawl down and
never fills the memory. Who leaves the loop early stops the crawl; in an ``async with`` it has ended when the block has,
and without, the next crawl on the same directory waits for that.

It runs in the process that calls it, whatever the setting `processes` says: pages are handed over as objects, and no
page crosses a pipe. Several processes are the command's affair.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import ClassVar, Self, TypeVar, cast
from weakref import WeakSet

from nephila.config import Configured, Declared, Given, declarations, given_by_flag, load, read_stored
from nephila.config.values import expected
from nephila.interfaces.events import EventSink
from nephila.model.errors import UsageError
from nephila.model.events import Event
from nephila.model.page import Link
from nephila.model.summary import CrawlSnapshot, CrawlSummary
from nephila.node.clock import SystemClock
from nephila.node.crawl import Crawl
from nephila.node.ground import Ground
from nephila.node.opening import opened
from nephila.node.scopefile import check_scope
from nephila.node.sowing import check_sown
from nephila.observe import LoggingSink
from nephila.parse import decide_charset, decode
from nephila.pipeline import CrawledPage
from nephila.plugins.child import refuse_while_preparing
from nephila.plugins.points import Point, points_of
from nephila.seeds import ArgumentSeeds, Seed, SeedSource

_One = TypeVar("_One")

PAGES_AHEAD = 64
"""Pages that may wait for their reader before the crawl waits for him."""
_ELSEWHERE = {
    "forever": "max_wait=float('inf') keeps a crawl from ending by itself",
    "politeness_ms": "delay is the same in seconds",
    "seeds": "seeds come first, as in nephila.crawl(*urls); of a list, nephila.seeds has TextSeeds(FileLines(path))",
    "domains": "domains come first, as seeds do; of a CSV, nephila.seeds has DomainSeeds(FileLines(path))",
}
"""Flags of the command that are no settings, and what stands for them here."""
_TURNS = 2
"""Of the loop, until an iterator that was thrown away is closed: it makes a task for that, which then runs."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as a reader gets it."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order in which they came."""
    body: bytes
    """Decoded of its content coding."""
    title: str
    language: str
    links: tuple[Link, ...]
    depth: int
    via: str
    """The page that it was found on; empty for a seed."""
    duplicate_of: str
    """The URL under which the same content was stored before; empty when it is new."""
    near_duplicate_of: str = ""
    """The URL of an earlier page that says nearly the same; empty when there is none."""
    extracted: tuple[tuple[str, str], ...] = ()
    """What content extractors found, as ``PLUGIN.FIELD`` and text."""
    truncated: str = ""
    """Why the body is not whole, after all tries: ``length``, ``time``, ``disconnect``; empty when it is."""

    @property
    def text(self) -> str:
        """The body as text, in the charset that a browser would choose."""
        content_type = ", ".join(value for name, value in self.headers if name == "content-type")
        return decode(self.body, decide_charset(self.body, content_type))


class PageStream:
    """A crawl that is read page by page. Iterate over it once; `stop`, `pause` and `snapshot` work meanwhile.

    A later visit that finds a page unchanged (304) hands nothing over: `summary.pages` counts it, listeners hear of it.

    Who leaves the loop early closes it, with ``async with`` or `aclose`: then the crawl has ended cleanly when that
    returns. Without, it is stopped when the loop's iterator is thrown away, and another one on the same directory
    begins when it has ended.
    """

    _begun: ClassVar[WeakSet[PageStream]] = WeakSet()
    """Of this process: whoever breaks out of a loop and goes on meets the crawl that he has just left."""

    def __init__(
        self,
        seeds: Sequence[SeedSource],
        out: Path,
        configured: Configured,
        listeners: Sequence[EventSink],
        ground: Callable[[], Ground],
        *,
        new_cycle: bool,
    ) -> None:
        self.out = out
        """The crawl directory: running the same crawl on it again goes on."""
        self.summary: CrawlSummary | None = None
        """Set when the crawl has ended."""
        self._seeds = seeds
        self._configured = configured
        self._listeners = listeners
        self._ground = ground
        self._new_cycle = new_cycle
        self._crawl: Crawl | None = None
        self._stopped = self._paused = False
        """Asked for before the crawl had begun."""
        self._running: asyncio.Task[CrawlSummary] | None = None
        self._pages: asyncio.Queue[CrawledPage | None] = asyncio.Queue(PAGES_AHEAD)

    def __aiter__(self) -> AsyncIterator[FetchedPage]:
        return self._read()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the crawl, if it still runs, and wait for its end."""
        self.stop()
        if self._running is not None:
            await self._ended(self._running)

    def stop(self) -> None:
        """End cleanly: what was stored is settled, what is queued stays."""
        self._stopped = True
        if self._crawl is not None:
            self._crawl.stop()

    def pause(self) -> None:
        """Ask for nothing new until `resume`."""
        self._paused = True
        if self._crawl is not None:
            self._crawl.pause()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._paused = False
        if self._crawl is not None:
            self._crawl.resume()

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped it, by leaving its loop, too."""
        return self._stopped

    def snapshot(self) -> CrawlSnapshot | None:
        """The figures of this moment; None before the crawl has begun."""
        return None if self._crawl is None else self._crawl.snapshot()

    async def run(self) -> CrawlSummary:
        """Crawl to the end without looking at the pages."""
        async for _ in self:
            pass
        if self.summary is None:
            raise RuntimeError("a crawl that has ended has a summary")
        return self.summary

    def runs_on(self, out: Path) -> asyncio.Task[CrawlSummary] | None:
        """The crawl on this directory, if it runs, in the loop of whoever asks."""
        task = self._running
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task if self.out.resolve() == out.resolve() else None

    async def _read(self) -> AsyncIterator[FetchedPage]:
        if self._running is not None:
            raise RuntimeError("a crawl is iterated over once; make another one on the same directory to go on")
        self._running = asyncio.create_task(self._run(), name="nephila-crawl")
        self._begun.add(self)
        try:
            while not (self._running.done() and self._pages.empty()):
                if (crawled := await self._pages.get()) is not None:
                    yield _page(crawled)
        finally:
            self.stop()
            await self._ended(self._running)

    async def _ended(self, running: asyncio.Task[CrawlSummary]) -> None:
        """Wait for the end; a reader who left must not keep the crawl waiting for him."""
        while not running.done():
            while not self._pages.empty():
                self._pages.get_nowait()
            await asyncio.wait([running], timeout=0.05)
        self.summary = running.result()

    async def _others_left(self) -> None:
        """Wait for the end of crawls on this directory whose readers have left; one that is being read goes on."""
        found = [(one, task) for one in self._begun if one is not self and (task := one.runs_on(self.out))]
        for _ in range(_TURNS if found else 0):
            await asyncio.sleep(0)
        if left := [task for one, task in found if one.is_stopped]:
            await asyncio.wait(left)

    async def _run(self) -> CrawlSummary:
        heard = [_Listener(one, self.stop) for one in self._listeners]
        try:
            await self._others_left()
            ground = self._ground()
            listeners: list[EventSink] = [LoggingSink(ground.clock.wall_ms()), *heard]
            async with opened(
                self.out, self._configured, ground, listeners=listeners, deliver=self._pages.put
            ) as self._crawl:
                if self._paused:
                    self._crawl.pause()
                if self._stopped:
                    self._crawl.stop()
                summary = await self._crawl.run(self._seeds, new_cycle=self._new_cycle)
                if self._crawl.is_untouched:
                    check_sown(self._crawl.seed_report, summary, given=bool(self._seeds))
            for listener in heard:
                listener.complain()
            return summary
        finally:
            if not self._pages.full():  # whoever waits for a page is told; nobody waits while the queue is full
                self._pages.put_nowait(None)


class _Listener:
    """A listener of the program. It is no part of the crawl: one that raises is told no more, and the crawl stops."""

    def __init__(self, own: EventSink, stop: Callable[[], None]) -> None:
        self._own = own
        self._stop = stop
        self._error: Exception | None = None

    def emit(self, event: Event) -> None:
        self._call(lambda: self._own.emit(event))

    def flush(self) -> None:
        self._call(self._own.flush)

    def close(self) -> None:
        self._call(self._own.close)

    def complain(self) -> None:
        """Raise what it raised, now that everything is settled and closed."""
        if self._error is not None:
            raise self._error

    def _call(self, doing: Callable[[], None]) -> None:
        if self._error is not None:
            return
        try:
            doing()
        except Exception as error:  # noqa: BLE001 - raised in `complain`
            self._error = error
            self._stop()


def crawl(
    *seeds: str | SeedSource,
    out: str | Path | None = None,
    config: str | Path | None = None,
    new_cycle: bool = False,
    listeners: Sequence[EventSink] = (),
    plugins: Sequence[object] = (),
    ground: Callable[[], Ground] = lambda: Ground(SystemClock()),
    **options: object,
) -> PageStream:
    """A crawl from these seeds, begun when it is iterated over.

    `options` are the flags of `nephila crawl` with underscores (``max_pages=100``, ``delay=0.5``, ``scope="host"``) or
    settings as ``group__name`` (``fetch__timeout_s=5``). Without `out` the crawl lives in a new temporary directory.
    `plugins` are objects as `nephila.interfaces.plugins` describes them, beside those that a setting switches on.
    `listeners` hear every event; what one of them raises stops the crawl cleanly, and is raised at its end. Warnings
    (a plugin fails, a store is away) also go to the logger ``nephila``.
    A list may be given as one (``exclude=["/a/", "/b/"]``); a text is one item of it, as with a flag given once.
    Raises `UsageError` for an option that does not exist or does not fit, and for what is no seed or no plugin.
    """
    refuse_while_preparing()
    plugins = _several("plugins", plugins)
    listeners = _several("listeners", listeners)
    for listener in listeners:
        _check_listener(listener)
    supplies = any(Point.SEEDS in points_of(plugin) for plugin in plugins)
    texts = [seed for seed in seeds if isinstance(seed, str)]
    sources: list[SeedSource] = [_source(seed) for seed in seeds if not isinstance(seed, str)]
    if texts:
        sources.insert(0, ArgumentSeeds(texts))
    directory = Path(tempfile.mkdtemp(prefix="nephila-")) / "crawl" if out is None else _directory(out)
    stored = read_stored(directory)
    flags = [_given(*item) for item in options.items()]
    configured = load(stored=stored, file=Path(config) if config is not None else None, flags=flags)

    def grounded() -> Ground:
        own = ground()
        return replace(own, plugins=[*own.plugins, *plugins])

    if not (sources or supplies or configured.settings.plugins.enabled):
        if stored is None:
            raise UsageError("there are no seeds", hint="give a URL")
        check_scope(directory, configured.settings)
    return PageStream(sources, directory, configured, listeners, grounded, new_cycle=new_cycle)


def _several(name: str, given: Sequence[_One]) -> tuple[_One, ...]:
    """What was given as a list; a generator is read once, since it can be."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is a list of objects, and not {type(given).__name__}", hint=f"as in {name}=[one]")
    return tuple(given)


def _check_listener(given: object) -> None:
    """One that lacks a method would be missed in the middle of a crawl."""
    if isinstance(given, type):
        raise UsageError(f"the listener {given.__name__} is a class", hint="give an object of it")
    lacking = [name for name in ("emit", "flush", "close") if not callable(getattr(given, name, None))]
    if lacking:
        raise UsageError(
            f"{type(given).__name__} is no listener: it has no {' and no '.join(lacking)}",
            hint="a listener has the methods emit(event), flush() and close(); see examples/follow_events.py",
        )


def _directory(given: object) -> Path:
    """Where the crawl goes: archives, catalogue and messages name it, so it must be text."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(path, str):
        raise UsageError(f"out is a path as text, and not {type(path).__name__}", hint="as in out='site'")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{path!a} is no text, so it cannot be where a crawl goes", hint="rename it") from error
    if "\0" in path:
        raise UsageError(f"{path!r} can be no path", hint="as in out='site'")
    return Path(path)


class _Source:
    """Something that yields seeds; that it does is looked at, since texts alone are easily taken for seeds."""

    def __init__(self, given: Iterable[object]) -> None:
        self._given = given

    def __iter__(self) -> Iterator[Seed]:
        for one in self._given:
            if not hasattr(one, "text"):
                raise _no_seed(one, f"{type(self._given).__name__} gives {type(one).__name__}")
            yield cast("Seed", one)


def _source(given: object) -> SeedSource:
    """What was given as seeds beside texts."""
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray | Mapping):
        raise _no_seed(given, f"{type(given).__name__} is neither")
    if isinstance(given, list | tuple | set | frozenset):
        list(_Source(given))  # told at once
    return _Source(given)


def _no_seed(given: object, what: str) -> UsageError:
    return UsageError(
        f"a seed is a URL or a domain as text, or a source that gives `nephila.seeds.Seed`s; {what}",
        hint="give several texts as nephila.crawl(*urls)"
        if isinstance(given, str)
        else "as in nephila.crawl('https://example.org')",
    )


def _given(name: str, value: object) -> Given:
    """An option as a setting."""
    by_flag = {one.flag.replace("-", "_"): one for one in declarations().values() if one.flag}
    by_key = {key.replace(".", "__"): one for key, one in declarations().items()}
    declared = by_flag.get(name) or by_key.get(name)
    if declared is None:
        near = difflib.get_close_matches(name, [*by_flag, *by_key], 1)
        hint = f"did you mean {near[0]}?" if near else "see docs/settings.md for all of them"
        hint = _ELSEWHERE.get(name, hint)
        raise UsageError(f"there is no option {name!r}", hint=hint)
    match value:
        case bool() if declared.type is bool:
            return given_by_flag(declared, name, value)
        case list() | tuple() | set() | frozenset() if declared.many:
            return given_by_flag(declared, name, [_written(declared, name, item) for item in value])
        case _:
            text = _written(declared, name, value)
            return given_by_flag(declared, name, [text] if declared.many and declared.type is str else text)


def _written(declared: Declared, name: str, value: object) -> str:
    """A single value as it would be written on the command line."""
    match value:
        case bool():
            pass  # it is a number to Python, and none to people
        case str() | Real():
            return str(value)
        case os.PathLike() if declared.type is str:
            return os.fsdecode(value)
    raise UsageError(
        f"{name} cannot be {value!r:.60}, which is of the type {type(value).__name__}",
        hint=f"it is: {declared.help}; expected {expected(declared)}",
    )


def _page(crawled: CrawledPage) -> FetchedPage:
    fetched, page = crawled.fetched, crawled.page
    return FetchedPage(
        url=fetched.url,
        status=fetched.status,
        headers=fetched.headers,
        body=fetched.body,
        title=page.title if page else "",
        language=page.language if page else "",
        links=tuple(page.links) if page else (),
        depth=crawled.task.depth,
        via=crawled.task.via,
        duplicate_of=crawled.duplicate_of,
        near_duplicate_of=crawled.near_duplicate_of,
        extracted=page.extracted if page else (),
        truncated=fetched.truncated or "",
    )

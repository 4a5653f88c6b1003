"""The desk from which a crawl is operated, by whoever serves the control API: all that may be read and changed.

Three places have one, and whoever sits at it need not know which it is. Inside a crawl that runs it stands on the
crawl's own parts, and what is changed is acted upon at once. Beside it (`nephila serve`) it stands on the directory:
the frontier is opened as worker processes open it, and a running crawl sees a change with its next claim, a wider scope
with its next page, new seeds within seconds. On the engines of a fleet (`fleet.desk`) it stands on what workers share.

A process may open the frontier's store only once, so the desk is the one holder of it in a process that serves.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from nephila import VERSION
from nephila.dedup import LearnedAliases, LearnedEnvironment
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.census import LmdbCensus
from nephila.frontier.scope import Scope
from nephila.interfaces.catalogue import CaptureRow, PageRow, WholeCatalogue
from nephila.interfaces.census import Census
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.interfaces.repute import Repute
from nephila.model.events import Event
from nephila.model.settings import Settings
from nephila.politeness import StandardPoliteness
from nephila.urls import Address, Identifier

from .addressing import aliases_of, identifier_of, scope_of
from .cataloguing import identity_of, read_catalogue
from .clock import SystemClock
from .directory import CrawlDirectory
from .engines import policy_of
from .frontiers import embedded_of
from .importance.grades import DirectoryRanks
from .inspect import WhyAnswer, begun
from .logbook import Figures, FiguresFile
from .machinery import Machinery
from .operated import OperatedFrontier, OperatedView
from .plugin_books import plugin_counts
from .reasons import REASONS
from .redirected import RedirectTargets
from .roster import Roster
from .scopefile import ScopeFollower
from .sowing import Sower
from .standing import CrawlStatus, Stored, standing
from .story import StoryTeller
from .tailing import EventTail, FileTail
from .takedown.office import Office, office_in

T = TypeVar("T")

ACTIVE_MS = 300_000
WORKERS_REMEMBERED = 10_000


class Workers:
    """Workers outside, and when each was heard of last."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}

    def heard(self, name: str, at: int) -> None:
        """One asks for work."""
        self._heard.pop(name, None)
        self._heard[name] = at
        if len(self._heard) > WORKERS_REMEMBERED:
            del self._heard[next(iter(self._heard))]

    def active(self, at: int) -> int:
        """How many were heard of in the last minutes."""
        return sum(1 for heard_at in self._heard.values() if at - heard_at < ACTIVE_MS)


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """Somebody who works on the crawl: a worker of a fleet, or the processes of a crawl directory together."""

    id: str
    name: str
    state: str
    """working, idle, leaving or silent."""
    group: str = ""
    version: str = VERSION
    started_at: int = 0
    silent_s: float = 0.0
    pages: int = 0
    errors: int = 0
    pages_per_s: float = 0.0
    in_flight: int = 0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    open_files: int = 0
    disk_free_bytes: int = 0
    spool_segments: int = 0
    spool_bytes: int = 0
    waits_for: str = ""
    """What it cannot go on without, in words."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of it. `node.ordering` and `node.loans` say what is done with them."""

    name: str
    """What the crawl is called: its directory, or its name on the engines."""
    directory: CrawlDirectory
    settings: Settings
    clock: Clock
    frontier: OperatedFrontier
    census: Census
    """Lists of domains and hosts."""
    identifier: Identifier
    scope: Scope
    sower: Sower
    politeness: StandardPoliteness
    aliases: LearnedAliases | None
    figures: Callable[[], Figures]
    """The figures over time, as of this moment or as they were written last."""
    nudge: Callable[[], None]
    """Have a crawl in this process look again."""
    follow_scope: Callable[[], None]
    """Learn what others have added to the scope."""
    catalogue: Callable[[], AbstractContextManager[WholeCatalogue]]
    """The catalogue, to be read by one thread."""
    emit: Callable[[Event], None]
    """Tell the listeners of a crawl in this process of something."""
    roster: Roster
    running: Callable[[], bool]
    """Whether somebody works on the crawl, here or elsewhere."""
    at_work: Callable[[], Sequence[WorkerSeen]]
    """Who that is."""
    events: Callable[[], EventTail]
    """The events of the crawl as they happen, for one reader."""
    crawls: bool
    """Whether the crawl runs in this process."""
    takedowns: Office
    """Where takedowns are ordered."""
    workers: Workers = field(default_factory=Workers)
    ranks: Repute | None = None
    """What was computed of the link graph, where it is computed."""

    # Reading, in threads: a file may be slow and a server away, and the crawl's loop must not wait.

    async def look(self, ask: Callable[[OperatedView], T]) -> T:
        """Ask the frontier something."""
        return await asyncio.to_thread(ask, self.frontier.view)

    async def counters(self) -> FrontierSnapshot:
        """The frontier in figures."""
        return self.frontier.snapshot() if self.crawls else await asyncio.to_thread(self.frontier.refresh)

    async def status(self) -> CrawlStatus:
        """Where the crawl stands, from counters."""

        def look(catalogue: WholeCatalogue) -> CrawlStatus:
            return standing(
                self.frontier.view,
                Stored(catalogue.capture_count(), catalogue.wire_bytes()),
                self.name,
                self.settings.limits.target_domains,
                running=running,
                plugins=plugin_counts(self.directory.plugins),
            )

        running = self.is_running()
        return await self.ask_catalogue(look)

    async def why(self, url: str) -> WhyAnswer:
        """What became of a URL."""
        address = self.identify(url)
        if not isinstance(address, Address):
            told = REASONS.get(address[0], address[0])
            lines = [("URL", url), ("verdict", f"refused: {told}"), ("rule", address[1])]
            data = {"state": "refused", "reason": address[0], "detail": address[1]}
            return WhyAnswer(lines, found=False, data=data)
        self.follow_scope()

        def tell(catalogue: WholeCatalogue) -> WhyAnswer:
            teller = StoryTeller(
                *(self.frontier.view, catalogue, self.scope, self.politeness, self.clock, self.settings),
                *(self.aliases, self.ranks),
            )
            targets = RedirectTargets(self.directory.warc, self.directory.spool)
            lines, data, found = teller.tell(address, targets)
            return WhyAnswer(lines, found, data)

        return await self.ask_catalogue(tell)

    async def captures(self, address: Address) -> list[CaptureRow]:
        """The captures of one URL, newest first."""
        return await self.ask_catalogue(lambda catalogue: catalogue.captures_of(address.fingerprint))

    async def pages(self, host: str, limit: int) -> list[PageRow]:
        """Stored pages, newest first, of one host or of all."""
        return await self.ask_catalogue(lambda catalogue: list(catalogue.pages(host=host, limit=limit)))

    def identify(self, url: str) -> Address | tuple[str, str]:
        """The address that a text stands for; else the reason why it stands for none, and the rule."""
        return self.sower.identify(url)

    def is_running(self) -> bool:
        """Whether somebody works on the crawl, here or elsewhere."""
        return self.crawls or self.running()

    async def ask_catalogue(self, ask: Callable[[WholeCatalogue], T]) -> T:
        """Ask the catalogue something, in a thread."""
        return await asyncio.to_thread(self._ask, ask)

    def _ask(self, ask: Callable[[WholeCatalogue], T]) -> T:
        with self.catalogue() as catalogue:
            return ask(catalogue)


def is_held(directory: CrawlDirectory) -> bool:
    """Whether a crawl runs on the directory."""
    descriptor = os.open(directory.marker, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def at_work_in(directory: CrawlDirectory, figures: Figures, *, running: bool) -> list[WorkerSeen]:
    """Who works on a crawl directory: its processes, of which figures are kept together."""
    if not running:
        return []
    now, process = figures.present, figures.present.process
    return [
        WorkerSeen(
            id="crawl",
            name=directory.root.name or "crawl",
            state="leaving" if now.stopping else "working" if now.in_flight else "idle",
            started_at=now.started_at,
            pages=now.run.pages,
            errors=sum(now.run.errors.values()),
            pages_per_s=now.pages_per_s,
            in_flight=now.in_flight,
            cpu_s=process.cpu_s,
            memory_bytes=process.memory_bytes,
            open_files=process.open_files,
            disk_free_bytes=process.disk_free_bytes,
        )
    ]


def desk_inside(machinery: Machinery, figures: Callable[[], Figures], nudge: Callable[[], None]) -> Desk:
    """The desk of a crawl that runs in this process."""
    directory, settings = CrawlDirectory(machinery.out), machinery.settings
    frontier = embedded_of(machinery.frontier)
    census = LmdbCensus(frontier.view)
    return Desk(
        name=str(directory.root),
        directory=directory,
        settings=settings,
        clock=machinery.clock,
        frontier=frontier,
        census=census,
        identifier=machinery.identifier,
        scope=machinery.scope,
        sower=machinery.sower,
        politeness=_politeness(settings),
        aliases=machinery.aliases,
        figures=figures,
        nudge=nudge,
        follow_scope=ScopeFollower(directory, machinery.scope),
        catalogue=partial(read_catalogue, directory, settings),
        emit=machinery.events.emit,
        roster=Roster(census),
        running=lambda: True,
        at_work=lambda: at_work_in(directory, figures(), running=True),
        events=lambda: FileTail(directory.events),
        crawls=True,
        takedowns=office_in(
            directory.takedowns, settings, _nothing if machinery.takedowns is None else machinery.takedowns.wake
        ),
        ranks=_ranks(directory, machinery.clock, frontier.secret),
    )


@asynccontextmanager
async def desk_beside(out: Path) -> AsyncIterator[Desk]:
    """A desk on a directory, whether a crawl runs on it or not; `CrawlDirectoryError` when there is none."""
    directory, settings = begun(out)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        ranks = DirectoryRanks(directory.rank, clock.steady_ms)
        stack.callback(ranks.close)
        frontier = LmdbFrontier(directory.frontier, clock, policy_of(settings, repute=ranks), joining=True)
        stack.push_async_callback(frontier.close)
        ranks.identity = identity_of(frontier.secret)
        identifier = identifier_of(settings, frontier.secret)
        scope = scope_of(settings, directory.saved_scope())
        aliases = None
        if (directory.aliases / "data.mdb").exists():
            environment = LearnedEnvironment(directory.aliases, read_only=True)
            stack.callback(environment.close)
            aliases = aliases_of(environment, settings, identifier, clock)
        census, figures = LmdbCensus(frontier.view), FiguresFile(directory.figures).read
        yield Desk(
            name=str(directory.root),
            directory=directory,
            settings=settings,
            clock=clock,
            frontier=frontier,
            census=census,
            identifier=identifier,
            scope=scope,
            sower=Sower(frontier, identifier, scope, partial(directory.add_to_scope, scope.unsaved)),
            politeness=_politeness(settings),
            aliases=aliases,
            figures=figures,
            nudge=_nothing,
            follow_scope=ScopeFollower(directory, scope),
            catalogue=partial(read_catalogue, directory, settings),
            emit=_unheard,
            roster=Roster(census),
            running=lambda: is_held(directory),
            at_work=lambda: at_work_in(directory, figures(), running=is_held(directory)),
            events=lambda: FileTail(directory.events),
            crawls=False,
            takedowns=office_in(directory.takedowns, settings),
            ranks=ranks,
        )


def _ranks(directory: CrawlDirectory, clock: Clock, secret: int) -> DirectoryRanks:
    return DirectoryRanks(directory.rank, clock.steady_ms, identity_of(secret))


def _nothing() -> None:
    """A crawl in another process looks by itself."""


def _unheard(_event: Event) -> None:
    """There is no crawl in this process to tell it."""


def _politeness(settings: Settings) -> StandardPoliteness:
    return StandardPoliteness(settings.politeness, settings.robots, settings.frontier, settings.fetch.user_agent)


async def stories_of(desk: Desk, urls: Sequence[str]) -> dict[str, UrlStory | None]:
    """What is known of each of some URLs, by their texts."""
    addresses = {url: desk.identify(url) for url in urls}
    wanted = [one for one in addresses.values() if isinstance(one, Address)]
    known = dict(zip(wanted, await desk.look(lambda view: view.stories(wanted)), strict=True))
    return {url: known.get(one) if isinstance(one, Address) else None for url, one in addresses.items()}

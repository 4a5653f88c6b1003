"""Joining a fleet: the engines, the register, the worker's directory, and the parts that work.

The order: the directory is held, so that whoever wrote what lies in it is dead; the worker registers, so that it counts
as alive with all of that; what was given up meanwhile is set aside; only then is anything opened that would bring it to
the store.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from nephila import VERSION
from nephila.config import Configured
from nephila.dedup import LmdbDigestIndex, SharedDigestIndex, SharedLearning
from nephila.fetch.dns_shared import SharedAddresses
from nephila.frontier.redis.clocks import RemoteTimeline
from nephila.interfaces.catalogue import Catalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.objects import ObjectStore
from nephila.model.errors import EngineAwayError, NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.model.task import Lease
from nephila.node.archiving import object_store
from nephila.node.engines import Engines
from nephila.node.evidence import Afar
from nephila.node.ground import Ground, Seat
from nephila.node.machinery import Machinery
from nephila.node.opening import sized
from nephila.node.wiring import assemble
from nephila.observe import Fanout
from nephila.politeness import address_ledger
from nephila.render import BorrowedBrowsers, BrowserLender, SharedShelf
from nephila.store import ArchivePlace

from .access import check_fleet
from .arrived import ArrivedCatalogue
from .broadcasting import Broadcast
from .crawl import FleetCrawl, Post
from .fallback import Fallback
from .frontier import FleetFrontier
from .gate import GatedObjects
from .identity import WorkerDirectory
from .outdated import forget_outdated
from .patience import patiently
from .queues import LongQueues
from .regions import regional, unknown_group
from .registry import Figures, Member, Registry, draw_writer
from .repute import Follower, RegionalRanks
from .scoping import SharedScope
from .servers import OpenServers, Servers, Tell
from .takedown_records import TakedownObjects
from .trail_shipping import TrailShipper, events_left
from .untold import Untold
from .visiting import Visits
from .watching import Watched, WorkerEar, WorkerWatch


@asynccontextmanager
async def joined(
    configured: Configured,
    ground: Ground,
    open_servers: OpenServers,
    *,
    listeners: Sequence[EventSink] = (),
) -> AsyncIterator[FleetCrawl]:
    """A worker of the fleet that the settings name; everything is closed at the end."""
    whole, warning = sized(configured.settings)
    check_fleet(whole)
    settings = regional(whole, whole.fleet.group)
    crawl_name = check_fleet(settings)
    directory = WorkerDirectory(Path(settings.fleet.directory))
    worker: FleetCrawl | None = None

    def tell(reason: str, detail: str) -> None:
        event = Event(EventKind.WARNING, ground.clock.wall_ms(), reason=reason, detail=detail)
        (heard if worker is None else worker.machinery.events).emit(event)

    def fail(error: NephilaError) -> None:
        if worker is not None:
            worker.fail(error)

    heard = Fanout(listeners)
    with directory.held():
        async with AsyncExitStack() as stack:
            identity = directory.identity(crawl_name)
            servers = await open_servers(settings, ground.clock, identity.id, stack, tell)
            registry = Registry(servers.state, crawl_name)
            member = member_of(identity.id, settings, ground.clock)
            introduce(settings, tell)
            objects = GatedObjects(
                ground.objects or object_store(settings, ground.clock),
                _place(settings),
                partial(registry.may_upload, member.id),
            )
            writer = draw_writer()
            common = RemoteTimeline(ground.clock)
            common.heard(await _register(registry, member, writer, directory, objects, settings))
            parting = Parting(registry, member, writer, directory)
            stack.push_async_callback(parting.take_leave, heard, ground.clock)
            visits = Visits(whole, ground.clock, stack, RegionalRanks(directory.rank, objects, ground.clock, tell))
            untold = directory.untold = Untold(visits.registries(servers.state))
            scope = SharedScope(registry, directory)
            directory.begin_scope()
            await scope.follow()
            contents = SharedDigestIndex(
                await _own_contents(directory, servers.catalogue, ground.clock, stack), servers.state, crawl_name
            )
            learned = SharedLearning(servers.state, crawl_name)
            frontier = FleetFrontier(
                servers.frontier, partial(patiently, untold.tell), visits.border(settings.fleet.group)
            )
            fallback = Fallback(registry, frontier)
            # Whoever was here a moment ago, or is elsewhere, may have asked an address just now.
            addresses = address_ledger(settings.politeness, ground.clock.steady_ms())
            engines = Engines(
                frontier,
                ArrivedCatalogue(servers.catalogue, contents),
                contents,
                known=tuple,
                wire_bytes=servers.catalogue.wire_bytes,
                shared=contents,
                shelf=SharedShelf(servers.state, crawl_name, settings.render.shelf_bytes),
                browsers=BorrowedBrowsers(servers.state, crawl_name, settings.render.time_s),
                names=SharedAddresses(servers.state, crawl_name, settings.fleet.dns_ttl_s, settings.dns.min_ttl_s),
                learned=learned,
                writer=writer,
                span_ms=int(settings.fleet.lease_span_s * 1000),
                together_s=settings.fleet.together_s,
                afar=Afar(common.now, parting.carry_events),
            )
            ear = WorkerEar()
            broadcast = Broadcast(servers.state, settings.fleet, member.name, ground.clock.wall_ms())
            machinery = assemble(
                directory,
                settings,
                replace(ground, objects=objects),
                stack,
                fail,
                seat=Seat(engines=engines, addresses=addresses, twins=fallback, keep_twin=untold.keep_twin),
                listeners=[*listeners, ear, broadcast],
            )
            fallback.identifier = machinery.identifier
            parting.trail = _carrier(directory, machinery, identity.id, ground, tell)
            draw = random.Random(writer)  # noqa: S311 - jitter
            post = Post(
                registry,
                member,
                writer,
                directory,
                contents,
                learned,
                servers.frontier.pending_segments,
                servers.frontier.look,
                partial(servers.frontier.reap_holder, member.id),
                draw,
                addresses.share_among if addresses is not None else _nothing,
                LongQueues(servers.frontier, draw),
                common.heard,
                parting.trail,
                broadcast,
                partial(WorkerWatch, Watched(machinery, servers, member, writer, ear)),
                BrowserLender(servers.state, crawl_name, settings.render.time_s),
                TakedownObjects(objects, _place(settings)).pending,
                fallback,
                Follower(directory.rank, objects, _place(settings), ground.clock, tell).serve(servers.frontier, stack),
                partial(_hurry, servers, visits),
            )
            looking = replace(machinery, before_work=partial(parting.look_around, scope, learned))
            worker = parting.worker = FleetCrawl(looking, post)
            if warning:
                worker.warn("descriptors", warning)
            yield worker


class Parting:
    """The end of a worker: what it leaves as evidence is carried to the store, and then it is off the register.

    Whoever is not on the register has nothing that could still come (K2). So it stays there where something is left
    behind, unless that can say nothing of any page: events of a run that was given no lease.
    """

    def __init__(self, registry: Registry, member: Member, writer: int, directory: WorkerDirectory) -> None:
        """Made when it has registered, before it does anything."""
        self._registry, self._member, self._writer, self._directory = registry, member, writer, directory
        directory.look_back()
        self.trail: TrailShipper | None = None
        self.worker: FleetCrawl | None = None
        """Both None where the worker could not be assembled."""

    async def look_around(self, scope: SharedScope, learned: SharedLearning, leases: Sequence[Lease]) -> None:
        """As `_look_around`; from now on there may be pages."""
        if not self._directory.has_asked:
            self._directory.note_asking()
        await _look_around(scope, learned, leases)

    async def carry_events(self) -> None:
        """The event files are closed, the chain is not."""
        if self.trail is not None:
            await self.trail.carry_events()

    async def take_leave(self, heard: EventSink, clock: Clock) -> None:
        """All is closed."""
        if self.trail is not None:
            await self.trail.finish()
        try:
            if await asyncio.to_thread(self._leaves_nothing):
                writers = {self._writer} if self.worker is None else self.worker.writers
                await self._registry.leave(self._member.id, sorted(writers))
        except EngineAwayError as error:
            detail = f"this worker could not take its leave: {error}"
            heard.emit(Event(EventKind.WARNING, clock.wall_ms(), reason="engine_away", detail=detail))

    def _leaves_nothing(self) -> bool:
        """Blocks."""
        if self._directory.spooled_writers():
            return False
        if not self._directory.has_asked:
            self._directory.note_unasked()
            return True
        return self.worker is not None and self.worker.has_worked and not events_left(self._directory)


def _carrier(
    directory: WorkerDirectory, machinery: Machinery, owner: str, ground: Ground, tell: Callable[[str, str], None]
) -> TrailShipper:
    """Who carries event files and chain to the store, over a line of its own."""
    settings, clock = machinery.settings, ground.clock
    store = ground.objects or object_store(settings, clock, uploads=1), _place(settings)
    return TrailShipper(directory, machinery.evidence, owner, store, settings.spool, clock, tell)


async def _own_contents(
    directory: WorkerDirectory, catalogue: Catalogue, clock: Clock, stack: AsyncExitStack
) -> LmdbDigestIndex:
    """The index of contents that are this worker's, without what a retention may have taken out."""
    await asyncio.to_thread(forget_outdated, directory, catalogue)
    own = LmdbDigestIndex(directory.duplicates, clock.boot_id())
    stack.callback(own.close)
    return own


async def _look_around(scope: SharedScope, learned: SharedLearning, leases: Sequence[Lease]) -> None:
    """Know what others have let in, and what they have learned of the hosts that were claimed."""
    await asyncio.gather(patiently(scope.follow), learned.ask(lease.host for lease in leases))


def _hurry(servers: Servers, visits: Visits, seconds: float) -> None:
    servers.hurry(seconds)
    visits.hurry(seconds)


def _nothing(_workers: int) -> None:
    """Addresses have no limits."""


def introduce(settings: Settings, tell: Tell) -> None:
    """Warn of what may be a slip."""
    if stray := unknown_group(settings):
        tell("group", f"{stray}; so this worker asks what is nobody's")


def member_of(worker_id: str, settings: Settings, clock: Clock) -> Member:
    """What a worker with these settings says of itself."""
    name = settings.fleet.worker or f"{socket.gethostname()}-{worker_id[:4]}"
    return Member(worker_id, name, settings.fleet.group, os.getpid(), VERSION, clock.wall_ms())


async def _register(
    registry: Registry,
    member: Member,
    writer: int,
    directory: WorkerDirectory,
    objects: ObjectStore,
    settings: Settings,
) -> int:
    """Count as alive with all that lies in the spool, and set aside what the others have given up before.

    Tells the time by the clock that all workers go by.
    """
    spooled = directory.spooled_writers()
    now_ms = (await registry.beat(member, Figures(), [writer, *spooled])).now_ms
    place = _place(settings)
    for earlier, segments in spooled.items():
        if await registry.may_upload(member.id, earlier):
            continue
        # What is in the store all the same was gone through by whoever gave it up, and may be gone through again;
        # unless a takedown has rewritten it meanwhile.
        gone = []
        for segment in segments:
            found = await objects.look(place.key(segment))
            if found is None or found.digest != await asyncio.to_thread(directory.digest_in_spool, segment):
                gone.append(segment)
        await asyncio.to_thread(directory.set_aside, gone)
    return now_ms


def _place(settings: Settings) -> ArchivePlace:
    return ArchivePlace.parse(settings.archive.url)

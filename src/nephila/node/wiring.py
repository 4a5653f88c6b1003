"""The one place where the parts are built and put together. Reads like the data's way through the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from nephila.dedup import (
    LearnedAliases,
    LearnedEnvironment,
    LmdbAbsences,
    LmdbListings,
    LmdbNearIndex,
    LmdbRenderings,
    NearRule,
)
from nephila.engines.disk import LOCAL_DISK
from nephila.fetch import (
    AddressGuard,
    DnsResolver,
    HttpFetcher,
    SocketDialer,
    TlsContexts,
    read_authorities,
)
from nephila.frontier.blocklist import Blocklist
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.sieve import ScopeSieve
from nephila.interfaces.addresses import AddressLedger
from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.network import Resolver
from nephila.interfaces.sieve import LinkSieve
from nephila.model.errors import NephilaError
from nephila.model.settings import DedupSettings, Settings
from nephila.model.task import Lease, Token
from nephila.observe import Fanout, Tally
from nephila.parse import document_type, links_that_matter, media_type, sign_of
from nephila.pipeline import (
    ANOTHERS_CLOCK_MS,
    Conduct,
    CrawledPage,
    Formats,
    Judge,
    Learning,
    ListClause,
    Lists,
    MissingPages,
    NearPages,
    Pipeline,
    Stages,
)
from nephila.politeness import StandardPoliteness, address_ledger
from nephila.render import FolderShelf
from nephila.store import writer_of
from nephila.urls import Identifier

from .addressing import aliases_of, identifier_of, identify_with, scope_of
from .allowance import PageAllowance
from .archiving import Books, Medium, Writer, archiving
from .blocked import BlockedInStep
from .cataloguing import warnings_of
from .crawl import Crawl
from .directory import CrawlDirectory
from .engines import Engines, embedded_engines
from .evidence import evidence_of
from .extending import extensions_of, fetched_types, read_by, seeds_by, start_plugins
from .ground import ALONE, Ground, Seat
from .heartbeat import Heartbeat, heartbeat_figures
from .machinery import Machinery
from .plugin_books import PluginBooks
from .reading import list_kind_of, list_reader, page_reader, wanted_types
from .recovery import Recovery
from .rendering import Screens, rendering_of, visited_by
from .scopefile import FollowingSieve, ScopeFollower
from .seedlists import UselessLists, has_seeds, read_seeds
from .sowing import Sower, refusal_event
from .takedown import roll_when_asked
from .takedown.fitting import roll_files, takedowns_of


def _learned(
    directory: CrawlDirectory,
    settings: Settings,
    identifier: Identifier,
    clock: Clock,
    stack: AsyncExitStack,
    seat: Seat,
) -> tuple[LearnedAliases, LmdbAbsences, LmdbListings, LmdbRenderings]:
    """What was learned of sites so far."""
    environment = LearnedEnvironment(directory.aliases, sync=settings.frontier.sync)
    stack.callback(environment.close)
    shared = seat.engines.learned if seat.engines is not None else None
    aliases = aliases_of(environment, settings, identifier, clock, shared)
    stack.callback(aliases.close)
    absences = LmdbAbsences(environment)
    stack.callback(absences.close)
    listings = LmdbListings(environment, seat.number)
    stack.callback(listings.close)
    renderings = LmdbRenderings(environment)
    stack.callback(renderings.close)
    if shared is not None:
        learns = aliases if settings.aliases.learn else None
        shared.attach(learns, [absences.travelling(), listings.travelling(), renderings.travelling()])
    return aliases, absences, listings, renderings


async def build(
    directory: CrawlDirectory,
    settings: Settings,
    ground: Ground,
    stack: AsyncExitStack,
    *,
    listeners: Sequence[EventSink] = (),
    deliver: Callable[[CrawledPage], Awaitable[None]] | None = None,
) -> Crawl:
    """Build a crawl on a directory that is held; everything it opens is closed by `stack`, the last first."""

    def fail(error: NephilaError) -> None:
        crawl.fail(error)

    machinery = assemble(directory, settings, ground, stack, fail, listeners=listeners, deliver=deliver)
    crawl = Crawl(machinery)
    machinery.events.add(heartbeat_of(crawl, machinery))
    return crawl


def heartbeat_of(crawl: Crawl, machinery: Machinery) -> Heartbeat:
    """What counts the pages of a crawl, for its limits, and tells its figures now and then."""
    return Heartbeat(
        machinery.settings.observe.heartbeat_pages,
        machinery.allowance,
        lambda: heartbeat_figures(crawl.snapshot()),
        machinery.events,
        machinery.clock,
    )


def assemble(
    directory: CrawlDirectory,
    settings: Settings,
    ground: Ground,
    stack: AsyncExitStack,
    fail: Callable[[NephilaError], None],
    *,
    seat: Seat = ALONE,
    listeners: Sequence[EventSink] = (),
    deliver: Callable[[CrawledPage], Awaitable[None]] | None = None,
) -> Machinery:
    """Build the parts of one process. `fail` is told of our own failures."""
    clock, joining = ground.clock, seat.sharing is not None
    scope = scope_of(settings, directory.saved_scope())
    heard = Fanout(listeners)

    afar = seat.engines.afar if seat.engines is not None else None
    evidence = evidence_of(directory, settings, clock, ground.disk, seat.number, heard, stack, afar)
    sink, trail = evidence.sink, evidence.trail
    tally = Tally(clock, settings.limits, distinct=joining or seat.supervises)
    events = Fanout([sink, tally, *listeners])
    extensions = extensions_of(settings, ground.plugins, clock, threaded=ground.threaded)
    start_plugins(extensions, PluginBooks(directory.plugins, seat.number, clock), events, stack)
    engines = seat.engines or embedded_engines(
        directory,
        settings,
        ground,
        stack,
        sharing=seat.sharing,
        alone=not joining and not seat.supervises,
        tell=warnings_of(events, clock),
    )
    frontier, catalogue, duplicates = engines.frontier, engines.catalogue, engines.duplicates
    identifier = identifier_of(settings, frontier.secret)
    near = _near_index(directory, settings.dedup, clock.boot_id())
    if near is not None:
        stack.callback(near.close)
    aliases, absences, listings, renderings = _learned(directory, settings, identifier, clock, stack, seat)
    writer = Writer(engines.writer or seat.number, frontier.secret, joining, engines.known, events, fail, trail)
    blocked = BlockedInStep(frontier.view.blocks, catalogue, clock)
    books = Books(frontier, catalogue, duplicates, near, (aliases, absences, listings, renderings, blocked))
    kept = archiving(
        directory, settings, Medium(clock, ground.disk or LOCAL_DISK, ground.objects), writer, books, stack
    )
    resumed_at = clock.steady_ms() if frontier.snapshot().hosts else None
    addresses = seat.addresses
    if addresses is None and not joining:
        addresses = address_ledger(settings.politeness, resumed_at)
    resolver = ground.resolver or DnsResolver(settings.dns, clock, shared=engines.names)
    fetcher = _fetcher(settings, ground, resolver, addresses)
    stack.push_async_callback(fetcher.close)
    politeness = StandardPoliteness(
        settings.politeness, settings.robots, settings.frontier, settings.fetch.user_agent, settings.random_seed
    )
    save_scope = partial(directory.add_to_scope, scope.unsaved)
    sifting = ScopeSieve(identifier, scope, settings.scope, links_that_matter, save_scope, settings.priority, aliases)
    sieve: LinkSieve = FollowingSieve(sifting, ScopeFollower(directory, scope))  # seeds may come from another process
    probes = settings.aliases.soft_404
    missing = MissingPages(absences, frontier.secret, identifier.address_of, clock.wall_ms, sign_of) if probes else None
    near_pages = NearPages(near, settings.dedup)
    types = fetched_types(settings, extensions)
    lists = Lists(
        settings.sitemaps,
        listings,
        politeness,
        sieve,
        Formats(list_kind_of, list_reader(settings), has_seeds, read_seeds),
        identifier.address_of,
        types,
    )
    sower = Sower(
        frontier,
        identifier,
        scope,
        save_scope,
        listings=listings,
        threaded=ground.threaded,
        keep_twin=seat.keep_twin,
        tell_refused=lambda refused: events.emit(refusal_event(refused, clock.wall_ms())),
    )
    events.add(UselessLists(listings, identifier.address_of, events))
    clause = ListClause(
        lists,
        frontier,
        frontier,
        events,
        clock,
        settings.priority,
        threaded=ground.threaded,
        remember_bare=sower.remember_bare,
    )
    judge = Judge(
        page_reader(settings, read_by(extensions)),
        sieve,
        politeness,
        duplicates,
        settings.fetch.max_hops,
        near_pages,
        missing,
        lists if settings.sitemaps.follow else None,
    )
    allowance = PageAllowance(replace(settings.limits, max_pages=0) if joining else settings.limits)
    expiries: dict[Token, int] = {}

    def expires_at(lease: Lease) -> int:
        return expiries.get(lease.token, lease.expires_at)

    stages = Stages(
        frontier,
        frontier,
        fetcher,
        judge,
        politeness,
        kept.archive,
        duplicates,
        kept.bookkeeper,
        events,
        clock,
        near_pages,
        Learning(aliases, missing, clock),
        clause if settings.sitemaps.follow else None,
        extensions,
        rendering_of(settings, renderings, events, clock, stack, _screens(directory, settings, ground, engines)),
        engines.shared,
    )
    conduct = Conduct(
        fetch_limit_ms=int(settings.fetch.timeout_s * 1000),
        types=types,
        robots_max_bytes=settings.robots.max_bytes,
        now=frontier.timeline.now,
        identify=identify_with(identifier),
        expires_at=expires_at,
        allowance=allowance,
        twins=seat.twins or sower.twins,
        wanted=wanted_types(types),
        worker_of=lambda segment: str(writer_of(segment)),
        noted=sifting.noted,
        deliver=deliver,
        fatal=fail,
        is_blocked=lambda host, url: Blocklist(frontier.view.blocks()).find(host, url) is not None,
        excluded=scope.excluded,
        rounded_ms=0 if isinstance(frontier, LmdbFrontier) else ANOTHERS_CLOCK_MS,
        rests_by_lease=not isinstance(frontier, LmdbFrontier),
        span_ms=engines.span_ms,
        together_s=engines.together_s,
    )
    pipeline = Pipeline(stages, conduct)
    fetcher.call_before_answers(pipeline.departures.leave)
    recovery = Recovery(
        frontier,
        kept.archive,
        catalogue,
        pipeline,
        judge,
        identifier,
        kept.bookkeeper,
        visited_by(stages.rendering),
    )
    return Machinery(
        out=directory.root,
        settings=settings,
        clock=clock,
        frontier=frontier,
        pipeline=pipeline,
        bookkeeper=kept.bookkeeper,
        recovery=recovery,
        sower=sower,
        allowance=allowance,
        tally=tally,
        events=events,
        expiries=expiries,
        bytes_before=engines.wire_bytes() if settings.limits.max_total_bytes else 0,
        identifier=identifier,
        scope=scope,
        aliases=aliases,
        lookups=lambda: (resolver.asked, resolver.found) if isinstance(resolver, DnsResolver) else (0, 0),
        look_at_directory=directory.watch(),
        plugins=extensions,
        plugin_seeds=seeds_by(extensions),
        shipper=kept.shipper,
        takedowns=takedowns_of(directory, ground, books, kept, trail, sink, identifier) if not joining else None,
        look_for_roll=roll_when_asked(directory.takedowns, partial(roll_files, kept.archive, sink, kept.bookkeeper)),
        near=near,
        rendering=stages.rendering,
        evidence=evidence,
        books=books,
        leases_last=engines.span_ms > 0,
        threaded=ground.threaded,
    )


def _screens(directory: CrawlDirectory, settings: Settings, ground: Ground, engines: Engines) -> Screens:
    """What pages are shown by: not by a browser on a simulated network; in a fleet also by those of others."""
    size = settings.render.shelf_bytes
    return Screens(
        engines.shelf or FolderShelf(directory.rendering, size, ground.clock, threaded=ground.threaded),
        ground.renderer,
        real=ground.dialer is None,
        borrowed=engines.browsers,
        mark=None if engines.shelf is None else directory.visiting,
    )


def _near_index(directory: CrawlDirectory, settings: DedupSettings, boot_id: str) -> LmdbNearIndex | None:
    """The index of near-duplicates; None where they are not looked for."""
    if not settings.near:
        return None
    rule = NearRule.plain() if settings.near_plain else NearRule(settings.near_distance, settings.near_resemblance)
    return LmdbNearIndex(directory.near, boot_id, rule)


def _fetcher(settings: Settings, ground: Ground, resolver: Resolver, addresses: AddressLedger | None) -> HttpFetcher:
    guard = AddressGuard(settings.fetch.allow_addresses)
    tls = TlsContexts(read_authorities(settings.fetch.authorities))
    dialer = ground.dialer or SocketDialer()
    fetcher = HttpFetcher(settings.fetch, resolver, dialer, guard, ground.clock, media_type, tls, addresses)
    fetcher.sniff_at = document_type
    return fetcher

"""The one place where the parts are built and put together. Reads like the data's way through the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from functools import partial

from nephila.dedup import (
    LearnedAliases,
    LearnedEnvironment,
    LearningRules,
    LmdbAbsences,
    LmdbAliasStorage,
    LmdbListings,
    LmdbNearIndex,
    LmdbRenderings,
    NearRule,
)
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
from nephila.frontier.embedded.sharing import Sharing
from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.frontier.sieve import ScopeSieve
from nephila.interfaces.addresses import AddressLedger
from nephila.interfaces.catalogue import RemovableCatalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.network import Dialer, Resolver
from nephila.interfaces.objects import ObjectStore
from nephila.interfaces.renderer import Renderer
from nephila.interfaces.sieve import LinkSieve
from nephila.model.errors import NephilaError, UsageError
from nephila.model.exchange import FailureKind
from nephila.model.settings import DedupSettings, Settings
from nephila.model.summary import CrawlSnapshot
from nephila.model.task import Candidate, Lease, Token
from nephila.observe import Fanout, JsonlEventSink, Tally
from nephila.parse import document_type, links_that_matter, media_type
from nephila.pipeline import (
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
from nephila.store import Disk, LocalArchive, LocalDisk, SpooledArchive, Trail
from nephila.urls import Address, Identifier, NormalRules, UrlLimits, registrable_domain

from .allowance import PageAllowance
from .archiving import Archiving, Books, Medium, Writer, archiving
from .bookkeeper import Bookkeeper
from .cataloguing import warnings_of
from .crawl import Crawl
from .directory import CrawlDirectory
from .engines import Engines, embedded_engines
from .evidence import evidence_of
from .extending import PluginBooks, documents_of, extensions_of, fetched_types, read_by, seeds_by, start_plugins
from .heartbeat import Heartbeat
from .machinery import Machinery
from .reading import list_kind_of, list_reader, page_reader, wanted_types
from .recovery import Recovery
from .rendering import Screens, rendering_of, visited_by
from .scopefile import FollowingSieve, ScopeFollower
from .sowing import Sower
from .takedown import TakedownFolder, TakedownKeeper, Takedowns, roll_when_asked
from .takedown.carrying_out import OwnContents, Parts
from .takedown.premises import LocalPremises


@dataclass(frozen=True, slots=True)
class Ground:
    """What the crawl stands on: real, or simulated under virtual time."""

    clock: Clock
    resolver: Resolver | None = None
    dialer: Dialer | None = None
    disk: Disk | None = None
    objects: ObjectStore | None = None
    """The store that `archive.url` names; S3 where it is not given."""
    threaded: bool = True
    """Whether commits and syncs may run in threads, and plugins in processes; not under virtual time."""
    renderer: Renderer | None = None
    """Shows pages in place of real browsers, which a simulated network has none of."""
    plugins: Sequence[object] = ()
    """Those that were passed in, beside those that the settings switch on (E1)."""


def identifier_of(settings: Settings, secret: int) -> Identifier:
    """The identifier that a crawl's addresses are made with."""
    urls = settings.urls
    rules = NormalRules(
        sort_query=urls.sort_query,
        drop_tracking=urls.drop_tracking,
        drop_trailing_slash=urls.drop_trailing_slash,
        extra_tracking=urls.extra_tracking,
    )
    overrides = _url_exceptions(urls.exceptions, rules)
    return Identifier(secret, replace(rules, overrides=overrides), UrlLimits(urls.max_length, urls.max_segments))


def _url_exceptions(exceptions: Sequence[str], rules: NormalRules) -> dict[str, NormalRules]:
    """The rules of the domains for which some are switched off (U2)."""
    switches = {name.name for name in fields(NormalRules) if name.type == "bool"}
    overrides: dict[str, NormalRules] = {}
    for exception in exceptions:
        domain, _, rule = exception.rpartition(":")
        if not domain or rule not in switches:
            raise UsageError(
                f"urls.exceptions: {exception!r} is not DOMAIN:RULE", hint=f"rules are {', '.join(sorted(switches))}"
            )
        domain = registrable_domain(domain)
        overrides[domain] = replace(overrides.get(domain, rules), **{rule: False})  # type: ignore[arg-type]  # only names of switches get here
    return overrides


def _identify_with(identifier: Identifier) -> Callable[[str], Address | None]:
    """Addresses, or None for what is none."""

    def identify(url: str) -> Address | None:
        address = identifier.identify(url)
        return address if isinstance(address, Address) else None

    return identify


def _resolved_with(identifier: Identifier) -> Callable[[str], Address | None]:
    """The same for URLs that are WHATWG serialisations already: they are not parsed again."""

    def identify(url: str) -> Address | None:
        address = identifier.identify_serialised(url)
        return address if isinstance(address, Address) else None

    return identify


def aliases_of(
    environment: LearnedEnvironment, settings: Settings, identifier: Identifier, clock: Clock
) -> LearnedAliases:
    """What a crawl has learned of aliases, and goes on to learn."""
    wanted = settings.aliases
    storage = LmdbAliasStorage(environment, wanted.votes)
    rules = LearningRules(wanted.votes, wanted.verify_every, wanted.learn)
    return LearnedAliases(storage, rules, _resolved_with(identifier), clock.steady_ms, clock.wall_ms)


@dataclass(frozen=True, slots=True)
class Seat:
    """Which process of a crawl the parts are for. Without `sharing` it is the only one, or the one that supervises."""

    sharing: Sharing | None = None
    supervises: bool = False
    addresses: AddressLedger | None = None
    """The ledger that the processes share; that of a fleet's worker."""
    twins: Callable[[str, FailureKind], Sequence[Candidate]] | None = None
    """Stands in for the sower's, who is in another process."""
    keep_twin: Callable[[str, str], None] | None = None
    """Told of bare seeds, where another process may find that they do not answer."""
    engines: Engines | None = None
    """Where the crawl keeps its state; None for its directory."""

    @property
    def number(self) -> int:
        """0 for the only process and for the supervisor, from 1 on for workers."""
        return 0 if self.sharing is None else self.sharing.number


ALONE = Seat()


def _learned(
    directory: CrawlDirectory,
    settings: Settings,
    identifier: Identifier,
    clock: Clock,
    stack: AsyncExitStack,
    writer: int,
) -> tuple[LearnedAliases, LmdbAbsences, LmdbListings, LmdbRenderings]:
    """What was learned of sites so far."""
    environment = LearnedEnvironment(directory.aliases, sync=settings.frontier.sync)
    stack.callback(environment.close)
    aliases = aliases_of(environment, settings, identifier, clock)
    stack.callback(aliases.close)
    absences = LmdbAbsences(environment)
    stack.callback(absences.close)
    listings = LmdbListings(environment, writer)
    stack.callback(listings.close)
    renderings = LmdbRenderings(environment)
    stack.callback(renderings.close)
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
    scope = Scope(
        settings.scope,
        settings.limits.max_depth,
        ScopeSeeds.from_bytes(directory.saved_scope()),
        repeated_segments=settings.traps.repeated_segments,
        documents=documents_of(settings),
    )
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
        clock,
        stack,
        sharing=seat.sharing,
        threaded=ground.threaded,
        tell=warnings_of(events, clock),
    )
    frontier, catalogue, duplicates = engines.frontier, engines.catalogue, engines.duplicates
    identifier = identifier_of(settings, frontier.secret)
    near = _near_index(directory, settings.dedup, clock.boot_id())
    if near is not None:
        stack.callback(near.close)
    aliases, absences, listings, renderings = _learned(directory, settings, identifier, clock, stack, seat.number)
    medium = Medium(clock, ground.disk or LocalDisk(), ground.objects)
    writer = Writer(engines.writer or seat.number, frontier.secret, joining, engines.known, events, fail, trail)
    books = Books(frontier, catalogue, duplicates, near, (aliases, absences, listings, renderings))
    kept = archiving(directory, settings, medium, writer, books, stack)
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
    missing = MissingPages(absences, frontier.secret, _resolved_with(identifier), clock.wall_ms) if probes else None
    near_pages = NearPages(near, settings.dedup)
    types = fetched_types(settings, extensions)
    formats = Formats(list_kind_of, list_reader(settings))
    lists = Lists(settings.sitemaps, listings, politeness, sieve, formats, _resolved_with(identifier), types)
    clause = ListClause(lists, frontier, frontier, events, clock, settings.priority, threaded=ground.threaded)
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
    sower = Sower(
        frontier,
        identifier,
        scope,
        save_scope,
        listings=listings,
        threaded=ground.threaded,
        keep_twin=seat.keep_twin,
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
        identify=_identify_with(identifier),
        expires_at=expires_at,
        allowance=allowance,
        twins=seat.twins or sower.twins,
        wanted=wanted_types(types),
        noted=sifting.noted,
        deliver=deliver,
        fatal=fail,
        is_blocked=lambda host, url: Blocklist(frontier.view.blocks()).find(host, url) is not None,
        rests_by_lease=not isinstance(frontier, LmdbFrontier),
    )
    pipeline = Pipeline(stages, conduct)
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
        takedowns=_takedowns(directory, ground, books, kept, trail, sink, identifier) if not joining else None,
        look_for_roll=roll_when_asked(directory.takedowns, partial(_roll, kept.archive, sink, kept.bookkeeper)),
        rendering=stages.rendering,
        evidence=evidence,
    )


def _roll(archive: LocalArchive | SpooledArchive, sink: JsonlEventSink, bookkeeper: Bookkeeper) -> None:
    """Close the files of this process: a takedown is to rewrite them."""
    sink.roll()
    if isinstance(archive, LocalArchive):
        archive.roll()
    bookkeeper.nudge()


def _takedowns(
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
        _identify_with(identifier),
        records.save,
        threaded=ground.threaded,
    )
    view, nudge = books.frontier.view, kept.bookkeeper.nudge
    return TakedownKeeper(Takedowns(parts), records, premises, view, kept.archive, nudge)


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


def heartbeat_figures(snapshot: CrawlSnapshot) -> tuple[tuple[str, int], ...]:
    """What a heartbeat tells (O1)."""
    return (
        ("fetched", snapshot.pages),
        ("enqueued", snapshot.queued + snapshot.responses),
        ("errors", sum(snapshot.errors.values())),
        ("unique_domains", snapshot.domains),
        ("frontier_size", snapshot.queued),
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

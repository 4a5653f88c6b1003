"""What a process that crawls is made of; built by `wiring`, run by whoever conducts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nephila.dedup import LearnedAliases, LmdbNearIndex
from nephila.frontier.scope import Scope
from nephila.interfaces.clock import Clock
from nephila.model.settings import Settings
from nephila.model.task import Lease, Token
from nephila.observe import Fanout, Tally
from nephila.pipeline import Pipeline, RenderClause
from nephila.plugins import PluginExtensions
from nephila.seeds import SeedSource
from nephila.store import first_characters
from nephila.urls import Identifier

from .allowance import PageAllowance
from .archiving import Books
from .bookkeeper import Bookkeeper
from .cataloguing import identity_of
from .evidence import Evidence
from .frontiers import NodeFrontier
from .recovery import Recovery
from .shipping import Shipper
from .sowing import Sower
from .takedown import TakedownKeeper


@dataclass(frozen=True, slots=True)
class Machinery:
    """The parts."""

    out: Path
    settings: Settings
    clock: Clock
    frontier: NodeFrontier
    pipeline: Pipeline
    bookkeeper: Bookkeeper
    recovery: Recovery
    sower: Sower
    allowance: PageAllowance
    tally: Tally
    events: Fanout
    expiries: dict[Token, int]
    """When each held lease ends, renewals included; the pipeline asks before it sends."""
    bytes_before: int
    identifier: Identifier
    scope: Scope
    aliases: LearnedAliases
    lookups: Callable[[], tuple[int, int]]
    """Names that were looked up, and how many of them were in the cache."""
    evidence: Evidence
    """Event files and chain of this process."""
    books: Books
    """What is told when captures have become durable."""
    look_at_directory: Callable[[], None]
    """Raises when the crawl directory is gone: what open files take would be lost."""
    plugins: PluginExtensions | None = None
    """The plugins, to be given what is left when the crawl ends."""
    plugin_seeds: Sequence[SeedSource] = ()
    shipper: Shipper | None = None
    """Carries the archive to its store; None where it lies in the crawl directory."""
    takedowns: TakedownKeeper | None = None
    """Carries out takedowns; None where the archive is elsewhere, and in workers of a supervisor."""
    look_for_roll: Callable[[], None] = lambda: None
    """Closes the files of this process where a takedown asks for it."""
    before_work: Callable[[Sequence[Lease]], Awaitable[None]] | None = None
    """Awaited when something was claimed, before work on it begins: what others have decided must be known by then."""
    near: LmdbNearIndex | None = None
    """Pages by what they say; None where near-duplicates are not looked for."""
    rendering: RenderClause | None = None
    """Shows pages to browsers; None where nobody does."""
    leases_last: bool = False
    """Leases last through the delays of their hosts: more of them are held at once."""
    threaded: bool = True
    """Whether what blocks may run in threads; not under virtual time."""


async def begin_shipping(machinery: Machinery) -> None:
    """Where the archive goes to a store: see that it can, before anything is fetched. Raises `ObjectStoreError`."""
    if machinery.shipper is not None:
        crawl = identity_of(machinery.frontier.secret)
        files, is_new = first_characters(machinery.settings.archive), machinery.frontier.snapshot().hosts == 0
        await machinery.shipper.begin(crawl, files, is_new=is_new)

"""Retention of a fleet by command (`nephila retain --config FILE`), and the marks of what was indexed (W5).

It needs a moment in which nobody works. What goes may be the original of a copy: every worker has an index of contents
on its own disk, and what it meets again it stores as a revisit, without bytes. A takedown asks workers to forget pages
by name; retention would have to send each of them millions of digests, and can wait. So:

1. Nobody is on the register, and nothing lies in a spool; else it is refused with who is there.
2. The number of retentions in the database is raised: a worker that starts from now on forgets what it knew
   (`outdated`). Once more nobody is there.
3. It is chosen what goes; what workers share of contents, and the frontier, forget it.
4. Nobody is there still, and nothing was recorded since: from here on nothing new can refer to what goes, and workers
   may come back. What is left, moving, rewriting and unlisting, is done beside them, file by file.

One at a time, and not beside takedowns: by their lock, under which alone their chain grows.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import uvloop

from nephila.config import Configured
from nephila.dedup import forget_shared
from nephila.engines.postgres_lock import PostgresLock
from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.retention import Choice, Outdated
from nephila.interfaces.shared import SharedState
from nephila.model.errors import NephilaError, UsageError
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.retention import Retained, Retention, RetentionParts
from nephila.node.retention.ordering import rule_of
from nephila.node.retention.target import check_target, elsewhere_at
from nephila.node.stopping import obey_no_more, obey_signals
from nephila.store import ArchivePlace
from nephila.store.indexed import captures_named
from nephila.store.postgres import PostgresCatalogue
from nephila.store.stored_chain import StoredChain

from .access import check_fleet
from .agreeing import agree
from .regions import regional
from .registry import Registry
from .servers import open_frontier
from .takedown_premises import FleetPremises
from .takedowns import lock_of

Tell = Callable[[int, int], None]
Say = Callable[[str], None]
NO_FILE = Path()
"""Marks of a fleet are in its database."""
_NAMED = 5


def foresee_fleet(configured: Configured) -> Choice:
    """What would go, as the catalogue has it now. Nothing is changed; workers go on."""
    settings = _settings_of(configured)
    rule = rule_of(settings.retention, SystemClock().wall_ms())
    with closing(_catalogue(settings)) as catalogue:
        return catalogue.retention(NO_FILE).foresee(rule)


def mark_indexed_of_fleet(configured: Configured, lines: Iterable[str]) -> tuple[int, int]:
    """Mark captures as indexed, all or none: how many were new, and how many there are. Workers go on."""
    with closing(_catalogue(_settings_of(configured))) as catalogue:
        return catalogue.indexed().add(captures_named(lines, catalogue.identity()))


def retain_fleet(configured: Configured, elsewhere: str, tell: Tell, say: Say) -> Retained:
    """Take out what need not be kept, or move it. Raises `UsageError` where somebody works."""
    settings = _settings_of(configured)
    rule_of(settings.retention, 0)
    check_target(elsewhere, settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_retain(settings, elsewhere, tell, say))
    finally:
        obey_no_more()


async def _retain(settings: Settings, elsewhere: str, tell: Tell, say: Say) -> Retained:
    stopped = asyncio.Event()
    obey_signals(lambda _: stopped.set())
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        state, frontier = await open_frontier(settings, clock, "retention", stack, looking=True)
        registry = Registry(state, check_fleet(settings))
        await agree(state, settings)
        await _check_alone(registry)
        lock = lock_of(settings)
        if not await lock.acquire():
            raise NephilaError(
                "somebody else carries out a takedown or a retention of this fleet just now", "do it again afterwards"
            )
        stack.push_async_callback(lock.release)
        catalogue = await asyncio.to_thread(_catalogue, settings, identity_of(frontier.secret))
        stack.callback(catalogue.close)
        await asyncio.to_thread(catalogue.begin_retention)
        await _check_alone(registry)
        recorded = await asyncio.to_thread(catalogue.capture_count)

        async def is_alone() -> None:
            await _check_alone(registry)
            if await asyncio.to_thread(catalogue.capture_count) != recorded:
                raise NephilaError("a worker has stored something meanwhile", "do it again when nobody works")
            say("Nothing new can refer any more to what goes: workers may be started again.")

        servers = _Servers(settings, state, frontier, catalogue)
        rule = rule_of(settings.retention, clock.wall_ms())
        async with (
            _parts(servers, lock, is_alone, stack) as (parts, premises),
            elsewhere_at(elsewhere, settings, frontier.secret) as place,
        ):
            done = await Retention(parts, place, tell, stopped.is_set).carry_out(rule)
            await asyncio.to_thread(premises.proof)
            return done


@dataclass(frozen=True, slots=True)
class _Servers:
    """What it is carried out on."""

    settings: Settings
    state: SharedState
    frontier: RedisFrontier
    catalogue: PostgresCatalogue


@asynccontextmanager
async def _parts(
    servers: _Servers, lock: PostgresLock, is_alone: Callable[[], Awaitable[None]], stack: AsyncExitStack
) -> AsyncIterator[tuple[RetentionParts, FleetPremises]]:
    settings, clock, loop = servers.settings, SystemClock(), asyncio.get_running_loop()

    def check_lock() -> None:
        asyncio.run_coroutine_threadsafe(lock.check(), loop).result()

    objects = object_store(settings, clock, uploads=1)
    stack.push_async_callback(objects.close)
    with tempfile.TemporaryDirectory(prefix="nephila-retention-") as scratch:
        chain = StoredChain(objects, ArchivePlace.parse(settings.archive.url), clock)
        premises = FleetPremises(settings, objects, chain, Path(scratch), check_lock, packs=True)
        contents = _SharedContents(servers.state, settings.fleet.crawl)
        choosing = servers.catalogue.retention(NO_FILE)
        yield (
            RetentionParts(clock, servers.frontier, servers.catalogue, choosing, contents, premises, is_alone),
            premises,
        )


@dataclass(frozen=True, slots=True)
class _SharedContents:
    """What workers tell each other of contents; what each keeps for itself it forgets at its next start."""

    state: SharedState
    crawl: str

    async def forget(self, rows: Sequence[Outdated], *, pages: Sequence[Outdated]) -> None:
        """As `node.retention.carrying_out.OutdatedContents`. What is nearly the same names a page, and no capture."""
        del pages
        urls = {row.url for row in rows}
        digests = dict.fromkeys(row.content_hash for row in rows if row.content_hash)
        await forget_shared(self.state, self.crawl, digests, urls.__contains__)


async def _check_alone(registry: Registry) -> None:
    """Raise `UsageError` where a worker is there, or was lost with what lies in its spool."""
    roll = await registry.roll()
    here = [one for one in roll.workers if not one.is_given_up]
    if here:
        names = ", ".join(one.member.name for one in here[:_NAMED])
        more = f" and {len(here) - _NAMED} more" if len(here) > _NAMED else ""
        raise UsageError(
            f"workers are on the register ({names}{more}), and what they know of contents could refer to what goes",
            "let them end (nephila fleet drain NAME), or give up those that are gone (nephila fleet forget NAME); "
            "they may come back as soon as this says so",
        )
    if gone := len(roll.workers) + len(roll.lost):
        raise UsageError(
            f"what {gone} lost workers left is not put in order yet",
            "start a worker, which does so, and let it end",
        )


def _settings_of(configured: Configured) -> Settings:
    settings = regional(configured.settings)
    check_fleet(settings)
    return settings


def _catalogue(settings: Settings, identity: str = "") -> PostgresCatalogue:
    """For writing where the crawl's identity is given."""
    name = settings.catalogue.name or settings.fleet.crawl
    return PostgresCatalogue(settings.catalogue, name, os.environ, identity=identity, read_only=not identity)

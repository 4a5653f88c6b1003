"""The engines of a fleet, connected: Valkey for the frontier and what workers share, PostgreSQL for the catalogue."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.interfaces.catalogue import WholeCatalogue
from nephila.interfaces.clock import Clock
from nephila.model.settings import Settings
from nephila.node.cataloguing import identity_of
from nephila.node.engines import policy_of
from nephila.node.telling import telling
from nephila.store.postgres import PostgresCatalogue, PostgresChunks

from .access import check_fleet, valkey_servers
from .agreeing import agree


@dataclass(frozen=True, slots=True)
class Servers:
    """The engines. Whoever opened them closes them."""

    state: ValkeyState
    frontier: RedisFrontier
    catalogue: WholeCatalogue

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: what is shared is waited for so long, and no longer. The catalogue is told apart."""
        self.state.hurry(seconds)
        self.frontier.hurry(seconds)


Tell = Callable[[str, str], None]
OpenServers = Callable[[Settings, Clock, str, AsyncExitStack, Tell], Awaitable[Servers]]


async def open_frontier(
    settings: Settings,
    clock: Clock,
    worker: str,
    stack: AsyncExitStack,
    *,
    visiting: bool = False,
    looking: bool = False,
    waiting: Callable[[str], None] | None = None,
) -> tuple[ValkeyState, RedisFrontier]:
    """What workers share, and the frontier, for a worker of this id; closed by `stack`.

    `visiting`: for somebody who brings URLs or orders, and does not work. `looking`: for somebody who looks at a crawl
    that is there. `waiting`: for somebody who stays, and waits for servers that are away; it hears of that. A command
    is told at once where nobody listens.
    """
    where = valkey_servers(settings, os.environ)
    state = await ValkeyState.open(where, refused_s=PROMPT_S if waiting is None else math.inf, tell=waiting)
    stack.push_async_callback(state.close)
    chunks = chunks_of(settings)
    stack.callback(chunks.close)
    frontier = await RedisFrontier.open(
        where,
        check_fleet(settings),
        fleet_policy(settings),
        worker=worker,
        clock=clock,
        options=Opening(
            shards=settings.fleet.shards,
            compact=settings.fleet.compact,
            replicas=settings.fleet.wait_replicas,
            joining=True,
            visiting=visiting,
            looking=looking,
            strict=True,
            brief=True,
            chunks=chunks,
            linger_ms=settings.fleet.join_ms,
        ),
    )
    stack.push_async_callback(frontier.close)
    return state, frontier


def fleet_policy(settings: Settings) -> Policy:
    """What a fleet's frontier needs to know of a crawl: leases last, as calls cost it more than holding them does."""
    return replace(policy_of(settings), lease_span_ms=int(settings.fleet.lease_span_s * 1000))


def chunks_of(settings: Settings) -> PostgresChunks:
    """Where the far ends of long queues are kept: beside the catalogue."""
    return PostgresChunks(settings.catalogue, settings.catalogue.name or check_fleet(settings), os.environ)


async def open_servers(settings: Settings, clock: Clock, worker: str, stack: AsyncExitStack, tell: Tell) -> Servers:
    """Open all engines for a worker of this id; closed by `stack`. `tell` hears of servers that are away.

    Raises `UsageError` for a worker that is not at one with the crawl, before it makes tables elsewhere.
    """
    crawl = check_fleet(settings)
    state, frontier = await open_frontier(settings, clock, worker, stack, waiting=partial(tell, "frontier_away"))
    await agree(state, settings, worker)
    catalogue = await asyncio.to_thread(_catalogue, settings, crawl, identity_of(frontier.secret), tell)
    stack.callback(catalogue.close)
    return Servers(state, frontier, catalogue)


def _catalogue(settings: Settings, crawl: str, identity: str, tell: Tell) -> WholeCatalogue:
    """The catalogue, which tells others of pages where the settings name a stream (W7)."""
    name = settings.catalogue.name or crawl
    catalogue = PostgresCatalogue(settings.catalogue, name, os.environ, identity=identity, tell=tell)
    if not settings.stream.url:
        return catalogue
    try:
        return telling(catalogue, settings.stream, name, identity, tell)
    except BaseException:
        catalogue.close()
        raise

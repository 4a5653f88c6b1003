"""A worker as a process runs it, and what people do to a fleet: seeds, its standing, sending a worker home."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar

import uvloop

from nephila.config import Configured
from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.fetch import raise_descriptor_limit
from nephila.interfaces.events import EventSink
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary
from nephila.node.addressing import identifier_of, scope_of
from nephila.node.clock import SystemClock
from nephila.node.collector import calm_collector
from nephila.node.ground import Ground
from nephila.node.memory import threads
from nephila.node.sowing import Sower
from nephila.node.stopping import obey_signals
from nephila.seeds import SeedReport, SeedSource
from nephila.store import writer_of

from .access import check_fleet, valkey_servers
from .agreeing import agree
from .crawl import FleetCrawl
from .frontier import FleetFrontier
from .opening import joined
from .outlived import check_not_outlived
from .regions import regional
from .registry import Left, Registry, Roll, Standing
from .repute import score_as_visitor
from .servers import open_frontier, open_servers
from .untold import Untold
from .visiting import Visits

T = TypeVar("T")
MOST_NAMED = 8
View = Callable[[FleetCrawl], Coroutine[Any, Any, None]]


def run_worker(
    configured: Configured,
    seeds: Sequence[SeedSource] = (),
    *,
    listeners: Sequence[EventSink] = (),
    view: View | None = None,
) -> CrawlSummary:
    """Work for a fleet until it ends; the first signal stops cleanly, a second at once."""
    raise_descriptor_limit(1)  # the loop itself needs some
    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, threads(runner.get_loop()):
        return runner.run(_work(configured, seeds, listeners, view))


async def _work(
    configured: Configured, seeds: Sequence[SeedSource], listeners: Sequence[EventSink], view: View | None
) -> CrawlSummary:
    async with joined(configured, Ground(SystemClock()), open_servers, listeners=listeners) as worker:
        _obey_signals(worker)
        viewing = asyncio.create_task(view(worker), name="view") if view is not None else None
        try:
            return await worker.run(seeds)
        finally:
            if viewing is not None:
                viewing.cancel()
                with suppress(asyncio.CancelledError):
                    await viewing


def _obey_signals(worker: FleetCrawl) -> None:
    """Ctrl-C, or a closed terminal, ends within seconds; SIGTERM, by which services are ended, waits for uploads.

    A second signal ends at once: what is left lies in the spool.
    """
    obey_signals(lambda number: worker.retire() if number is signal.SIGTERM else worker.stop())


def run_seed(configured: Configured, seeds: Sequence[SeedSource]) -> SeedReport:
    """Admit seeds to a fleet's crawl, whether workers run or not."""
    return asyncio.run(_sow(configured.settings, seeds))


async def _sow(settings: Settings, seeds: Sequence[SeedSource]) -> SeedReport:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        state, inner = await open_frontier(settings, clock, "seeds", stack, visiting=True)
        await check_not_outlived(settings, inner, clock)
        await agree(state, settings, "seeds")
        scope = scope_of(settings, b"")
        await score_as_visitor(settings, inner, stack)
        visits = Visits(settings, clock, stack, score_as_visitor)
        untold = Untold(visits.registries(state))
        frontier = FleetFrontier(inner, untold.tell, visits.border(""))
        identifier = identifier_of(settings, inner.secret)
        save = partial(untold.add_to_scope, scope.unsaved)
        sower = Sower(frontier, identifier, scope, save, keep_twin=untold.keep_twin)
        return await sower.sow(seeds, lambda: None)


# The fleet as a whole


def fleet_standing(configured: Configured) -> tuple[Roll, FrontierSnapshot]:
    """Who works, and what there is to do."""

    async def look() -> tuple[Roll, FrontierSnapshot]:
        async with AsyncExitStack() as stack:
            settings = regional(configured.settings)
            state, frontier = await open_frontier(settings, SystemClock(), "status", stack, looking=True)
            roll = await Registry(state, check_fleet(settings)).roll()
            return roll, await frontier.look()

    return asyncio.run(look())


def drain_worker(configured: Configured, name: str) -> Standing:
    """Have a worker leave, by its name or id."""
    return _with_one(configured, name, lambda registry, found: registry.drain(found.member.id))[0]


def forget_worker(configured: Configured, name: str) -> tuple[Standing, Left]:
    """A worker's machine will not come back: its pages are fetched again without waiting for `fleet.lost_s`.

    Who it was, and what it has left.
    """
    settings = regional(configured.settings)

    async def forget(registry: Registry, found: Standing) -> Left:
        if found.silent_ms < settings.fleet.silent_s * 1000:
            raise UsageError(
                f"{found.member.name} is alive: it was heard of {found.silent_ms / 1000:.0f} s ago",
                "`nephila fleet drain` has it leave",
            )
        async with AsyncExitStack() as stack:
            _, frontier = await open_frontier(settings, SystemClock(), "operator", stack, looking=True)
            waited_for = {writer_of(segment) for segment in await frontier.pending_segments()}
        return await registry.forget(found.member.id, set(found.writers) - waited_for)

    return _with_one(configured, name, forget)


Act = Callable[[Registry, Standing], Awaitable[T]]


def _with_one(configured: Configured, name: str, act: Act[T]) -> tuple[Standing, T]:
    async def run() -> tuple[Standing, T]:
        crawl = check_fleet(regional(configured.settings))
        state = await ValkeyState.open(valkey_servers(configured.settings, os.environ), refused_s=PROMPT_S)
        try:
            registry = Registry(state, crawl)
            roll = await registry.roll()
            found = [one for one in roll.workers if name in (one.member.name, one.member.id)]
            if not found:
                names = ", ".join(one.member.name for one in roll.workers[:MOST_NAMED]) or "none"
                raise UsageError(f"no worker is called {name!r} in the crawl {crawl}", f"there are: {names}")
            if len(found) > 1:
                ids = (f"{one.member.id} (heard of {one.silent_ms // 1000:,} s ago)" for one in found[:MOST_NAMED])
                raise UsageError(
                    f"{len(found)} workers are called {name!r} in the crawl {crawl}",
                    f"name one by its id: {', '.join(ids)}",
                )
            return found[0], await act(registry, found[0])
        finally:
            await state.close()

    return asyncio.run(run())

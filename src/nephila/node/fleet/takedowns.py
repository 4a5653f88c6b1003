"""Takedowns of a fleet, carried out by whoever orders them or serves its crawl, while workers go on (K2).

Blocked first, on the engine: nothing of it is claimed any more. What lies with nobody is taken out at once. Then every
worker is called to be quiet on it: it ends what it had claimed before, forgets what it keeps of it, brings its files to
the store, and says so with its sign of life (`quiet`). Two calls, for two reasons: after the first all captures are
listed, and what workers share of contents is forgotten; after the second no worker can have taken anything for a copy
of what goes. Then the last pass, the events, and the proof.

A worker that is gone with what lies in its spool is waited for, until it is back or was given up: then that is never
uploaded. Meanwhile the takedown is pending, and all the rest of it is taken out.

Killed anywhere it is taken up by the next who looks: every step finds what was done. One at a time, by a lock in the
database; the record of each is in the store (`takedown_records`).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nephila.dedup import forget_shared
from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.postgres_lock import PostgresLock
from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.objects import RewritingStore
from nephila.interfaces.removal import ListedCapture
from nephila.interfaces.shared import SharedState
from nephila.model.errors import NephilaError
from nephila.model.policy import Block
from nephila.model.settings import Settings
from nephila.model.task import Level
from nephila.node.addressing import identify_with
from nephila.node.cataloguing import identity_of
from nephila.node.takedown import Takedown, Takedowns
from nephila.node.takedown.carrying_out import Parts
from nephila.render import SharedShelf
from nephila.store import ArchivePlace
from nephila.store.postgres import PostgresCatalogue
from nephila.store.stored_chain import StoredChain
from nephila.urls import Fingerprint, Identifier

from .access import check_fleet
from .broadcasting import stream_key
from .operated import OperatedFleetFrontier
from .registry import Registry, Standing
from .takedown_premises import FleetPremises
from .takedown_records import TakedownObjects

LOOK_S = 30.0
"""How often whoever serves looks for takedowns that somebody else has filed; its own are taken up at once."""
POLL_S = 0.5
AGAIN_S = 5.0
"""After an engine that was away."""

Tell = Callable[[str], Awaitable[None]]


def lock_of(settings: Settings) -> PostgresLock:
    """Held by whoever rewrites what a fleet has stored: one at a time."""
    address = PostgresAddress.of(settings.catalogue, os.environ)
    return PostgresLock(address, f"nephila takedowns of {settings.fleet.crawl}")


@dataclass(frozen=True, slots=True)
class Premise:
    """What takedowns of a fleet are carried out on."""

    settings: Settings
    """Of the region."""
    clock: Clock
    state: SharedState
    inner: RedisFrontier
    frontier: OperatedFleetFrontier
    identifier: Identifier
    objects: RewritingStore

    @property
    def records(self) -> TakedownObjects:
        """The records."""
        return TakedownObjects(self.objects, ArchivePlace.parse(self.settings.archive.url))


class _Frontier:
    """As a takedown asks a frontier: blocks hold in all regions, the rest is that of the one that is operated."""

    def __init__(self, operated: OperatedFleetFrontier, inner: RedisFrontier) -> None:
        self._operated = operated
        self._inner = inner

    async def block(self, block: Block) -> None:
        await self._operated.block(block)

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        await self._inner.forget(gone, emptied, origins)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        return self._inner.story(host, fingerprint)

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        return await self._operated.recall(stories, level)


class _SharedContents:
    """What workers tell each other of contents; what each keeps for itself it forgets when it is called."""

    def __init__(self, premise: Premise, loop: asyncio.AbstractEventLoop) -> None:
        self._premise = premise
        self._loop = loop

    def forget(self, rows: Sequence[ListedCapture], names: Callable[[str], bool]) -> None:
        asyncio.run_coroutine_threadsafe(self._forget(rows, names), self._loop).result()

    async def _forget(self, rows: Sequence[ListedCapture], names: Callable[[str], bool]) -> None:
        settings, state = self._premise.settings, self._premise.state
        await SharedShelf(state, settings.fleet.crawl, settings.render.shelf_bytes).clear()
        digests = dict.fromkeys(row.content_hash for row in rows if row.content_hash)
        await forget_shared(state, settings.fleet.crawl, digests, names)


class FleetTakedowns:
    """Carries out what is on record, one process at a time."""

    def __init__(self, premise: Premise, tell: Tell) -> None:
        """`tell` hears what is waited for, and what cannot be done now."""
        self._p = premise
        self._tell = tell
        self._registry = Registry(premise.state, check_fleet(premise.settings))
        self._woken = asyncio.Event()
        self._said = ""

    def wake(self) -> None:
        """One was filed in this process."""
        self._woken.set()

    async def run(self) -> None:
        """Carry out what is on record, until cancelled; what an engine that is away keeps from being done, later."""
        while True:
            wait_s = LOOK_S
            try:
                if await asyncio.to_thread(self._p.records.pending):
                    await self.carry_out_pending()
                    wait_s = AGAIN_S
            except (NephilaError, OSError) as error:
                await self.say(f"a takedown cannot be carried out now: {error}")
                wait_s = AGAIN_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()
            self._woken.clear()

    async def carry_out_pending(self) -> bool:
        """Carry out all that is on record; False where somebody else does."""
        lock = lock_of(self._p.settings)
        if not await lock.acquire():
            return False
        try:
            for takedown in await asyncio.to_thread(self._p.records.pending):
                await self._with_parts(takedown, lock)
        finally:
            await lock.release()
        return True

    async def say(self, sentence: str) -> None:
        """Once, while it is the same."""
        if sentence != self._said:
            self._said = sentence
            await self._tell(sentence)

    # One of them

    async def _with_parts(self, takedown: Takedown, lock: PostgresLock) -> None:
        p, loop = self._p, asyncio.get_running_loop()
        settings = p.settings
        name = settings.catalogue.name or settings.fleet.crawl
        identity = identity_of(p.inner.secret)
        catalogue = await asyncio.to_thread(PostgresCatalogue, settings.catalogue, name, os.environ, identity=identity)

        def check_lock() -> None:
            asyncio.run_coroutine_threadsafe(lock.check(), loop).result()

        try:
            with tempfile.TemporaryDirectory(prefix="nephila-takedown-") as scratch:
                chain = StoredChain(p.objects, ArchivePlace.parse(settings.archive.url), p.clock)
                premises = FleetPremises(settings, p.objects, chain, Path(scratch), check_lock)
                parts = Parts(
                    p.clock,
                    _Frontier(p.frontier, p.inner),
                    catalogue,
                    _SharedContents(p, loop),
                    premises,
                    self._p.inner.view.all_orphans,
                    identify_with(p.identifier),
                    p.records.save,
                )
                await self._carry_out(takedown, Takedowns(parts), premises)
        finally:
            await asyncio.to_thread(catalogue.close)

    async def _carry_out(self, takedown: Takedown, takedowns: Takedowns, premises: FleetPremises) -> None:
        await takedowns.block(takedown)
        roll = await self._registry.roll()
        premises.holding = frozenset({*_writers(roll.workers), *roll.lost})
        await takedowns.take_out(takedown)
        await self._quiet(takedown, takedowns, premises)
        await takedowns.take_out(takedown)
        await self._quiet(takedown, takedowns, premises)
        await self._p.state.call("DEL", stream_key(self._p.settings.fleet.crawl))
        done = await takedowns.finish(takedown)
        await self.say(f"takedown {takedown.id} is carried out: {done.captures} captures were taken out")

    async def _quiet(self, takedown: Takedown, takedowns: Takedowns, premises: FleetPremises) -> None:
        """Wait until every worker has brought to the store what it had, and nobody is lost with something."""
        while not await self._answered(takedown, takedowns, premises):
            pass

    async def _answered(self, takedown: Takedown, takedowns: Takedowns, premises: FleetPremises) -> bool:
        """One call; whether nobody was lost meanwhile: what such a one had left is listed by others, after the call."""
        call, none_lost, passed = await self._registry.call_for_quiet(), True, premises.holding
        while True:
            roll = await self._registry.roll()
            waiting = [one for one in roll.workers if one.quiet < call]
            none_lost = none_lost and not roll.lost
            premises.holding = frozenset({*_writers(waiting), *roll.lost})
            if not waiting and not roll.lost:
                return none_lost
            silent = [one for one in waiting if one.silent_ms > self._p.settings.fleet.silent_s * 1000]
            if len(silent) == len(waiting):  # it may take long: what does not depend on them need not wait
                await self.say(_waiting_for(takedown, silent, roll.lost))
                if premises.holding != passed:
                    passed = premises.holding
                    await takedowns.take_out(takedown)
            await asyncio.sleep(POLL_S)
            await self._registry.call_for_quiet(call)


def _writers(workers: Sequence[Standing]) -> set[int]:
    return {writer for one in workers for writer in one.writers}


def _waiting_for(takedown: Takedown, silent: Sequence[Standing], lost: Sequence[int]) -> str:
    missed = [one for one in silent if not one.is_given_up]
    names = ", ".join(f"{one.member.name} (silent for {one.silent_ms // 60_000} min)" for one in missed[:8])
    if names:
        return (
            f"takedown {takedown.id} waits for {names}: what lies in a spool must not be uploaded afterwards. "
            "Start it again, or give it up: nephila fleet forget NAME"
        )
    gone = f"{len(silent) + len(lost)} lost ones"
    return f"takedown {takedown.id} waits for a worker to put in order what {gone} left"

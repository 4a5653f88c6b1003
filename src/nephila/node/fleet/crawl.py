"""A worker of a fleet, from joining to leaving.

It conducts like a crawl on one machine (`node.crawl`), with these differences: what an earlier run left is what lies in
its own spool; others bring work as well, so it looks again while it has places free; it gives signs of life, and learns
by them that it is to leave. A worker that is drained claims nothing more, ends what it has, waits for its uploads and
leaves. It ends by itself when nothing can run anywhere within --max-wait.

Engines that are away are waited for by whoever asks them; meanwhile nothing is claimed, and what is held is not sent
when its lease could end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

from nephila.dedup import SharedDigestIndex, SharedLearning
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import (
    DatabaseAwayError,
    EngineAwayError,
    EngineLeftError,
    NephilaError,
    StorageError,
    StoreAwayError,
    StoreRefusedError,
)
from nephila.model.record import SegmentId
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.node.addressing import identify_with
from nephila.node.crawl import Crawl
from nephila.node.machinery import Machinery
from nephila.node.recovery import Recovered
from nephila.node.shipping import HURRY_S
from nephila.node.takedown import Takedown
from nephila.node.wiring import heartbeat_of
from nephila.observe.limit import Used
from nephila.render import BorrowedBrowsers, BrowserLender
from nephila.seeds import SeedSource

from .broadcasting import Broadcast
from .fallback import Fallback
from .identity import WorkerDirectory
from .limits import SharedLimits
from .lost import Looked, LostWorkers
from .queues import LongQueues
from .quiet import Hold, Quiet
from .registry import Figures, Member, Registry
from .repute import Follower
from .trail_shipping import TrailShipper
from .watching import WorkerWatch

LOOK_S = 0.25
"""How long an idle worker waits before it looks for work that others have brought; as much again at random."""

WAITED_FOR = (EngineAwayError, StoreAwayError, StoreRefusedError)
"""What keeps the pages of the lost from being put in order now: credentials that expired are waited for, too, as
whoever uploads does, who tells of it."""


@dataclass(frozen=True, slots=True)
class Post:
    """A worker's place in the fleet."""

    registry: Registry
    member: Member
    writer: int
    directory: WorkerDirectory
    contents: SharedDigestIndex
    learned: SharedLearning
    """What this worker and the others have learned of sites."""
    pending: Callable[[], Awaitable[set[SegmentId]]]
    """Segments on which pages wait, of all workers."""
    refresh: Callable[[], Awaitable[FrontierSnapshot]]
    """Bring the figures of the frontier up to date."""
    return_leases: Callable[[], Awaitable[int]]
    """Return the leases that an earlier run of this worker held."""
    draw: random.Random
    share_addresses: Callable[[int], None]
    """So many workers are at work: each has its part of what one address may be asked."""
    queues: LongQueues
    """Keeps the far ends of long queues elsewhere, and brings them back."""
    heard: Callable[[int], None]
    """It was that time by the clock of the register, just now."""
    trail: TrailShipper
    """Carries event files and chain to the store."""
    broadcast: Broadcast
    """Tells others of events."""
    watching: Callable[[Callable[[], CrawlSnapshot], Callable[[str, str], None]], WorkerWatch]
    """Makes what publishes the figures, out of what tells them and what warns."""
    lender: BrowserLender
    """Lends the browsers of this worker to others."""
    takedowns: Callable[[], Sequence[Takedown]]
    """Those that are not carried out yet. Blocks."""
    fallback: Fallback
    """Tries seeds over http whose https does not answer."""
    ranks: Follower
    """Brings what was computed of the link graph here."""
    hurry: Callable[[float], None]
    """Somebody wants an end: servers that workers share are waited for so long, and no longer."""


class FleetCrawl(Crawl):
    """One worker."""

    def __init__(self, machinery: Machinery, post: Post) -> None:
        super().__init__(machinery)
        self._post = post
        self._watch = post.watching(self.snapshot, self.warn)
        machinery.events.add(heartbeat_of(self, machinery))
        self._limits = SharedLimits(machinery.settings.limits, machinery.allowance, post.refresh)
        fleet = machinery.settings.fleet
        self._lost = LostWorkers(
            *(post.registry, machinery.frontier, machinery.recovery, self._is_spool_full, fleet.lost_s, fleet.silent_s)
        )
        self.drained = False
        """Whether it was told to leave."""
        self._writers: set[int] = set()
        self._away = ""
        self._has_left = False
        """Whether the servers did not answer when somebody wanted an end."""
        self._forgotten = asyncio.Event()
        """A person has given a worker up."""
        self._looking = asyncio.Lock()
        """For the lost: one look at a time."""
        self._quiet = Quiet(self._hold())
        self._has_worked = False

    async def run(self, seeds: Sequence[SeedSource] = (), *, new_cycle: bool = False) -> CrawlSummary:
        """Work until there is nothing left to do anywhere, it is told to leave, or somebody stops it."""
        beside = {"beats": self._keep_beating(), "figures": self._watch.run(), "broadcast": self._post.broadcast.run()}
        tasks = [asyncio.create_task(doing, name=name) for name, doing in beside.items()]
        for task in tasks:
            task.add_done_callback(self._background_ended)
        try:
            await self._post.trail.begin()
            await self._post.learned.begin()
            summary = await super().run(seeds, new_cycle=new_cycle)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._post.fallback.close()
            await self._watch.close()
            await self._post.learned.finish()
            self._post.directory.visiting.unlink(missing_ok=True)
            self._has_worked = True
            await self._post.trail.leave()
        return summary

    def retire(self) -> None:
        """End cleanly, with time for uploads: whoever ends a worker from outside may take its disk away next."""
        if self._stopped_by is None:
            self._stopped_by = StoppedBy.INTERRUPT
            self._m.pipeline.stopping = True
            self.nudge()

    def stop(self, reason: StoppedBy = StoppedBy.INTERRUPT) -> None:
        """As ever; where somebody wants it to end now, servers that are away are not waited for either."""
        super().stop(reason)
        if reason is StoppedBy.INTERRUPT:
            self._post.hurry(HURRY_S)

    def fail(self, error: NephilaError) -> None:
        """As ever. That servers were not waited for because somebody wanted an end is no failure: the spool has it."""
        ends = self._stopped_by is StoppedBy.INTERRUPT
        if not (isinstance(error, EngineLeftError) or (ends and isinstance(error, DatabaseAwayError))):
            super().fail(error)
        elif not self._has_left:
            self._has_left = True
            self.warn("engine_away", f"{error}; what it was to be told is told at the next start")

    async def _recover(self) -> Recovered:
        """What lies in its spool; who wrote that is dead, for this one holds the directory.

        First what was stored is settled from there, under the leases that still wait for it; then those are returned.
        """
        found = await self._m.recovery.of_spool()
        if self._post.directory.visiting.exists():
            return found  # its hosts may have to rest for a whole visit: their leases last that long (J3)
        return replace(found, reaped=await self._post.return_leases())

    def _beside(self) -> Sequence[tuple[str, Coroutine[Any, Any, None]]]:
        return (
            ("lost", self._look_for_lost()),
            ("contents", self._share_contents()),
            ("learned", self._post.learned.run(self._m.settings.fleet.beat_s)),
            ("queues", self._post.queues.look_after(self.warn)),
            ("trail", self._post.trail.run()),
            ("quiet", self._quiet.run()),
            ("browsers", self._lend_browsers()),
            ("limits", self._limits.follow(self.nudge)),
            ("ranks", self._post.ranks.run()),
        )

    # Conducting

    async def _conduct(self, sowing: asyncio.Task[None]) -> None:
        """As ever; whatever was asked of the servers when somebody wanted an end, the books are closed as after any."""
        try:
            await super()._conduct(sowing)
        except EngineLeftError as error:
            self.fail(error)

    def _free(self) -> int:
        return super()._free() if self._limits.are_known and not self.drained else 0

    def _used(self) -> Used:
        """By all workers, as far as it is known; bytes by those that had ended before, and by this one."""
        return super()._used()._replace(pages=self._m.frontier.snapshot().pages_in_cycle)

    async def _is_over(self) -> bool:
        if self.drained:  # the crawl is not over, and neither is its cycle
            self.stop(StoppedBy.DRAINED)
            return False
        await self._post.fallback.settled()
        await self._post.refresh()
        if not await super()._is_over():
            return False
        try:
            found = await self._put_in_order()
        except WAITED_FOR:
            return False  # whether the pages of the lost have arrived cannot be told
        return found == Looked()

    async def _sleep(self) -> None:
        """As ever, and no longer than it takes others to bring work."""
        if self._free() <= 0 and not self.drained:
            await super()._sleep()
            return
        try:
            async with asyncio.timeout(LOOK_S * self._post.draw.uniform(1.0, 2.0)):
                await super()._sleep()
        except TimeoutError:
            if len(self._crew):
                await self._post.refresh()

    # Signs of life

    async def _keep_beating(self) -> None:
        beat_s = self._m.settings.fleet.beat_s
        while True:
            self._post.directory.show_life()
            await self._beat()
            await asyncio.sleep(beat_s * self._post.draw.uniform(0.8, 1.0))

    async def _beat(self) -> None:
        writers = await asyncio.to_thread(self._post.directory.spooled_writers)
        self._writers |= {self._post.writer, *writers}
        try:
            orders = await self._post.registry.beat(
                *(self._post.member, self._figures(), sorted(self._writers), self._m.settings.fleet.silent_s),
                quiet=self._quiet.answered,
            )
        except EngineLeftError as error:
            self.fail(error)
            return
        except EngineAwayError as error:
            if not self._away:
                self.warn("engine_away", f"{error}; it is waited for")
            self._away = str(error)
            return
        self._post.heard(orders.now_ms)
        if self._away:
            self._away = ""
            self.warn("engine_back", "the servers that the workers share answer again")
        self._post.share_addresses(orders.alive)
        self._quiet.hear(orders.call)
        self._watch.alive = self._post.broadcast.alive = self._limits.alive = orders.alive
        if orders.forgotten:
            self._forgotten.set()
        if self._post.writer in orders.given_up:
            self.fail(
                StorageError(
                    "this worker was taken for lost while it was silent: what it held is fetched again by others",
                    "start it again: it sets such files aside and goes on",
                )
            )
        if orders.leave and not self.drained:
            self.drained = self._m.pipeline.leaving = True
            self.warn("drained", "this worker was told to leave: it ends what it has and takes nothing more")
            self.nudge()

    def _figures(self) -> Figures:
        now = self.snapshot()
        spool = now.spool
        return Figures(
            pages=now.pages,
            errors=sum(now.errors.values()),
            in_flight=now.in_flight,
            pages_per_s=round(now.pages_per_s, 2),
            spool_segments=spool.segments if spool is not None else 0,
            spool_bytes=spool.bytes if spool is not None else 0,
            waits_for=spool.holds_up() if spool is not None else "",
        )

    @property
    def writers(self) -> set[int]:
        """Its own, and those whose segments lay in its spool."""
        return self._writers | {self._post.writer}

    @property
    def has_worked(self) -> bool:
        """Whether it came to its end, and told what it had learned."""
        return self._has_worked

    def _hold(self) -> Hold:
        """What it holds of what a takedown takes out."""
        machinery, post = self._m, self._post

        def roll() -> None:
            archive = machinery.recovery.archive
            machinery.evidence.sink.roll()
            archive.roll()
            machinery.bookkeeper.nudge()
            post.trail.hurry()

        def left() -> frozenset[str]:
            spooled = (name for names in post.directory.spooled_writers().values() for name in names)
            return frozenset({*spooled, *(path.name for path in post.trail.left())})

        return Hold(
            post.takedowns,
            identify_with(machinery.identifier),
            post.contents,
            machinery.near,
            lambda: self._crew.working,
            machinery.evidence.sink.flush,
            roll,
            left,
            post.trail.hurry,
        )

    async def _end(self, background: Sequence[asyncio.Task[None]]) -> None:
        """As ever. Files of a lost worker that were brought back are gone through first, unless there is a hurry."""
        shipper, patience_s = self._m.shipper, self._m.settings.limits.max_wait_s
        if shipper is not None and not shipper.is_hurried:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if isinf(patience_s) else patience_s):
                    await self._looking.acquire()  # and kept: no other look begins
        await super()._end(background)

    # Beside the work

    def _is_spool_full(self) -> bool:
        return self._m.shipper is not None and self._m.shipper.is_full

    async def _lend_browsers(self) -> None:
        """Show the pages of workers that have no browser, where this one has some."""
        rendering = self._m.rendering
        renderer = None if rendering is None else rendering.renderer
        if renderer is not None and not isinstance(renderer, BorrowedBrowsers):
            await self._post.lender.run(renderer)

    async def _look_for_lost(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lost.every_s * self._post.draw.uniform(0.5, 1.0)):
                    await self._forgotten.wait()
            self._forgotten.clear()
            try:
                await self._put_in_order()
            except WAITED_FOR:
                continue  # whoever was given up is still to be put in order at the next look
            except NephilaError as error:
                self.fail(error)
                return

    async def _put_in_order(self) -> Looked:
        """Bring back what workers that are lost have left."""
        async with self._looking:
            found = await self._lost.look(await self._post.pending())
        if found.arrived or found.queued:
            self._post.directory.note_asking()
            self.warn(
                "worker_lost",
                f"a worker is lost: {found.arrived} file(s) of its archive had arrived, "
                f"{found.queued} page(s) are queued again",
            )
            self.nudge()
        return found

    async def _share_contents(self) -> None:
        while True:
            await asyncio.sleep(self._m.settings.fleet.beat_s)
            await self._post.contents.share()

"""What a worker of a fleet says of its work, every few seconds, and what one of them looks for on behalf of all (O2).

It runs beside the work and can break nothing in it: what cannot be said because the server is away is said later, since
counts are told as a whole. The more workers there are, the less often each speaks, so that the server hears no more
than some dozens a second.

Requests that came too early are found in what this worker has sent, by the clock that does not jump; hosts stay with a
worker for as long as it lives, mostly. What two workers did to one host `nephila audit` finds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from nephila.frontier.redis.census import RedisCensus
from nephila.model.errors import EngineAwayError, NephilaError
from nephila.model.events import Event
from nephila.model.summary import CrawlSnapshot
from nephila.node.conscience import Conscience, Sent
from nephila.node.logbook import Present
from nephila.node.machine import process_figures
from nephila.node.machinery import Machinery
from nephila.node.ringing import Ringing
from nephila.node.watching import Overhearing, sample
from nephila.urls import registrable_domain

from .flat import counted, levels
from .publishing import Latest, Publication, SharedFigures, Verdict
from .registry import Member
from .servers import Servers

BEATS = 2.5
"""Signs of life between two publications, where there are few workers."""
EACH_S = 0.05
"""And so many seconds for each of them, where there are many: twenty a second in all."""
SENT_REMEMBERED = 20_000
"""Exchanges of one look; of a worker that does more, the latest are looked at."""


class WorkerEar(Overhearing):
    """Hears also when requests left and ended."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: deque[Sent] = deque(maxlen=SENT_REMEMBERED)

    def emit(self, event: Event) -> None:
        """Keep what is asked about later."""
        super().emit(event)
        if event.sent_ms is not None and event.elapsed_ms is not None:
            part = event.kind == "visit_part"
            self._sent.append(Sent(event.host, event.sent_ms, event.sent_ms + event.elapsed_ms, part))

    def take_sent(self) -> list[Sent]:
        """What was sent since the last call."""
        taken = list(self._sent)
        self._sent.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Watched:
    """Who is watched, and where it is said."""

    machinery: Machinery
    servers: Servers
    member: Member
    writer: int
    ear: WorkerEar


class WorkerWatch:
    """Looks at one worker, and publishes. `warn` tells its listeners."""

    def __init__(
        self, watched: Watched, snapshot: Callable[[], CrawlSnapshot], warn: Callable[[str, str], None]
    ) -> None:
        self._of = watched
        self._view = watched.servers.frontier.view
        self._shared = SharedFigures(watched.servers.state, watched.machinery.settings.fleet.crawl)
        self._m = watched.machinery
        self._snapshot = snapshot
        self._fleet = self._m.settings.fleet
        self._present = Present(started_at=self._m.clock.wall_ms())
        usual_ms = int(self._m.settings.politeness.delay_s * 1000)
        self._conscience = Conscience(self._least_delay_ms, usual_ms)
        self._usual_ms = usual_ms
        self._census = RedisCensus(self._view)
        self._ringing = Ringing(self._m.settings, self._fleet.crawl, self._m.clock, warn)
        self._warn, self._complained = warn, False
        self.alive = 1
        """Workers that are at work, as was heard last."""

    @property
    def every_s(self) -> float:
        """How often it speaks."""
        return max(BEATS * self._fleet.beat_s, EACH_S * self.alive)

    async def run(self) -> None:
        """Look and publish, until cancelled."""
        while True:
            try:
                if await self.publish():
                    await self._judge()
            except EngineAwayError:
                pass  # who gives signs of life tells of that
            except NephilaError as error:
                if not self._complained:
                    self._warn("figures", f"the figures of this worker cannot be told: {error}")
                self._complained = True
            await asyncio.sleep(self.every_s)

    async def close(self) -> None:
        """Say the last figures, and leave."""
        try:
            await self.publish()
            await self._shared.leave(self._of.member.id)
        except NephilaError:
            return  # they are those of before

    async def publish(self) -> bool:
        """One look, told; whether this worker is the judge."""
        present, now = self._present, self._m.clock.wall_ms()
        present.process = await asyncio.to_thread(process_figures, self._m.out)
        present.busy_hosts = self._of.ear.busy_hosts(now)
        await asyncio.to_thread(self._look)
        snapshot = self._snapshot()
        spool = snapshot.spool
        latest = Latest(
            name=self._of.member.name,
            group=self._of.member.group,
            started_at=present.started_at,
            stopping=snapshot.stopping,
            pages=snapshot.pages,
            errors=sum(snapshot.errors.values()),
            pages_per_s=round(snapshot.pages_per_s, 3),
            in_flight=snapshot.in_flight,
            hosts=snapshot.hosts,
            process=present.process,
            busy_hosts=present.busy_hosts,
            render_queue=snapshot.render_queue,
            browsers=snapshot.browsers,
            browser_bytes=snapshot.browser_bytes,
            spool_segments=0 if spool is None else spool.segments,
            spool_bytes=0 if spool is None else spool.bytes,
            waits_for="" if spool is None else spool.holds_up(),
        )
        told = Publication(
            self._of.member.id,
            self._of.writer,
            counted(snapshot, present),
            levels(self._m.frontier.snapshot()),
            latest,
        )
        return await self._shared.publish(told, self.every_s)

    def _look(self) -> None:
        """What needs the frontier's word, in a thread."""
        try:
            sample(self._present, self._of.ear.take_stored(), self._view.story)
            self._conscience.look(self._of.ear.take_sent())
        except NephilaError:
            return  # it is away: these samples are lost, and others come
        self._present.violations = self._conscience.violations

    def _least_delay_ms(self, host: str) -> int:
        """The shortest delay that may be in force for a host."""
        policy = self._view.policy(registrable_domain(host))
        if policy is None or policy.delay_s is None:
            return self._usual_ms
        return min(self._usual_ms, int(policy.delay_s * 1000))

    async def _judge(self) -> None:
        """Look at the whole fleet, and tell what has begun to be wrong and what is over."""
        figures = await self._shared.figures(self._fleet.silent_s)
        for worker_id in self._shared.forgotten:
            await self._shared.leave(worker_id)
        present = figures.present
        try:
            present.longest_wait_s = await asyncio.to_thread(self._census.longest_wait_s)
        except NephilaError:
            return
        await self._ringing.ring(figures)
        await self._shared.judged(Verdict(present.at, present.longest_wait_s, present.alerts))

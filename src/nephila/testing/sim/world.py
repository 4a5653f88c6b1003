"""A world: one web, one clock, one disk, one auditor, and the lives that a crawl has in it.

A life is one run on the crawl directory. When it is killed, the directory is copied as it is at that instant, which is
all that a kill leaves; the crawl itself is then unwound on the old copy, on a clock of its own, where nobody looks. A
power loss moreover takes from the archive what was not synced, and from the catalogue what was not checkpointed. The
frontier's store syncs every commit, so its copy is its last sync, and its journal is a file like those of the archive;
the indexes of contents are thrown away after a reboot by the crawler itself.
"""

from __future__ import annotations

import asyncio
import copy
import math
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from nephila.frontier.embedded.tables import open_tables
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.node.crawl import Crawl
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.machinery import Machinery
from nephila.node.processes.supervisor import Supervisor
from nephila.node.recovery import Whole
from nephila.node.wiring import build
from nephila.seeds import ArgumentSeeds
from nephila.testing.clock import VirtualClock
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.web import Auditor, SimulatedWeb
from nephila.testing.web.words import SentenceBank

from .environments import shared_environments
from .happenings import Happened, Happening
from .leftovers import leftovers
from .listener import Listener
from .naps import Naps
from .owners import OWNER, Crash, ProcessLoop
from .rulebook import Rulebook
from .scenario import TIGHT_BYTES, USUAL_LINGER_MS, Ending, Life, Scenario
from .staff import Staff
from .trouble import Trouble, TroubledDisk
from .weather import Sky, StormyNetwork

CRAWLER = 1
"""The process that crawls, or supervises."""
CALM = Life()

_SENTENCES = SentenceBank(1)
"""Texts are all the same to the faults: one bank serves all webs."""
_POWER = frozenset({Ending.POWER, Ending.POWER_IN_WRITE})
_IN_WRITE = frozenset({Ending.KILL_IN_WRITE, Ending.POWER_IN_WRITE})
JOURNAL_EVERY = 4
"""In one seed of so many the frontier's journal is among what the disk refuses, or what a crawl dies in."""
_SETTLING_MS = 50.0
"""From the end of an answer to its capture and its settle: a way over the cable and a group commit."""
_SYNCING_MS = 100.0
"""From the moment that a sync is due to its end."""
_LOOKS, _LOOK_S = 200, 0.02


class World:
    """Lives through a scenario."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.folder = folder
        self.out = folder / "crawl"
        self.clock = VirtualClock()
        self.happened: Happened = Happened()
        self.web = SimulatedWeb(scenario.web)
        self.web.documents.lend(_SENTENCES)
        self._draw = random.Random(f"{scenario.seed} world")
        self._draw_log = random.Random(f"{scenario.seed} log")
        self._draw_stalls = random.Random(f"{scenario.seed} stalls")
        self.sky = Sky(self.clock, random.Random(f"{scenario.seed} sky"), self.happened, scenario.storm)
        self.rules = Rulebook(self.web, self._draw, scenario.storm.flapping, scenario.storm.lasts_s)
        settings = scenario.settings
        self.auditor = Auditor(
            self.rules,
            base_delay_ms=settings.politeness.delay_s * 1000,
            max_tries=settings.frontier.max_retries + 1,
            per_address=settings.politeness.address_concurrency,
            address_rate=int(settings.politeness.address_rate),
            robots_fresh_ms=settings.robots.fresh_s * 1000,
        )
        self.network = StormyNetwork(scenario, self.web, self.auditor, self.rules, self.sky)
        self.disk = ForgetfulDisk()
        self.warnings: list[str] = []
        self.peak_in_flight_bytes = 0
        self.closed_at_s = math.inf
        """When the last life that ended by itself began to close its books, which takes long where they stall."""
        self.left_behind: list[str] = []
        """What a crawl that ended still held in memory."""
        self._alive: Crawl | Supervisor | None = None
        self._descriptors: list[int] = []
        self._stopped_at_ms: float | None = None
        self._frozen_at_ms: dict[int, float] = {}
        self._naps = Naps()
        self._unsynced_since_ms = math.inf
        """Since when something may lie in the archive that no life has synced."""
        self._dead_left: list[tuple[float, float]] = []
        """Of each worker that died in this life: when, and since when what it had written may not be synced."""
        self._staff: Staff | None = None
        self._seen_to = 0
        """How many of the dead of this life have had their files made durable by their supervisor."""
        self._trouble: Trouble | None = None

    def live(self) -> CrawlSummary:
        """All lives of the scenario, then a calm one to the end."""
        self._fix_secret()
        for life in self.scenario.lives:
            self._live(life)
            self._between(life)
        self.sky.calm = True
        summary = self._live(CALM)
        if summary is None:
            raise RuntimeError("a calm life was not lived to its end")
        return summary

    def _fix_secret(self) -> None:
        """A crawl's secret is chance: here it is the seed's."""
        directory = CrawlDirectory(self.out)
        with directory.held():
            tables = open_tables(directory.frontier, map_bytes=self.scenario.settings.frontier.map_bytes, sync=False)
            with tables.env.begin(write=True) as txn:
                txn.put(b"secret", random.Random(self.scenario.seed).randbytes(8), db=tables.db["meta"])
            tables.close()

    # One life

    def _live(self, life: Life) -> CrawlSummary | None:
        """One run; None where it was killed."""
        of_journal = self.scenario.seed % JOURNAL_EVERY == JOURNAL_EVERY - 1
        trouble = Trouble(self.happened, self.clock.elapsed_s, crash_first=life.place < 0.5, of_journal=of_journal)
        self._plan_trouble(life, trouble)
        self._trouble, self._dead_left, self._staff, self._seen_to = trouble, [], None, 0
        began_s = self.clock.elapsed_s()
        loop: list[ProcessLoop] = []
        summary: CrawlSummary | None = None

        def make_loop() -> ProcessLoop:
            loop.append(ProcessLoop(self.clock))
            loop[0].stall = self._stall
            return loop[0]

        def crash() -> None:
            self._crash(life, loop[0])

        trouble.crash = crash
        self.sky.dark = False
        self._alive = None
        self._stopped_at_ms = None
        try:
            with shared_environments(), asyncio.Runner(loop_factory=make_loop) as runner:
                runner.get_loop()
                if life.ending in (Ending.KILL, Ending.POWER):
                    loop[0].plan_crash(life.at, life.place, crash)
                summary = runner.run(self._run(life, trouble))
        except Crash:
            summary = None
        except StorageError:  # the disk refused before the crawl could begin
            if self.sky.calm:
                raise
        except OSError:  # the dead cannot even close their files
            if not self.sky.dark:
                raise
        self._tidy_up(life, trouble, began_s)
        if summary is not None and self.sky.calm:
            self._look_at_leftovers()
        return summary

    def _stall(self, func: Callable[..., Any]) -> float:
        """How long a thread takes for a function: catalogue and indexes may stall, in a calm life too."""
        stalls, name = self.scenario.stalls, getattr(func, "__name__", "")
        share = {"record": stalls.catalogue, "write_index": stalls.index}.get(name, 0.0)
        if self.sky.calm and self.scenario.workers > 1:  # who of them closes its books when is not known here
            return 0.0
        if not share or self.sky.dark or self._draw_stalls.random() >= share:
            return 0.0
        self.happened[Happening.CATALOGUE_STALLS if name == "record" else Happening.INDEX_STALLS] += 1
        wait_s = self._draw_stalls.uniform(0.001, stalls.longest_s)
        return self._draw_stalls.choice((wait_s, -wait_s))

    def _tidy_up(self, life: Life, trouble: Trouble, began_s: float) -> None:
        """The directory as the next life finds it, and for the auditor what cannot be known in it."""
        while self._descriptors:
            os.close(self._descriptors.pop())
        left = self.folder / "left"
        if left.exists():
            shutil.rmtree(self.out)
            left.rename(self.out)
        if self._stopped_at_ms is not None:  # what was on the wire was cut off and given back
            self.auditor.forgive(self._naps.awake_before(self._stopped_at_ms, self._unread_ms()), math.inf)
        if trouble.since_s is not None:  # what arrived after the disk failed could not be kept
            power = life.unplugged or life.ending in _POWER
            self.forgive(power=power, since_ms=max(began_s, trouble.since_s) * 1000)

    def _plan_trouble(self, life: Life, trouble: Trouble) -> None:
        self.disk.capacity = None
        match life.ending:
            case Ending.KILL_IN_WRITE | Ending.POWER_IN_WRITE:
                trouble.crash_at = life.at
            case Ending.WRITE_ERROR:
                trouble.fail_write_at = life.at
            case Ending.SYNC_ERROR:
                trouble.fail_sync_at = life.at
            case Ending.DISK_FULL:
                self.disk.capacity = self.disk.used() + life.at
            case _:
                pass

    async def _run(self, life: Life, trouble: Trouble) -> CrawlSummary:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ProcessLoop):
            raise TypeError("lives are lived on a loop that knows processes")
        disk = TroubledDisk(self.disk, trouble)
        staff = Staff(self.scenario, self.network, self.clock, disk, loop, self._worker_died)
        self._staff, self._descriptors = staff, staff.descriptors
        self._frozen_at_ms = staff.frozen_at_ms
        context = OWNER.get()
        OWNER.set(CRAWLER)
        main = loop.create_task(self._crawl(staff, trouble), name="crawl")
        OWNER.set(context)
        happenings = loop.create_task(self._happen(life, loop, staff), name="happenings")
        try:
            return await main
        finally:
            happenings.cancel()
            if not self.sky.dark:
                self.network.hang_up_all()  # a process that has ended has no connections, whatever it broke off
            if staff.deaths and not self.sky.dark:
                self._part_from_the_dead(loop)

    async def _crawl(self, staff: Staff, trouble: Trouble) -> CrawlSummary:
        """One run as a process does it, or a supervisor with its workers."""
        settings = self.scenario.settings
        ground = Ground(self.clock, self.network, self.network, TroubledDisk(self.disk, trouble), threaded=False)
        directory = CrawlDirectory(self.out)
        listener = Listener(self.happened, self.warnings)
        seeds = [ArgumentSeeds(self.web.seeds(2))]
        with directory.held():
            async with AsyncExitStack() as stack:
                if self.scenario.workers == 1:
                    self._alive = await build(directory, settings, ground, stack, listeners=[listener])
                else:
                    self._alive = await staff.supervised(directory, ground, stack, [listener])
                    self._watch_recovery(self._alive._m)
                self._watch_budget(self._alive._m)
                self._watch_closing(self._alive._m)
                return await self._alive.run(seeds)

    def _watch_closing(self, machinery: Machinery) -> None:
        hurry = machinery.bookkeeper.hurry

        def hurried(patience_s: float) -> None:
            self.closed_at_s = self.clock.elapsed_s()
            hurry(patience_s)

        machinery.bookkeeper.hurry = hurried  # type: ignore[method-assign]

    def _watch_recovery(self, machinery: Machinery) -> None:
        """Count the dead workers whose files the supervisor has made durable: it may have to wait for its turn."""
        make_durable = machinery.recovery.make_durable

        def seen_to(segments: Sequence[SegmentId], marks: Mapping[SegmentId, int]) -> list[Whole]:
            found = make_durable(segments, marks)
            self._seen_to += 1
            return found

        machinery.recovery.make_durable = seen_to  # type: ignore[method-assign]

    def _watch_budget(self, machinery: Machinery) -> None:
        """Keep the most bytes of bodies that were in memory at once."""
        budget = machinery.pipeline._to.fetcher._budget  # type: ignore[attr-defined]  # the real fetcher has one
        grow = budget.grow

        def grown(source: object, count: int) -> None:
            grow(source, count)
            self.peak_in_flight_bytes = max(self.peak_in_flight_bytes, budget.total)

        budget.grow = grown

    def _part_from_the_dead(self, loop: ProcessLoop) -> None:
        """Workers that were killed are unwound now, on a copy of their own: what they would have done must not be."""
        loop.set_exception_handler(lambda _loop, _context: None)
        shutil.copytree(self.out, self.folder / "left", ignore=shutil.ignore_patterns("lock.mdb"))
        self.disk = self.disk.hand_over()
        self.sky.dark = True
        loop.wake_all()
        loop.clock = copy.copy(loop.clock)

    # What happens to a life

    async def _happen(self, life: Life, loop: ProcessLoop, staff: Staff) -> None:
        """Freeze, kill and set clocks when their time has come."""
        begun = loop.time()
        plan: list[tuple[float, Callable[[], None]]] = []
        for at_s, lasts_s in life.freezes:
            plan.append((at_s, self._freezing(loop, staff, lasts_s)))
        plan += [(at_s, lambda: self._kill_worker(staff)) for at_s in life.worker_deaths]
        plan += [(at_s, lambda by_s=by_s: self._jump(by_s)) for at_s, by_s in life.wall_jumps]  # type: ignore[misc]  # a default binds it
        if life.ending is Ending.STOP:
            plan.append((life.at / 100, self._stop))
        for at_s, act in sorted(plan, key=lambda one: one[0]):
            await asyncio.sleep(max(0.0, begun + at_s - loop.time()))
            if staff.owners and self._draw.random() < 0.8:
                await self._wait_for_a_request()
            act()

    async def _wait_for_a_request(self) -> None:
        """Let a worker be in the middle of something."""
        for _ in range(_LOOKS):
            if self.network.busy_owner():
                return
            await asyncio.sleep(_LOOK_S)

    def _victim(self, staff: Staff) -> int:
        """The process that something happens to: one that is busy, if there is one."""
        busy = self.network.busy_owner()
        return busy if busy in staff.owners else self._draw.choice(staff.owners)

    def _freezing(self, loop: ProcessLoop, staff: Staff, lasts_s: float) -> Callable[[], None]:
        def freeze() -> None:
            owner = self._victim(staff) if staff.owners else CRAWLER
            if loop.is_frozen(owner):
                return
            self.happened[Happening.FROZEN] += 1
            self.happened[Happening.FROZEN_PAST_LEASE] += lasts_s > self.scenario.settings.frontier.lease_s
            began_ms = self.sky.now_ms()
            frozen_at_ms = self._naps.awake_before(began_ms, self._unread_ms())
            staff.frozen_at_ms[owner] = frozen_at_ms
            until_ms = self.sky.now_ms() + 1000 * (lasts_s + self.scenario.settings.fetch.timeout_s + 1)
            if staff.owners:
                self.rules.doubt(frozen_at_ms, until_ms)
            loop.freeze(owner)
            loop.call_later(lasts_s, thaw, owner, began_ms)

        def thaw(owner: int, began_ms: float) -> None:
            loop.thaw(owner)
            staff.frozen_at_ms.pop(owner, None)
            self._naps.add(began_ms, self.sky.now_ms())

        return freeze

    def _kill_worker(self, staff: Staff) -> None:
        if staff.owners:
            self.happened[Happening.WORKER_KILLED] += 1
            staff.kill(self._victim(staff))

    def _jump(self, by_s: float) -> None:
        self.happened[Happening.CLOCK_FORWARD if by_s > 0 else Happening.CLOCK_BACK] += 1
        self.clock.jump_wall(by_s)

    def _stop(self) -> None:
        if self._alive is not None and self._alive._stopped_by is None:
            self.happened[Happening.STOPPED] += 1
            self._stopped_at_ms = self.sky.now_ms()
            self._alive.stop(StoppedBy.INTERRUPT)

    # Ends

    def _crash(self, life: Life, loop: ProcessLoop) -> None:
        """Keep what a kill or a power loss leaves, and end the loop."""
        power = life.ending in _POWER
        kinds = {
            Happening.POWER_LOSS if power else Happening.KILLED,
            *({Happening.KILLED_IN_WRITE} if life.ending in _IN_WRITE else ()),
            *({Happening.KILLED_IN_RECOVERY} if self._alive is not None and self._alive.recovered is None else ()),
        }
        self.happened.update(kinds)
        loop.set_exception_handler(lambda _loop, _context: None)  # the dead tell no tales
        self.network.hang_up_all()
        self.sky.dark = True
        shutil.copytree(self.out, self.folder / "left", ignore=shutil.ignore_patterns("lock.mdb"))
        self.disk = self._unplugged(self.folder / "left") if power else self.disk.hand_over()
        self.forgive(power=power or life.unplugged)
        loop.wake_all()
        loop.clock = copy.copy(loop.clock)
        raise Crash

    def _unplugged(self, out: Path) -> ForgetfulDisk:
        """The disk after a power loss; the catalogue as of its last checkpoint, or with a part of what came since."""
        self._cut_log(out)
        before = self.disk
        after = before.lose_power(self._draw)
        names = before.names_of_all()
        self.happened[Happening.NAME_LOST] += len(names - after.names_of_all())
        common = names & after.names_of_all()
        self.happened[Happening.BYTES_LOST] += sum(before.contents(one) != after.contents(one) for one in common)
        return after

    def _cut_log(self, out: Path) -> None:
        """The catalogue's log is not synced: of what was written to it nothing, all or any part may be on the disk."""
        (out / "catalogue.sqlite-shm").unlink(missing_ok=True)
        log = out / "catalogue.sqlite-wal"
        kept = self._draw_log.choice((0.0, 0.5, 1.0, 1.0))
        if kept == 0.0:
            log.unlink(missing_ok=True)
        elif log.exists() and kept < 1.0:
            os.truncate(log, int(log.stat().st_size * self._draw_log.random()))

    def _unread_ms(self) -> float:
        """How long ago an answer may have ended for its server that the crawler has not got in its hands yet."""
        tight = self.scenario.settings.fetch.max_in_flight_bytes == TIGHT_BYTES
        slower_ms = 2 * (self.scenario.settings.frontier.linger_ms - USUAL_LINGER_MS)  # behind one that is under way
        return _SETTLING_MS + slower_ms + (self.scenario.settings.fetch.timeout_s * 1000 if tight else 0.0)

    def _worker_died(self, since_ms: float) -> None:
        """A worker was killed, which may have lost answers since then."""
        self.forgive(power=False, since_ms=since_ms)
        self._dead_left.append((self.sky.now_ms(), self._unsynced_since_ms))

    def _left_by_workers(self) -> float:
        """Since when what dead workers had written may not be synced: their supervisor does it, if the disk lets it.

        Which of them it has seen to is not known before it has seen to all.
        """
        failed_s = None if self._trouble is None else self._trouble.since_s
        failed_ms = min(self.sky.now_ms(), math.inf if failed_s is None else failed_s * 1000)
        is_behind = self._staff is not None and self._seen_to < self._staff.deaths
        return min(
            (since_ms for at_ms, since_ms in self._dead_left if is_behind or failed_ms < at_ms + _SYNCING_MS),
            default=math.inf,
        )

    def forgive(self, *, power: bool, since_ms: float | None = None) -> None:
        """Let the auditor know what the crawler cannot know any more."""
        since_ms = min(self.sky.now_ms(), *self._frozen_at_ms.values(), math.inf) if since_ms is None else since_ms
        known_ms = self._naps.awake_before(since_ms, self._unread_ms())
        if self._alive is not None and self._alive.recovered is not None:
            self._unsynced_since_ms = self._left_by_workers()  # what earlier lives had left was synced
        lag_ms = self.scenario.settings.archive.sync_ms + _SYNCING_MS
        unsynced_ms = min(self._unsynced_since_ms, self._naps.awake_before(known_ms, lag_ms))
        self._unsynced_since_ms = math.inf if power else unsynced_ms
        self.auditor.forgive(unsynced_ms if power else known_ms, known_ms)
        self.rules.doubt(known_ms)

    def _between(self, life: Life) -> None:
        """What happens until the next life begins."""
        if life.unplugged and life.ending not in _POWER:
            self.happened[Happening.POWER_LOSS] += 1
            self.disk = self._unplugged(self.out)
        if life.jump_s:
            self._jump(life.jump_s)
        self.clock.advance(life.pause_s)
        if life.reboot or life.unplugged:
            self.happened[Happening.REBOOT] += 1
            self.clock.reboot()
            self.auditor.forget_rules()

    def _look_at_leftovers(self) -> None:
        """What must be empty in memory when a crawl has ended."""
        crawl = self._alive
        if isinstance(crawl, Crawl):
            self.left_behind += leftovers(crawl._m)

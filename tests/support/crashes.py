"""Simulated crawls that are killed, or lose power, at a step of their choice, and go on from what is left.

A step is an event told, bytes that the archive wrote or synced, or a commit of the frontier. At the chosen one
the crawl directory is copied as it is: that is all that a kill leaves. The crawl that was killed is then unwound, in a
directory that nobody looks at again. After a power loss the archive has what its disk remembers, the catalogue what was
checkpointed, and the machine has rebooted; the frontier syncs every commit, so its copy is its last sync.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simulation import PATIENT, Recorder

from nephila.engines.disk import Disk, DiskFile, LocalDisk
from nephila.frontier.embedded.journal import FILE_NAME as JOURNAL
from nephila.interfaces.renderer import Renderer
from nephila.model.events import Event
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary
from nephila.model.task import Lease, PageTask
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.recovery import Recovered
from nephila.node.wiring import build
from nephila.pipeline import Pipeline
from nephila.seeds import ArgumentSeeds
from nephila.store import MARKER, ArchivePlace
from nephila.testing.clock import VirtualClock
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.loop import run_virtual
from nephila.testing.objects import SimulatedObjectStore
from nephila.testing.web import Auditor, SimulatedNetwork, SimulatedWeb


class Crash(SystemExit):
    """Ends the loop at once: no handler of ours catches it."""


def _end_the_loop() -> None:
    raise Crash


@dataclass
class Trap:
    """Counts steps, and springs at one of them."""

    at: int
    action: Any
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.action()
            asyncio.get_running_loop().call_soon(_end_the_loop)

    # An event sink

    def emit(self, event: Event) -> None:
        self.step()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class TrappedFile:
    """A file whose writes and syncs are steps, each after it was done."""

    file: DiskFile
    trap: Trap

    def append(self, data: bytes) -> None:
        self.file.append(data)
        self.trap.step()

    def sync(self) -> None:
        self.file.sync()
        self.trap.step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@dataclass(frozen=True)
class TrappedDisk:
    """A disk of such files. The frontier's journal is none: a step of a group of verbs is when it is durable."""

    disk: Disk
    trap: Trap

    def create(self, path: Path) -> DiskFile:
        file = self.disk.create(path)
        return file if path.name == JOURNAL else TrappedFile(file, self.trap)

    def open(self, path: Path) -> DiskFile:
        file = self.disk.open(path)
        return file if path.name == JOURNAL else TrappedFile(file, self.trap)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)


@dataclass
class World:
    """One web, one clock, one auditor: what stays while crawls of it come and go."""

    web: SimulatedWeb
    folder: Path
    settings: Settings = PATIENT
    power: random.Random | None = None
    """Where given, crashes are power losses, and this draws what survives them."""
    objects: SimulatedObjectStore | None = None
    """Where given, the archive goes there; it outlives every crash."""
    renderer: Callable[[], Renderer] | None = None
    """Where given, pages are shown to one that this makes for each run."""
    prepare: Callable[[Any, Disk], None] | None = None
    """Where given, called with every crawl before it runs, and with the disk that it has."""
    clock: VirtualClock = field(default_factory=VirtualClock)
    recorder: Recorder = field(default_factory=Recorder)
    runs: int = 0
    recovered: list[Recovered] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.auditor = Auditor(self.web, base_delay_ms=self.settings.politeness.delay_s * 1000)
        self.network = SimulatedNetwork(self.web, self.clock, self.auditor)
        self.disk: Disk = LocalDisk() if self.power is None else ForgetfulDisk()
        self.out = self.folder / "run-0" / "crawl"

    def crawl(
        self, crash_at: int = 0, *, seeds: Sequence[str] | None = None, new_cycle: bool = False
    ) -> CrawlSummary | None:
        """Crawl to the end, or to step `crash_at`: then None, and the world is as the next run finds it."""
        left = self.folder / f"run-{self.runs + 1}" / "crawl"
        trap = Trap(crash_at, lambda: self._crash(left))
        given = self.web.seeds() if seeds is None else seeds
        vars(self.network.service).pop("arrived", None)
        try:
            return run_virtual(lambda: self._run(trap, given, new_cycle=new_cycle), self.clock)
        except Crash:
            self.out = left
            self.runs += 1
            if self.objects is not None:
                self.objects.objects = self._arrived  # nothing of what the unwinding still sent
            return None

    async def _run(self, trap: Trap, seeds: Sequence[str], *, new_cycle: bool) -> CrawlSummary:
        disk = TrappedDisk(self.disk, trap)
        ground = Ground(self.clock, self.network, self.network, disk, self.objects, threaded=False)
        if self.renderer is not None:
            ground = replace(ground, renderer=self.renderer())
        if self.objects is not None:
            self.objects.stored = lambda _key: trap.step()
        directory = CrawlDirectory(self.out)
        with directory.held():
            async with AsyncExitStack() as stack:
                crawl = await build(directory, self.settings, ground, stack, listeners=[self.recorder, trap])
                if self.prepare is not None:
                    self.prepare(crawl, disk)
                group = crawl._m.frontier._group
                publish = group.after_commit

                def committed(observed: Any) -> None:
                    publish(observed)
                    trap.step()

                group.after_commit = committed
                try:
                    return await crawl.run([ArgumentSeeds(seeds)], new_cycle=new_cycle)
                finally:
                    self.recovered.append(crawl.recovered or Recovered())

    def _crash(self, left: Path) -> None:
        """Keep what is left, and hang up: for the servers every answer under way has ended."""
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)  # the dead tell no tales
        shutil.copytree(self.out, left, ignore=shutil.ignore_patterns("lock.mdb"))
        if self.objects is not None:
            self._arrived = dict(self.objects.objects)
        service = self.network.service
        for connection in list(service.connections):
            connection.connection_lost(None)
        service.arrived = lambda _: None  # type: ignore[method-assign]  # what the unwinding still sends is no request
        if isinstance(self.disk, ForgetfulDisk):
            for log in left.glob("catalogue.sqlite-*"):
                log.unlink()
            survived, self.disk = self.disk.lose_power(self.power), ForgetfulDisk()
            self.survived = survived
            for folder in ("warc", "chain", "spool", "frontier"):
                for name in survived.names(self.out / folder):
                    self.disk.overwrite(left / folder / name, survived.contents(self.out / folder / name))
            self.clock.reboot()

    def archive(self) -> dict[str, bytes]:
        """The archive's files, WARC and CDXJ, by name."""
        if self.objects is not None:
            names = ArchivePlace.parse(self.settings.archive.url).names(self.objects.objects)
            return {name: self.objects.objects[key][0] for name, key in names.items() if name != MARKER}
        folder = self.out / "warc"
        names = self.disk.names(folder)
        if isinstance(self.disk, ForgetfulDisk):
            return {name: self.disk.contents(folder / name) for name in names}
        return {name: (folder / name).read_bytes() for name in names}


def die_before_settling(patch: Any, unlucky: Callable[[str], bool], died: list[str]) -> None:
    """Let a crawl die when an answer lies in the archive and is not settled yet: each unlucky URL once.

    The run is to be given a step at which it would die that it never comes to.
    """
    traps: list[Trap] = []
    settle = vars(Pipeline).get("_settle_really", Pipeline.settle_stored)

    class Known(Trap):
        def __init__(self, at: int, action: Any) -> None:
            super().__init__(at, action)
            traps.append(self)

    async def dying(self: Pipeline, lease: Lease, task: PageTask, *rest: Any) -> bool:
        if task.url not in died and unlucky(task.url) and traps[-1].at > traps[-1].steps:
            died.append(task.url)
            traps[-1].at = traps[-1].steps + 1
            traps[-1].step()
        settled: bool = await settle(self, lease, task, *rest)
        return settled

    patch.setattr(Pipeline, "_settle_really", settle, raising=False)
    patch.setattr(Pipeline, "settle_stored", dying)
    patch.setattr(f"{__name__}.Trap", Known)

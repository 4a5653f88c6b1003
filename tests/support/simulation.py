"""A whole crawl of the simulated web under virtual time: the real pipeline, frontier, fetcher and store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from nephila.engines.disk import Disk
from nephila.interfaces.events import EventSink
from nephila.interfaces.renderer import Renderer
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.wiring import build
from nephila.seeds import ArgumentSeeds
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import Auditor, AuditReport, SimulatedNetwork, SimulatedWeb, TrapFigures, WebSpec
from nephila.testing.web.service import Sent

DEFAULTS = Settings()
PATIENT = replace(
    DEFAULTS,
    scope=replace(DEFAULTS.scope, mode="all"),
    limits=replace(DEFAULTS.limits, max_wait_s=3600.0),
    fetch=replace(DEFAULTS.fetch, allow_addresses=("127.0.0.0/8",)),
    frontier=replace(DEFAULTS.frontier, map_bytes=1 << 30),
)
"""Follows every link, waits for every retry."""


@dataclass
class Recorder:
    """An event sink that keeps everything."""

    events: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def urls(self, kind: EventKind) -> list[str]:
        return [event.url for event in self.events if event.kind is kind]


@dataclass(frozen=True)
class Simulated:
    """What came of a simulated crawl."""

    web: SimulatedWeb
    summary: CrawlSummary
    audit: AuditReport
    recorder: Recorder
    sent: list[Sent]
    out: Path
    traps: dict[str, TrapFigures]
    """What the trap sites saw, by host name."""


def simulate(
    web: SimulatedWeb,
    out: Path,
    settings: Settings = PATIENT,
    *,
    seeds: Sequence[str] | None = None,
    listeners: Sequence[EventSink] = (),
    new_cycle: bool = False,
    clock: VirtualClock | None = None,
    auditor: Auditor | None = None,
    disk: Disk | None = None,
    renderer: Renderer | None = None,
) -> Simulated:
    """Crawl a web from its seeds, those of its trap sites included, to the end."""
    clock = clock or VirtualClock()
    auditor = auditor or Auditor(web, base_delay_ms=settings.politeness.delay_s * 1000)
    recorder = Recorder()
    sent: list[Sent] = []
    traps: dict[str, TrapFigures] = {}

    async def run() -> CrawlSummary:
        network = SimulatedNetwork(web, clock, auditor, log=sent)
        ground = Ground(clock, network, network, disk, threaded=False, renderer=renderer)
        directory = CrawlDirectory(out)
        with directory.held():
            async with AsyncExitStack() as stack:
                crawl = await build(directory, settings, ground, stack, listeners=[recorder, *listeners])
                given = web.seeds() + web.trap_seeds() if seeds is None else seeds
                ended = await crawl.run([ArgumentSeeds(given)], new_cycle=new_cycle)
        traps.update(network.service.witness.figures())
        return ended

    summary = run_virtual(run, clock)
    return Simulated(web, summary, auditor.report(), recorder, sent, out, traps)


def standard_web(seed: int) -> SimulatedWeb:
    """The standard web: 50 hosts, 2,000 pages, mixed robots, redirects, duplicates, 5 % failing URLs."""
    return SimulatedWeb(WebSpec.standard(seed))

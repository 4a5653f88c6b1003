"""What a process leaves as evidence: its event files, and the chain that seals them together with its archive (K1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.model.errors import StorageError
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.model.terms import Terms
from nephila.observe import JsonlEventSink
from nephila.observe.eventfile import number_of
from nephila.store import Disk, LocalDisk, Trail

from .directory import CrawlDirectory


@dataclass(frozen=True, slots=True)
class Evidence:
    """Both."""

    sink: JsonlEventSink
    trail: Trail


@dataclass(frozen=True, slots=True)
class Afar:
    """The evidence of a worker of a fleet, which is carried to where others can read it."""

    shared_ms: Callable[[], int]
    """The time by the clock that all workers go by."""
    carry_events: Callable[[], Awaitable[None]]
    """Awaited when the event files are closed and the chain is not."""


def evidence_of(
    directory: CrawlDirectory,
    settings: Settings,
    clock: Clock,
    disk: Disk | None,
    number: int,
    heard: EventSink,
    stack: AsyncExitStack,
    afar: Afar | None = None,
) -> Evidence:
    """Open the evidence of one process, by its number; closed by `stack`.

    In a fleet the time by the shared clock is noted in every event file, beside this machine's own, so that requests of
    different machines can be put on one line. A worker never goes on in an event file that it finds, nor under the name
    of one that its chain knows: it may have been carried away.
    """

    def tell(sentence: str) -> None:
        heard.emit(Event(EventKind.WARNING, clock.wall_ms(), reason="events_lost", detail=sentence))

    begun = (("steady_ms", clock.steady_ms()),)

    def terms() -> Event:
        detail = Terms.of(settings).to_json()
        now = (("shared_at", clock.steady_ms()), ("shared_ms", afar.shared_ms())) if afar is not None else ()
        return Event(EventKind.TERMS, clock.wall_ms(), reason=clock.boot_id(), detail=detail, counts=begun + now)

    archives = directory.spool if settings.archive.url else directory.warc
    trail = Trail(directory.root, number, disk or LocalDisk(), clock, archives=archives)
    stack.callback(_close_trail, trail, heard, clock)  # the last of all: after the events
    if afar is not None:
        stack.push_async_callback(afar.carry_events)
    after = max(map(number_of, trail.event_files()), default=0) if afar is not None else None
    sink = JsonlEventSink(directory.events, settings.observe, clock.wall_ms(), str(number), tell, terms, after=after)
    trail.event_marks = sink.marks
    stack.callback(sink.close)
    return Evidence(sink, trail)


def _close_trail(trail: Trail, heard: EventSink, clock: Clock) -> None:
    """What is left unsealed on a full disk is sealed by the next run; it must not hide how this one ended."""
    try:
        trail.close()
    except StorageError as error:
        heard.emit(Event(EventKind.WARNING, clock.wall_ms(), reason="trail", detail=str(error)))

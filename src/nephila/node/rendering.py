"""The browsers of a crawl, built: where there are none, pages that need one are counted."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.renderer import Renderer, Renderings, Shelf
from nephila.model.settings import RenderSettings, Settings
from nephila.model.summary import CrawlSnapshot
from nephila.parse import sign_of
from nephila.pipeline import Holding, RenderClause, ResourceNotes
from nephila.render import ChromiumPool, found_browser

MEMORY_SHARE = 0.25
"""Of the memory that is there when a crawl begins, what all browsers together may be given."""
NEVER = "never"


@dataclass(frozen=True, slots=True)
class Screens:
    """What pages are shown by, and what is kept for them."""

    shelf: Shelf
    """What pages need of other hosts, and those that wait for it."""
    simulated: Renderer | None = None
    real: bool = False
    """A browser of this machine may be used."""
    borrowed: Renderer | None = None
    """The browsers of others, where there is none."""
    mark: Path | None = None
    """A file that says from now on that pages were shown, if any is."""


def rendering_of(
    settings: Settings,
    renderings: Renderings,
    events: EventSink,
    clock: Clock,
    stack: AsyncExitStack,
    screens: Screens,
) -> RenderClause | None:
    """Who shows pages to browsers; None where nobody is to."""
    wanted = settings.render
    if wanted.enabled == NEVER:
        return None
    renderer, shelf = screens.simulated, screens.shelf
    if renderer is None and screens.real:
        path = found_browser(wanted.executable)
        renderer = ChromiumPool(wanted, path, settings.fetch.user_agent, browsers_of(wanted)) if path else None
        renderer = renderer or screens.borrowed
    if renderer is not None:
        stack.push_async_callback(renderer.close)
    places = int(settings.fetch.concurrency * wanted.share)
    holding = Holding(shelf, ResourceNotes(shelf, clock, wanted.wait_s), wanted, clock)
    clause = RenderClause(wanted, renderer, renderings, sign_of, events, clock, places, holding)
    clause.mark = screens.mark
    return clause


def browsers_of(settings: RenderSettings) -> int:
    """How many browsers: what was asked for, else what memory allows, and not more than there are cores."""
    if settings.browsers:
        return settings.browsers
    by_memory = int(_available_bytes() * MEMORY_SHARE // settings.memory_bytes)
    return max(1, min(by_memory, len(os.sched_getaffinity(0)), 50))


def _available_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def with_browsers(snapshot: CrawlSnapshot, clause: RenderClause | None) -> CrawlSnapshot:
    """The figures of a crawl with those of its browsers."""
    if clause is None or clause.renderer is None:
        return snapshot
    pool = clause.renderer.figures()
    return replace(snapshot, render_queue=clause.waiting, browsers=pool.browsers, browser_bytes=pool.memory_bytes)


def visited_by(clause: RenderClause | None) -> Callable[[str], bool]:
    """Whether browsers may have been asking a host when a process died."""
    return (lambda _host: False) if clause is None else clause.is_visited

"""The part of the sentence that is about scripts: which pages are shown to a browser, and what comes of it (J1-J4).

A page is judged as it came. Where it looks as if its scripts made it, and that has proved true of its host, it is shown
to a browser, as a visit (`visit`); what the browser made of it is then judged in its place, and both are kept. A page
that no browser could show counts as it came.

A page that wants something of other hosts is put off until that has come (`holding`), and shown again.

The way to a browser is a line with so many places, a share of all exchanges at once. A page of a host that is known to
need a browser takes its place before it is asked for, and is put off where there is none; one that turns out to need
one is put off with what was learned, so that it takes its place first the next time.

What must stay true: a host is not asked for anything while a visit to it lasts but by the visit; pages that need no
browser wait for none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.renderer import Renderer, Renderings
from nephila.model.events import Event, EventKind
from nephila.model.exchange import FailureKind, Fetched, FetchFailed
from nephila.model.page import Link, Page
from nephila.model.plugin import Extract
from nephila.model.rendering import Rendered, RenderFailed, RenderMode, RenderOrder, Sign, SiteRendering
from nephila.model.settings import RenderSettings
from nephila.model.task import Lease, PageTask

from .elsewhere import hosts_of
from .holding import Held, Holding, Waiting
from .judgement import Extracts
from .part_cache import PartCache
from .render_rule import (
    UNKNOWN,
    after_passing,
    after_try,
    after_waiting,
    expects,
    has_gained,
    is_tried,
    is_worth_waiting,
)
from .visit import NOTE_VISIT, Visit, shown_headers

WAIT_MS = 2_000
"""How long a host waits for whose page no browser has a place."""
NOTE_RENDERED = "rendered"
"""How the metadata of a capture says that a browser has shown the page: how many requests that took."""
NOTE_WITHOUT = "renderedWithout"
"""The same of what the page wanted of other hosts and did not get, by reason."""
NOTE_PUT_OFF = "renderPutOff"
TARGETS = "script"
"""Who found the addresses that scripts wanted to go to."""
MAX_TARGETS = 50
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Shown:
    """What came of showing a page."""

    visit: Visit
    rendered: Rendered | RenderFailed


def rendered_view(fetched: Fetched, html: bytes) -> Fetched:
    """An answer as a browser has made it: judged in the place of what came over the wire.

    Its validators are left out: that the shell has not changed says nothing of the page.
    """
    dropped = {"content-type", "etag", "last-modified"}
    headers = tuple(header for header in fetched.headers if header[0] not in dropped)
    return replace(fetched, body=html, headers=(*headers, ("content-type", HTML)))


def targets_of(rendered: Rendered) -> Extracts:
    """Where the scripts of a page wanted to go, as links."""
    urls = dict.fromkeys(url.partition("#")[0] for url in rendered.targets if url.startswith(("http://", "https://")))
    links = tuple(Link(url, TARGETS, "", "") for url in list(urls)[:MAX_TARGETS])
    return ((TARGETS, Extract(links=links)),) if links else ()


class RenderClause:
    """Decides, keeps the line, shows, learns. `renderer` is None where there is no browser: then pages are counted."""

    def __init__(
        self,
        settings: RenderSettings,
        renderer: Renderer | None,
        renderings: Renderings,
        sign_of: Callable[[bytes, int], Sign],
        events: EventSink,
        clock: Clock,
        places: int,
        holding: Holding | None = None,
    ) -> None:
        """`places` are those of the line: pages at browsers, and on their way there.

        `holding` keeps pages that wait for other hosts; where it is None, none does.
        """
        self.holding = holding
        self.mark: Path | None = None
        """A file that says, whatever dies now, that pages were shown."""
        self.settings = settings
        self.renderer = renderer
        self.cache = PartCache(settings.cache_bytes)
        self._renderings = renderings
        self._sign_of = sign_of
        self._events = events
        self._clock = clock
        self._places = max(1, places)
        self._taken = 0

    # The line

    @property
    def waiting(self) -> int:
        """Pages in the line for which every browser is busy."""
        return max(0, self._taken - (self.renderer.places if self.renderer is not None else 0))

    def expects(self, lease: Lease) -> bool:
        """Whether a host's pages need a browser, as far as is known before they are asked for."""
        return self.renderer is not None and expects(self._renderings.of(lease.host), lease.render)

    def enter(self) -> bool:
        """Take a place in the line; False when there is none."""
        if self._taken >= self._places:
            return False
        self._taken += 1
        return True

    def leave(self) -> None:
        """Give the place back."""
        self._taken -= 1

    def no_place(self, task: PageTask) -> FetchFailed:
        """Not now: the host is given back for a moment, and nothing was sent."""
        return FetchFailed(task.url, FailureKind.ADDRESS_BUSY, "every browser is busy", False, wait_ms=WAIT_MS)

    # Waiting for other hosts

    def may_show(self, lease: Lease) -> bool:
        """Whether the next page of a host may go to a browser at once: one that needs it, or has waited."""
        return self.expects(lease) or (self.holding is not None and self.holding.has_some_of(lease.host))

    async def wait(self, shown: Shown, lease: Lease, task: PageTask, sign: Sign, answer: Fetched) -> Waiting | None:
        """Put a page off that wants something which has not come yet; None where it counts as it is."""
        visit, holding = shown.visit, self.holding
        if holding is None or visit.elsewhere is None or not visit.elsewhere.wanted:
            return None
        if isinstance(shown.rendered, RenderFailed):
            return None
        before = visit.held
        first = before.first if before else shown.rendered.html
        now = Held(
            cycle=task.cycle,
            sign=sign,
            waits=before.waits if before else 0,
            looks=0,
            until=before.until if before else 0,
            requests=visit.total,
            visit=visit.first,
            wanted=before.wanted if before else {},
            parts=visit.parts(),
            first=first,
            answer=answer,
        )
        pace = lease.pace
        delay_ms = max(pace.delay_ms, pace.crawl_delay_ms, pace.base_ms)
        return await holding.hold(task, lease.host, now, visit.elsewhere, delay_ms)

    def is_worth_waiting(self, lease: Lease, other: str) -> bool:
        """Whether a page of a host waits for what another one has."""
        return is_worth_waiting(self._renderings.of(lease.host), other)

    def learn_of_waiting(self, lease: Lease, visit: Visit, pages: tuple[Page | None, Page | None]) -> None:
        """What waiting for other hosts was good for; `pages` are what it was before, and what it is now."""
        waited = hosts_of(visit.held.wanted) if visit.held is not None else set()
        passed = visit.elsewhere.passed if visit.elsewhere is not None else set()
        if waited or passed:
            known = self._renderings.of(lease.host) or UNKNOWN
            self._renderings.keep(lease.host, after_waiting(known, waited, passed, gained=has_gained(*pages)))

    # Deciding

    def sign(self, lease: Lease, answer: Fetched, page: Page | None) -> Sign | None:
        """The sign under which a page goes to a browser; None where it does not."""
        if page is None or answer.status != 200 or answer.truncated is not None or lease.render is RenderMode.NEVER:
            return None
        if not page.charset or not page.keep_body:  # no HTML
            return None
        found = self._renderings.of(lease.host)
        sign = self._sign_of(answer.body, page.words)
        if found is None and not sign and lease.render is RenderMode.AUTO:
            return None  # as most pages: nothing says that a browser would make more of it
        known = found or UNKNOWN
        if is_tried(known, sign, lease.render):
            return sign
        passed = after_passing(known, sign)
        if passed is not known:
            self._renderings.keep(lease.host, passed)
        return None

    def tell_wanted(self, lease: Lease, task: PageTask, sign: Sign) -> None:
        """A page needs a browser, and there is none."""
        self._tell(EventKind.RENDER_MISSED, lease, task, reason="no_browser", detail=sign)

    def put_off(self, lease: Lease) -> None:
        """A page is put off: the next of its host takes its place before it is asked for."""
        self._renderings.keep(lease.host, replace(self._renderings.of(lease.host) or UNKNOWN, awaited=True))

    # Showing

    async def show(self, visit: Visit, lease: Lease, answer: Fetched) -> Shown:
        """Show a page, to another browser where one fails under it."""
        if self.renderer is None:
            return Shown(visit, RenderFailed("start", "there is no browser"))
        await self._announce(lease)
        headers = shown_headers(answer.headers)
        order = RenderOrder(answer.url, answer.status, headers, answer.body, lease.user_agent)
        try:
            for _ in range(self.settings.attempts):
                rendered = await self.renderer.render(order, visit.supply)
                if isinstance(rendered, Rendered) or not rendered.worth_another:
                    break
        finally:
            await visit.end()
        if visit.failure is not None:
            raise visit.failure
        return Shown(visit, rendered)

    async def _announce(self, lease: Lease) -> None:
        """Let it be known, whatever dies now, that a browser may be asking this host (J3)."""
        if self.mark is not None and not self.mark.exists():
            self.mark.parent.mkdir(exist_ok=True)
            self.mark.touch()
        known = self._renderings.of(lease.host)
        if not expects(known, RenderMode.AUTO):
            self._renderings.keep(lease.host, replace(known or UNKNOWN, awaited=True))
            await asyncio.get_running_loop().run_in_executor(None, self._renderings.flush)

    def is_visited(self, host: str) -> bool:
        """Whether a browser may have been asking a host when a process died."""
        return expects(self._renderings.of(host), RenderMode.AUTO)

    def learn(
        self, lease: Lease, task: PageTask, sign: Sign, shown: Shown, pages: tuple[Page | None, Page | None]
    ) -> None:
        """What a page that was shown says of its host; `pages` are what it was, and what it is now."""
        visit, rendered = shown.visit, shown.rendered
        counts = [("requests", visit.total), ("cached", visit.cached)]
        if visit.elsewhere is not None and visit.elsewhere.supplied:
            counts.append(("elsewhere", visit.elsewhere.supplied))
        if visit.held is not None:
            counts.append(("waits", visit.held.waits))
        counts += [(f"withheld_{reason}", count) for reason, count in sorted(visit.withheld.items())]
        if isinstance(rendered, RenderFailed):
            kept = (rendered.reason, rendered.detail)
            self._tell(EventKind.RENDER_MISSED, lease, task, reason=kept[0], detail=kept[1], counts=tuple(counts))
            return
        gained = has_gained(*pages)
        known: SiteRendering = self._renderings.of(lease.host) or UNKNOWN
        self._renderings.keep(lease.host, after_try(known, sign, gained=gained))
        counts.append(("gained", int(gained)))
        counts.append(("settled", int(rendered.settled)))
        self._tell(EventKind.RENDERED, lease, task, reason=sign or "asked", counts=tuple(counts))

    def _tell(self, kind: EventKind, lease: Lease, task: PageTask, **fields: object) -> None:
        event = Event(kind, self._clock.wall_ms(), task.url, task.fingerprint, lease.host, task.depth)
        self._events.emit(replace(event, **fields))  # type: ignore[arg-type]  # fields of an event


def notes_of_showing(shown: Shown | None) -> list[tuple[str, str]]:
    """What the metadata of a page's capture says of its visit."""
    if shown is None:
        return []
    how = "failed" if isinstance(shown.rendered, RenderFailed) else "settled" if shown.rendered.settled else "cut"
    visit = shown.visit
    notes = [(NOTE_VISIT, visit.name), (NOTE_RENDERED, f"{how} {visit.total}")]
    lacks = sorted(visit.lacks.items())
    return [*notes, (NOTE_WITHOUT, " ".join(f"{reason}:{count}" for reason, count in lacks))] if lacks else notes

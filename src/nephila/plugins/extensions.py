"""All plugins of a crawl as the sentence sees them: every point in the order in which the plugins were given.

A point without a plugin costs a look at an empty tuple; a crawl without plugins has no such object at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.extensions import NOTHING
from nephila.model.events import Event, EventKind
from nephila.model.exchange import Fetched
from nephila.model.page import Link
from nephila.model.plugin import (
    Document,
    Extract,
    Glimpse,
    IncomingAnswer,
    OutgoingRequest,
    PageRecord,
    RequestAdvice,
)
from nephila.model.task import Candidate, Refusal

from .answers import advice_of, extract_of, points_given, verdicts_of
from .couriers import Courier
from .headers import objection
from .keeping import FAILURES, Kept
from .points import Point, media_types_of

RECORDS_WAITING, RECORDS_AT_ONCE = 256, 64
BODIES_WAITING, BODIES_AT_ONCE = 8, 4
"""The same for sinks that want bodies, of which each may have megabytes."""
EVENTS_WAITING, EVENTS_AT_ONCE = 10_000, 1_000
REFUSED = "plugin"
"""The reason of a URL that a plugin keeps out."""
_OWN_EVENTS = frozenset({EventKind.PLUGIN_FAILED, EventKind.PLUGIN_OFF})
"""Not told to plugins: one that fails over events would be told of it for ever."""


class PluginExtensions:
    """Implements `Extensions`. `close` ends it."""

    def __init__(
        self,
        plugins: Sequence[Kept],
        media_type: Callable[[str, str, bytes], str],
        clock: Clock,
        *,
        max_document_bytes: int,
        allow_credentials: bool,
    ) -> None:
        self.plugins = tuple(plugins)
        self._media_type = media_type
        self._clock = clock
        self._max_bytes = max_document_bytes
        self._credentials = allow_credentials
        self._told: set[tuple[str, str]] = set()
        self._events: EventSink | None = None
        self._filters = self._at(Point.FILTER)
        self._scorers = self._at(Point.SCORE)
        self._before = self._at(Point.BEFORE)
        self._after = self._at(Point.AFTER)
        self._extractors = [(frozenset(media_types_of(one.plugin)), one) for one in self._at(Point.EXTRACT)]
        self._sinks = [self._sink(one) for one in self._at(Point.RECORDS)]
        self._listeners: list[Courier[Event]] = [
            Courier(one, Point.EVENTS, waiting=EVENTS_WAITING, at_once=EVENTS_AT_ONCE) for one in self._at(Point.EVENTS)
        ]

    def _at(self, point: Point) -> tuple[Kept, ...]:
        return tuple(one for one in self.plugins if point in one.points)

    @staticmethod
    def _sink(kept: Kept) -> tuple[bool, Courier[PageRecord]]:
        bodies = getattr(kept.plugin, "wants_bodies", False) is True
        waiting, at_once = (BODIES_WAITING, BODIES_AT_ONCE) if bodies else (RECORDS_WAITING, RECORDS_AT_ONCE)
        return bodies, Courier(kept, Point.RECORDS, waiting=waiting, at_once=at_once)

    def tell(self, events: EventSink) -> None:
        """Whom to tell of what plugins do."""
        self._events = events
        for one in self.plugins:
            one.events = events

    @property
    def media_types(self) -> tuple[str, ...]:
        """What is fetched because somebody reads it."""
        return tuple(dict.fromkeys(name for types, _ in self._extractors for name in sorted(types)))

    @property
    def wants_bodies(self) -> bool:
        """Whether any sink wants the bodies of pages."""
        return any(bodies for bodies, _ in self._sinks)

    @property
    def listens(self) -> bool:
        """Whether anybody wants events."""
        return bool(self._listeners)

    @property
    def supplies(self) -> tuple[Kept, ...]:
        """Those that bring seeds."""
        return self._at(Point.SEEDS)

    # What the sentence asks

    async def before(self, request: OutgoingRequest) -> RequestAdvice:
        """What to add to a request, or why it is not to be sent."""
        if not self._before:
            return NOTHING
        headers: list[tuple[str, str]] = []
        for kept in self._before:
            try:
                advice = advice_of(await kept.ask(Point.BEFORE, request, url=request.url))
            except FAILURES:
                continue
            if advice.veto:
                return RequestAdvice(veto=f"{kept.name}: {advice.veto}")
            headers += [pair for pair in advice.headers if self._may_add(kept, *pair)]
        return RequestAdvice(tuple(headers))

    def _may_add(self, kept: Kept, name: str, value: str) -> bool:
        """Whether a header is added; the first time it is told, either way."""
        why = objection(name, value, credentials=self._credentials)
        mark = (kept.name, name.lower()[:100])
        if mark not in self._told and len(self._told) < 1000:
            self._told.add(mark)
            verdict = f"is not added: {why}" if why else "is added to requests"
            self._warn(f"the header {name[:100]!r} of the plugin {kept.name} {verdict}")
        return not why

    def _warn(self, sentence: str) -> None:
        if self._events is not None:
            self._events.emit(Event(EventKind.WARNING, self._clock.wall_ms(), reason="plugin", detail=sentence))

    async def after(self, answer: IncomingAnswer) -> None:
        """Tell what came of a request."""
        for kept in self._after:
            await _unless_it_fails(kept.ask(Point.AFTER, answer, url=answer.url))

    async def extract(self, fetched: Fetched) -> Sequence[tuple[str, Extract]]:
        """What was read out of a body."""
        if not self._extractors or not fetched.body:
            return ()
        media = self._media_type(fetched.url, fetched.content_type, fetched.body[:1445])
        found: list[tuple[str, Extract]] = []
        for types, kept in self._extractors:
            if media not in types or kept.is_off:
                continue
            document = Document(fetched.url, media, fetched.headers, fetched.body[: self._max_bytes])
            try:
                extract = extract_of(await kept.ask(Point.EXTRACT, document, url=fetched.url))
            except FAILURES as error:
                extract = Extract(detail=f"failed: {error}")
            found.append((kept.name, extract))
        return found

    async def sift(
        self, page: Glimpse, links: Sequence[Link], candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], list[Refusal]]:
        """Ask filters, then scorers of what is left."""
        kept_in, refused = list(candidates), list[Refusal]()
        if not (self._filters or self._scorers):
            return kept_in, refused
        shown = list(links)
        for kept in self._filters:
            try:
                answer = await kept.ask(Point.FILTER, page, shown, asked=len(shown), url=page.url)
                verdicts = verdicts_of(answer, len(shown))
            except FAILURES:
                continue
            stay = [at for at, verdict in enumerate(verdicts) if verdict is True]
            for candidate, verdict in zip(kept_in, verdicts, strict=True):
                if verdict is not True:
                    why = f"{kept.name}: {verdict}" if verdict else kept.name
                    refused.append(Refusal(candidate.address, REFUSED, why))
            kept_in, shown = [kept_in[at] for at in stay], [shown[at] for at in stay]
            if not kept_in:
                return kept_in, refused
        for kept in self._scorers:
            try:
                answer = await kept.ask(Point.SCORE, page, shown, asked=len(shown), url=page.url)
                points = points_given(answer, len(shown))
            except FAILURES:
                continue
            kept_in = [one._replace(bonus=one.bonus + more) for one, more in zip(kept_in, points, strict=True)]
        return kept_in, refused

    async def deliver(self, record: PageRecord) -> None:
        """Hand a stored page to the sinks."""
        for bodies, courier in self._sinks:
            await courier.send(record if bodies else _without_body(record))

    # A listener to events

    def emit(self, event: Event) -> None:
        """Hand an event to those who listen."""
        if event.kind not in _OWN_EVENTS:
            for courier in self._listeners:
                courier.send_now(event)

    def flush(self) -> None:
        """`settle` does that."""

    # The end

    async def settle(self) -> None:
        """Hand over all that is queued."""
        await asyncio.gather(*(courier.settle() for _, courier in self._sinks))
        await asyncio.gather(*(courier.settle() for courier in self._listeners))

    async def end(self) -> None:
        """Hand over what is queued, and let every plugin close."""
        await self.settle()
        for kept in self.plugins:
            await kept.close()

    def close(self) -> None:
        """`end` does that: it takes waiting."""


def _without_body(record: PageRecord) -> PageRecord:
    return replace(record, body=b"") if record.body else record


async def _unless_it_fails(asking: Awaitable[object]) -> None:
    try:
        await asking
    except FAILURES:
        """Counted and told."""

"""What a plugin may be (E1): seven points, each a Protocol. An object may stand at several of them.

A plugin is told by its methods, so that it needs nothing of this package but the types. Each method may be synchronous
or ``async``. All of them are called with a deadline, and what they return is checked.

- A *synchronous* plugin lives in a process of its own, because a thread cannot be stopped: it is copied there (pickled)
  when it is first called, called there, and ended and started anew when it is over its deadline. What it remembers is
  lost then.
- An *asynchronous* one runs on the crawl's loop and is cancelled at its deadline. It must not block.
- A synchronous one with ``quick = True`` is called on the crawl's loop: for what takes microseconds. It cannot be
  interrupted, only switched off.

Further attributes that are looked at where they exist: ``name`` (else the entry point's, else the class's), ``quick``,
and a method ``close()``, called once at the end.

A plugin that raises, overruns its deadline or returns nonsense has said nothing: links stay, the request goes as it
would have gone. Each failure is an event and a count under its name; after several in a row, or many overruns in all,
it is switched off for the rest of the run, with a warning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from nephila.model.events import Event
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

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class LinkFilter(Protocol):
    """Decides which of the links of a page may be queued. It can keep out, never let in what a rule keeps out."""

    def filter_links(self, page: Glimpse, links: Sequence[Link]) -> MaybeAwaitable[Sequence[bool | str]]:
        """One answer a link, in order: True lets it in, False or a reason keeps it out. Redirects come here too."""


class LinkScorer(Protocol):
    """Says what links are worth (R1)."""

    def score_links(self, page: Glimpse, links: Sequence[Link]) -> MaybeAwaitable[Sequence[int]]:
        """Points to add to each link's score, in order, from -100 to 100."""


class ContentExtractor(Protocol):
    """Reads something out of bodies: links, a title, fields."""

    @property
    def media_types(self) -> Sequence[str]:
        """Types of the bodies that it is given, e.g. ``application/pdf``; they are fetched because of it."""

    def extract(self, document: Document) -> MaybeAwaitable[Extract | None]:
        """What it found; None for nothing."""


class SeedSupply(Protocol):
    """Brings seeds."""

    def more_seeds(self) -> MaybeAwaitable[Sequence[str]]:
        """The next few, URLs or bare domains; none when there are no more. Called again until then."""


class RecordSink(Protocol):
    """Takes pages as they are stored. `wants_bodies = True` brings their bodies along."""

    def write_records(self, records: Sequence[PageRecord]) -> MaybeAwaitable[None]:
        """Take some, at least one. Each page comes once, unless the crawl is killed in between: then perhaps never.

        One that has not changed since its last visit (304) does not come again; event listeners hear of it.
        """


class EventListener(Protocol):
    """Takes events as they happen (O1), in batches; where it cannot keep up, some are dropped and counted."""

    def hear_events(self, events: Sequence[Event]) -> MaybeAwaitable[None]:
        """Take some, in order."""


class FetchHook(Protocol):
    """Stands before and behind every request for a page. robots.txt is asked for without it.

    It is asked after robots.txt and before the host's turn: it can add to a request or stop it, and cannot hurry it,
    redirect it, or lift a rule.
    """

    def before_fetch(self, request: OutgoingRequest) -> MaybeAwaitable[RequestAdvice | None]:
        """What to change; None for nothing."""

    def after_fetch(self, answer: IncomingAnswer) -> MaybeAwaitable[None]:
        """What came of it, when it is settled."""

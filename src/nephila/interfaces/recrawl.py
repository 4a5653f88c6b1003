"""When a page is worth another visit (R2, R5). Pure: the same history and visit give the same answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nephila.model.noun import noun, quick
from nephila.model.policy import Tier


@quick
class History(NamedTuple):
    """What is remembered of a page's visits. A tuple: one is kept with every fetched URL."""

    interval_s: int = 0
    """The interval that was chosen last; 0 before the first visit."""
    visits: int = 0
    changes: int = 0
    """Visits that found the content changed."""
    last_s: int = 0
    """UTC seconds of the last visit that got an answer."""
    gone: int = 0
    """Answers of 404 or 410 in a row."""
    gone_since_s: int = 0
    period_s: int = 0
    """The mean time between two changes, estimated; 0 where nobody has kept it."""
    shape: int = 0
    """What that rests on: as if so many hundredths of a change had been seen (see `frontier.change`)."""
    said: int = 0
    """48 bits that stand for what the page said at its last visit; 0 where that is not known."""


@noun
class Visit:
    """One answer."""

    at_s: int
    """UTC seconds."""
    status: int
    changed: bool
    """Whether the content differs from that of the last visit."""
    home: bool = False
    """Whether it is the home page of its host."""
    tier: Tier = Tier.NORMAL
    fixed_s: float | None = None
    """The interval that a policy of its domain sets."""
    listing: str = ""
    """The kind of list that it is (`model.listing.ListKind`); empty for a page."""
    expected_s: int = 0
    """How often it changes, as its site says and is believed in; 0 where nothing is known."""
    said: int = 0
    """48 bits that stand for what it says; 0 where it has no text, or was not read."""


@quick
class Planned(NamedTuple):
    """What to remember, and when to come back."""

    history: History
    wait_s: int
    gone: bool = False
    """Proven gone, not merely missing once (R5)."""


@quick
class Outlook(NamedTuple):
    """What a plan says to people: the catalogue shows it (W3)."""

    next_at: int
    """When the page is to be visited next, UTC milliseconds, as planned at its last visit."""
    change_rate: float | None
    """How often it changes, in changes a day, estimated; None before there were two visits to compare."""


@quick
class Terms(NamedTuple):
    """What plans depend on: whoever keeps plans keeps these, and learns by them when plans are to be revised."""

    estimated: bool
    """Whether intervals follow from estimated rates of change, at a price; else from the last interval."""
    price_s: float
    first_s: float
    news_home_s: float
    min_s: int
    max_s: int
    gone_max_s: int


class RecrawlPolicy(Protocol):
    """Decides how long to wait until the next visit."""

    terms: Terms

    def plan(self, history: History, visit: Visit) -> Planned:
        """The plan after a visit."""

    def revised(self, history: History, *, home: bool, tier: Tier, fixed_s: float | None) -> int:
        """The interval that a page is to have which was planned under other terms; 0 where nothing was planned.

        A fixed one holds at once, shorter or longer. Otherwise visits only come nearer: what is to come later is
        planned so at the next visit, with all that is known then.
        """

"""When a page is visited again: the simple policy (R2), and when it counts as gone (R5). The default is `estimated`.

An interval for each page: divided by a factor when its content changed, multiplied when it did not, within bounds. The
first one is what the site says (X3), where it does and is believed, else by kind and tier, until there is history.

Visits come late (the host was busy, the crawl was stopped for a month) and early (a new cycle, somebody asked), so the
interval that was chosen is not always the time that was *waited*, and it is the wait that an answer tells about:

- no change in a wait that was longer than planned: the page is known to be still for that long, so the longer wait is
  multiplied;
- a change in a longer wait: it may lie anywhere in it. The wait is divided, and the interval only ever shortened by it:
  after a month without crawling, pages that changed keep their intervals instead of all being asked twice as often;
- no change in a wait shorter than the interval over the factor: says nothing, and nothing is changed. Otherwise a page
  asked for ten times in an hour would seem to be still for months;
- a change in a shorter wait: divided once, as after a full one, since a single change may be chance.

Answers that are no statement about the page (5xx, 429, none) change nothing: they are not visits. 404 and 410 are: the
page is *missing*, and is asked for ever more rarely. The interval is multiplied each time, up to a ceiling of its own;
the interval and not a longer wait, or one such answer after a month of no crawling would hide a page for two. It is
*gone* only after several such answers in a row, the last of them long after the first. Other answers of 4xx are not a
missing page and not a changed one. A missing page that answers again has changed, and begins anew with no more than a
first interval.

Sitemaps and feeds (X3) go by the same rules within bounds of their own: a feed is there to be asked often.

How often the page changes is estimated on the way (`change`), for those who ask and for the day when the policy is
another one; this one goes by the last visit alone.

What was planned is revised when the rules change (`revised`): a person who shortens an interval does not mean that it
holds from the next visit on, which may be a month away. Whether a URL is a list, and what its site has said of it, is
not kept with its history: where the first interval is the site's word it stays, and a list may be asked once too early.

A policy of the domain may fix the interval. It holds for pages that are there: missing ones are asked for more and more
rarely all the same, beginning with the fixed interval.

What must stay true: without a fixed interval a wait is never outside its bounds; failures never make a page gone; one
missing answer never does, whatever the settings. Pure: no clock is read here.
"""

from __future__ import annotations

from math import ceil, floor

from nephila.interfaces.recrawl import History, Planned, Terms, Visit
from nephila.model.listing import ListKind
from nephila.model.policy import Tier
from nephila.model.settings import RecrawlSettings

from .change import Belief, after_visit, belief_of, first_belief, first_packed, packed

HIGH_TIER_FACTOR = 0.25
"""Of the ordinary first interval: 42 hours with the default of a week."""
LOW_TIER_FACTOR = 2.0
"""Of the ordinary first interval: what an ordinary page would come to after one visit without change."""
PERIOD_FACTOR = 6
"""A page changes once in so many first intervals, as long as nothing is known of it: every six weeks with the default
of a week, for which a week is the interval that pays at the default price (`estimated`)."""
REPEATED = 2
"""Missing answers that are the least proof of anything (R5: repeated), whatever `gone_after` says."""

_MISSING = frozenset({404, 410})
_TOO_MANY_REQUESTS = 429
_CLIENT_ERROR = 400
_SERVER_ERROR = 500
_REDIRECT = 300
_LEAST_STATUS = 100


def is_gone(history: History, settings: RecrawlSettings) -> bool:
    """Whether a page is proven gone: missing often enough, for long enough, and in every answer of that time."""
    enough = history.gone >= max(settings.gone_after, REPEATED)
    # While a page is missing, its last answer is its last missing answer.
    return enough and history.last_s - history.gone_since_s >= settings.gone_over_s


class SimpleRecrawl:
    """`RecrawlPolicy` that halves and doubles."""

    def __init__(self, settings: RecrawlSettings) -> None:
        self._settings = settings
        self._by_text = settings.changed == "text"
        self._low_s = max(1, ceil(settings.min_s))
        self._high_s = max(self._low_s, floor(settings.max_s))
        self._gone_high_s = max(self._low_s, floor(settings.gone_max_s))
        self._pages = self._low_s, self._high_s
        self._feeds = _bounds(settings.feed_min_s, settings.feed_max_s)
        self._sitemaps = _bounds(settings.sitemap_min_s, settings.sitemap_max_s)
        self.terms = Terms(
            settings.policy != "simple",
            settings.price_s,
            settings.first_s,
            settings.news_home_s,
            self._low_s,
            self._high_s,
            self._gone_high_s,
        )

    def plan(self, history: History, visit: Visit) -> Planned:
        """The plan after a visit."""
        if _says_nothing(visit.status):
            return self._after_failure(history, visit)
        if visit.status in _MISSING:
            return self._after_missing(history, visit)
        if history.visits <= 0:
            interval_s = self._first_s(visit) if visit.fixed_s is None else _fixed_s(visit.fixed_s)
            believed, said = first_packed(self._period_s(visit)), self._said(history, visit)
            return Planned(History(interval_s, 1, 0, visit.at_s, 0, 0, *believed, said), interval_s)
        seen = visit.status < _CLIENT_ERROR
        back = history.gone > 0 and seen
        changed = back or (visit.changed and seen)
        belief = belief_of(history) or first_belief(self._period_s(visit))
        if seen and not back:
            belief = after_visit(belief, visit.at_s - history.last_s, changed=changed)
        interval_s = self._interval_s(history, visit, belief, changed=changed, back=back)
        visits, changes = history.visits + 1, history.changes + changed
        said = self._said(history, visit)
        return Planned(History(interval_s, visits, changes, visit.at_s, 0, 0, *packed(belief), said), interval_s)

    def revised(self, history: History, *, home: bool, tier: Tier, fixed_s: float | None) -> int:
        """The interval of a page that was planned under other terms. `Policy.revised` in Lua is its twin."""
        chosen_s = history.interval_s
        if chosen_s <= 0:
            return 0
        if history.gone:
            return min(max(chosen_s, self._low_s), self._gone_high_s)
        if fixed_s is not None:
            return _fixed_s(fixed_s)
        visit = Visit(0, 200, False, home, tier)
        if history.visits > 1:
            return min(chosen_s, self._anew_s(history, visit))
        told = chosen_s == history.period_s  # by its site, or by what it is: see `_period_s`
        return min(chosen_s, self._high_s if told else self._first_s(visit))

    def _anew_s(self, history: History, visit: Visit) -> int:
        """The interval of a page that was there before, by what is known of it."""
        del history, visit
        return self._high_s

    def _interval_s(self, history: History, visit: Visit, belief: Belief, *, changed: bool, back: bool) -> int:
        if visit.fixed_s is not None:
            return _fixed_s(visit.fixed_s)
        if history.interval_s <= 0:
            return self._first_s(visit)
        if back:
            return min(self._first_s(visit), self._bounded(history.interval_s / self._settings.factor, visit))
        return self._following_s(history, visit, belief, changed=changed)

    def _following_s(self, history: History, visit: Visit, belief: Belief, *, changed: bool) -> int:
        """The interval of a page that was there before."""
        del belief
        factor, chosen_s = self._settings.factor, history.interval_s
        if changed:
            return self._bounded(min(chosen_s, max(chosen_s, visit.at_s - history.last_s) / factor), visit)
        if self._is_early(history, visit):
            return self._bounded(chosen_s, visit)
        return self._bounded(max(chosen_s, visit.at_s - history.last_s) * factor, visit)

    def _is_early(self, history: History, visit: Visit) -> bool:
        """Whether a visit came so soon that finding nothing new says nothing."""
        return (visit.at_s - history.last_s) * self._settings.factor < history.interval_s

    def _after_missing(self, history: History, visit: Visit) -> Planned:
        wanted_s: float = history.interval_s
        if wanted_s <= 0:
            wanted_s = self._first_s(visit) if visit.fixed_s is None else _fixed_s(visit.fixed_s)
        elif not self._is_early(history, visit):
            wanted_s *= self._settings.factor
        interval_s = min(max(round(wanted_s), self._low_s), self._gone_high_s)
        since_s = history.gone_since_s if history.gone else visit.at_s
        kept = History(
            interval_s,
            history.visits + 1,
            history.changes,
            visit.at_s,
            history.gone + 1,
            since_s,
            history.period_s,
            history.shape,
            history.said,
        )
        return Planned(kept, interval_s, is_gone(kept, self._settings))

    def _after_failure(self, history: History, visit: Visit) -> Planned:
        """Come back as planned before, and remember nothing: what is to be retried sooner is retried by others."""
        gone = is_gone(history, self._settings)
        if visit.fixed_s is not None and not history.gone:
            return Planned(history, _fixed_s(visit.fixed_s), gone)
        if history.interval_s <= 0:
            return Planned(history, self._first_s(visit), gone)
        high_s = self._gone_high_s if history.gone else self._high_s
        return Planned(history, min(max(history.interval_s, self._low_s), high_s), gone)

    def _said(self, history: History, visit: Visit) -> int:
        """What is to be remembered of what the page says: nothing where its bytes are to count, and there are some."""
        if not self._by_text and visit.status < _REDIRECT:
            return 0
        return visit.said or (0 if visit.changed else history.said)

    def _period_s(self, visit: Visit) -> float:
        """How often a page that was never visited may change: as its site says, as news does, or seldom.

        Its tier says how much it matters, and nothing of that.
        """
        if visit.listing:
            return self._first_s(visit)
        if visit.tier is Tier.NEWS and visit.home:
            return self._settings.news_home_s
        return visit.expected_s or self._settings.first_s * PERIOD_FACTOR

    def _first_s(self, visit: Visit) -> int:
        first_s = self._settings.first_s
        if visit.listing:
            is_feed = visit.listing == ListKind.FEED
            return self._bounded(self._settings.feed_first_s if is_feed else self._settings.sitemap_first_s, visit)
        if visit.tier is Tier.NEWS and visit.home:
            first_s = self._settings.news_home_s
        elif visit.expected_s:
            first_s = visit.expected_s
        elif visit.tier is Tier.HIGH:
            first_s *= HIGH_TIER_FACTOR
        elif visit.tier is Tier.LOW:
            first_s *= LOW_TIER_FACTOR
        return self._bounded(first_s, visit)

    def _bounded(self, interval_s: float, visit: Visit) -> int:
        bounds = self._pages
        if visit.listing:
            bounds = self._feeds if visit.listing == ListKind.FEED else self._sitemaps
        low_s, high_s = bounds
        whole_s = round(interval_s)
        return low_s if whole_s < low_s else min(whole_s, high_s)


def _bounds(low_s: float, high_s: float) -> tuple[int, int]:
    """The shortest and the longest interval, in whole seconds and in order."""
    low = max(1, ceil(low_s))
    return low, max(low, floor(high_s))


def _says_nothing(status: int) -> bool:
    """Whether an answer tells of the server's state and not of the page's."""
    return status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS or status < _LEAST_STATUS


def _fixed_s(fixed_s: float) -> int:
    return max(1, round(fixed_s))

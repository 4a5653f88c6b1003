"""When a page is visited again: the policy that estimates (R2), the default.

How often a page changes is estimated from its visits (`change`). How often it is then visited is a question of price: a
visit that goes to one page cannot go to another. Visiting in proportion to the rate of change, which halving and
doubling comes to, is worse than visiting all pages alike (Cho and Garcia-Molina 2003): it spends most on pages that
change faster than they can be followed, and are out of date soon after every visit.

So one price holds for all pages, the *seconds of freshness that a visit has to buy*, and each is visited as often as
that pays. A copy that has missed one change is worth less than a fresh one, and one that has missed several is worth
little less again (a harmonic penalty; Kolobov, Peres, Lu and Horvitz 2019). With that, another visit pays until

    interval = price / 2 x (1 + sqrt(1 + 4 x period / price))

where the period is the mean time between changes. A page that changes all the time is visited every `price` seconds,
and never given up; one that changes seldom about every sqrt(price x period): of two pages, the one that changes a
hundred times as often is visited ten times as often. No other page has to be known, so the interval can be found when
a page is settled, wherever that is; who has more or fewer visits to spend lowers or raises the price.

Importance divides the price. The pages of a domain of the high tier, and of news, have a sixteenth of it, which makes
their intervals a quarter, as their first ones are; those of the low tier four times as much. The home page of a news
domain costs no more than its first interval.

Everything else is as `schedule` has it: the first interval, failures, what is missing and gone, fixed intervals, and
lists, which are there to be asked often: what they are worth is what they name.
"""

from __future__ import annotations

from math import sqrt

from nephila.interfaces.recrawl import History, RecrawlPolicy, Visit
from nephila.model.policy import Tier
from nephila.model.settings import RecrawlSettings

from .change import Belief, belief_of
from .schedule import HIGH_TIER_FACTOR, LOW_TIER_FACTOR, SimpleRecrawl


def interval_for(rate: float, price_s: float) -> float:
    """The interval at which another visit just pays: never less than the price."""
    return price_s / 2 * (1 + sqrt(1 + 4 / (rate * price_s)))


class EstimatedRecrawl(SimpleRecrawl):
    """`RecrawlPolicy` that visits pages as often as that buys freshness."""

    def __init__(self, settings: RecrawlSettings) -> None:
        super().__init__(settings)
        ordinary, high = settings.price_s, settings.price_s * HIGH_TIER_FACTOR**2
        low = settings.price_s * LOW_TIER_FACTOR**2
        self._prices = {Tier.NORMAL: ordinary, Tier.HIGH: high, Tier.NEWS: high, Tier.LOW: low}

    def _following_s(self, history: History, visit: Visit, belief: Belief, *, changed: bool) -> int:
        if visit.listing:
            return super()._following_s(history, visit, belief, changed=changed)
        return self._paying_s(belief.rate, visit)

    def _anew_s(self, history: History, visit: Visit) -> int:
        kept = history.shape > 0 and history.period_s > 0
        belief = belief_of(history) if kept else None
        return self._high_s if belief is None else self._paying_s(belief.rate, visit)

    def _paying_s(self, rate: float, visit: Visit) -> int:
        """The interval that pays for a page, within bounds."""
        price_s = self._prices[visit.tier]
        if visit.tier is Tier.NEWS and visit.home:
            price_s = min(price_s, self._settings.news_home_s)
        return self._bounded(interval_for(rate, price_s), visit)


def recrawl_of(settings: RecrawlSettings) -> RecrawlPolicy | None:
    """The policy that the settings ask for; None where no visit is planned."""
    if not settings.enabled:
        return None
    return SimpleRecrawl(settings) if settings.policy == "simple" else EstimatedRecrawl(settings)

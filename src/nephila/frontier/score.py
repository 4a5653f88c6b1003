"""How much a URL matters, as points from 0 to 100, and the front class that follows from them (R1, F1).

A score is a sum of terms that are each settable: the authority of page and domain, the nearness to a seed, the need to
be looked at again, and what is known of the URL itself (news, listed in a sitemap, a file that is no page). What the
domain is to whoever runs the crawl, its tier, adds or takes some more. Ageing (F7) is not a term: it would change with
every second of every queued URL, so it is the business of the order in the queue.

What must stay true: a score is a whole number from 0 to 100; more authority never lowers it and more depth never
raises it; no score makes a URL immediate, for that is decided by whoever asks for it, never by the web. Two of these
functions are called for every link of a page: they look at little and build nothing.
"""

from __future__ import annotations

from nephila.interfaces.recrawl import History
from nephila.model.policy import Tier
from nephila.model.settings import PrioritySettings
from nephila.model.task import Level

from .scope_extensions import SKIPPED_EXTENSIONS

HIGHEST = 100
"""R1: scores are capped here."""
HIGH_TIER_POINTS = 20
"""As many as news brings (R1's default): a domain that somebody called high is not worth less than that."""
LOW_TIER_POINTS = -20
"""The opposite: as much as the first ten hops from a seed cost."""

_NO_PAGES = frozenset(name for names in SKIPPED_EXTENSIONS.values() for name in names.split())
_LOOKED_AT = max(map(len, _NO_PAGES)) + 1
"""Characters at the end of a path in which the dot of such an ending can stand."""
_HALF = 0.5
_NORMAL = Tier.NORMAL
"""Looked up once: until Python 3.12 a member of an enumeration costs a call each time."""


def score(
    settings: PrioritySettings,
    authority: float,
    depth: int,
    bonus: int = 0,
    freshness: float = 0.0,
    tier: Tier = Tier.NORMAL,
) -> int:
    """The points of a URL; `authority` and `freshness` count from 0 to 1, `bonus` is what `bonus_of` found."""
    # Comparisons where min and max would read better: this runs for every link, and they cost more than the rest.
    points = bonus
    if authority > 0.0:
        points += settings.authority if authority >= 1.0 else round(authority * settings.authority)
    near = settings.depth - settings.depth_step * depth
    if near > 0:
        points += near
    if freshness > 0.0:
        points += settings.freshness if freshness >= 1.0 else round(freshness * settings.freshness)
    if tier is not _NORMAL:
        points += _tier_points(settings, tier)
    if 0 < points < HIGHEST:
        return points
    return HIGHEST if points > 0 else 0


def _tier_points(settings: PrioritySettings, tier: Tier) -> int:
    match tier:
        case Tier.NEWS:
            return settings.news
        case Tier.HIGH:
            return HIGH_TIER_POINTS
        case Tier.LOW:
            return LOW_TIER_POINTS
        case Tier.NORMAL:
            return 0


def level_of(settings: PrioritySettings, score: int) -> Level:
    """The front class of a score; never immediate."""
    if score >= settings.high_from:
        return Level.HIGH
    return Level.MEDIUM if score >= settings.medium_from else Level.LOW


def lowered(level: Level, steps: int) -> Level:
    """The class so many levels lower, for a domain in trouble (P4); immediate is somebody's order and stays."""
    if steps <= 0 or level is Level.IMMEDIATE:
        return level
    return Level(min(level + steps, Level.LOW))


def freshness_of(history: History, now_s: int) -> float:
    """How likely a page has changed since its last visit, from 0 to 1, by what is believed of its rate (`change`).

    Where nobody has kept that, the rate is estimated from the share of visits that found no change, as if the visits
    had been one present interval apart: rate = -log(share) / interval. To the visits, half a change in one visit more
    is added: without history a page is then as likely as not to have changed when it is due, and no share is 0 or 1. A
    page that was never fetched, or is missing at present (R5), has no content that could be out of date.
    """
    if history.interval_s <= 0 or history.visits <= 0 or history.gone:
        return 0.0
    elapsed_s = max(now_s - history.last_s, 0)
    unlikely: float
    if history.shape > 0 and history.period_s > 0:
        shape = history.shape / 100
        # as `change.chance_of_change`, in words that the engine of a fleet has, too
        unlikely = (1.0 + elapsed_s / (shape * history.period_s)) ** -shape
    else:
        compared = history.visits - 1
        unchanged = max(compared - history.changes, 0)
        # exp(log(share) x elapsed / interval), without the way over the logarithm
        unlikely = ((unchanged + _HALF) / (compared + 1)) ** (elapsed_s / history.interval_s)
    return 1.0 - unlikely


def bonus_of(settings: PrioritySettings, path: str, *, sitemap: bool = False, news: bool = False) -> int:
    """The points for what is known of a URL before it was fetched: HTML above PDF above the rest (R1).

    `path` may be a whole URL: all that counts is how its path ends.
    """
    points = (settings.sitemap if sitemap else 0) + (settings.news if news else 0)
    if "?" in path:
        path = path[: path.index("?")]
    dot = path.rfind(".", -_LOOKED_AT)
    if dot < 0:
        return points
    ending = path[dot + 1 :].lower()
    if ending not in _NO_PAGES or _is_title(path):
        return points
    return points + (settings.document if ending == "pdf" else settings.other)


def _is_title(path: str) -> bool:
    """``/wiki/Node.js`` and ``/wiki/File:Map.png`` are pages about a file, as `scope` has it too."""
    return "/wiki/" in path or ":" in path[path.rfind("/") + 1 :]

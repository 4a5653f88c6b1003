"""Which limit of a crawl (S3) will be reached first, for the live view. Ending the crawl is not decided here."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from nephila.model.settings import LimitSettings
from nephila.model.summary import CrawlSnapshot

_FLAGS = ("max-pages", "max-domains", "max-total-bytes", "max-time")


class Used(NamedTuple):
    """What has been used up of each limit, in the order of their flags."""

    pages: int
    domains: int
    bytes: int
    seconds: float


class NearestLimit(NamedTuple):
    """The limit of which the largest share is used up."""

    flag: str
    share: float
    """0 to 1."""
    left_s: float | None
    """Time left to it at the mean rate up to now; None when there is no rate yet."""


def nearest_limit(limits: LimitSettings, used: Used, lately: Used | None = None) -> NearestLimit | None:
    """The limit that is nearest, None when no limit is set.

    `lately`: what of it was used in that time, where some had been used before.
    """
    most = Used(limits.max_pages, limits.max_domains, limits.max_total_bytes, limits.max_time_s)
    shares = [
        (min(1.0, amount / limit), limit - amount, gain, flag)
        for flag, amount, limit, gain in zip(_FLAGS, used, most, lately or used, strict=True)
        if limit
    ]
    if not shares:
        return None
    # With equal shares (nothing used yet) the first in the order above.
    share, left, gain, flag = max(shares, key=lambda one: one[0])
    return NearestLimit(flag, share, used.seconds * max(0, left) / gain if gain > 0 else None)


def with_limit(now: CrawlSnapshot, limits: LimitSettings, used: Used) -> CrawlSnapshot:
    """A snapshot that tells the nearest limit by what was used in all; it counts what this run has brought itself."""
    lately = Used(now.pages, now.domains, now.bytes, now.elapsed_s)
    limit = nearest_limit(limits, used._replace(seconds=now.elapsed_s), lately)
    if limit is None:
        return now
    return replace(now, limit=limit.flag, limit_share=limit.share, limit_left_s=limit.left_s)

"""Which limit of a crawl (S3) will be reached first, for the live view. Ending the crawl is not decided here."""

from __future__ import annotations

from typing import NamedTuple

from nephila.model.settings import LimitSettings


class Used(NamedTuple):
    """What has been used up of each limit."""

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


def nearest_limit(limits: LimitSettings, used: Used) -> NearestLimit | None:
    """The limit that is nearest, None when no limit is set."""
    pairs = (
        ("max-pages", used.pages, limits.max_pages),
        ("max-domains", used.domains, limits.max_domains),
        ("max-total-bytes", used.bytes, limits.max_total_bytes),
        ("max-time", used.seconds, limits.max_time_s),
    )
    shares = [(min(1.0, amount / limit), flag) for flag, amount, limit in pairs if limit]
    if not shares:
        return None
    # With equal shares (nothing used yet) the first in the order above.
    share, flag = max(shares, key=lambda pair: pair[0])
    return NearestLimit(flag, share, used.seconds * (1 - share) / share if share else None)

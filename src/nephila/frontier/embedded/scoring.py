"""The score of a URL in the store (R1): rank and who speaks for it from here, the points from `frontier.score`."""

from __future__ import annotations

from nephila.frontier import order
from nephila.frontier import rank as ranks
from nephila.frontier.referral import doublings, heard
from nephila.frontier.score import freshness_of, score
from nephila.model.task import Level

from .book import Book
from .records import Fate, HostState

NOMINAL = {Level.IMMEDIATE: 100, Level.HIGH: 75, Level.MEDIUM: 35, Level.LOW: 10}
"""The score of a URL whose class was given by hand."""


_NEW = order.Supply.NEW
"""Looked up once: until Python 3.12 a member of an enumeration costs a call each time."""


def standing_of(
    book: Book, key: bytes, host: HostState, rank: int, depth: int, bonus: int = 0, level: Level | None = None
) -> bytes:
    """Where a URL that was never fetched is to stand if it is queued now: lane, step and depth, packed.

    Where its class is by its score, that depends on little, and is remembered with the book.
    """
    if level is not None:
        return order.pack_standing(order.lane_of(_NEW, level), order.step_for(book.step, NOMINAL[level]), depth)
    like = (rank, depth, bonus, heard(book.repute, host.name, host.referrers))
    standing = None if book.totals.policies else book.standings.get(like)
    if standing is None:
        points = score_of(book, key, host, rank, depth, bonus)
        standing = order.standing_of_new(book.policy.priority, book.step, points, depth)
        if not book.totals.policies:
            book.standings[like] = standing
    return standing


def score_of(
    book: Book, key: bytes, host: HostState, rank: int, depth: int, bonus: int = 0, fate: Fate | None = None
) -> int:
    """The score of a URL. Of one that was never fetched it depends on little, and is remembered with the book."""
    like = (rank, depth, bonus, heard(book.repute, host.name, host.referrers))
    never_fetched = fate is None and not book.totals.policies
    points = book.scores.get(like) if never_fetched else None
    if points is not None:
        return points
    authority = ranks.authority(rank, book.totals.mean_rank, doublings(like[3]))
    if never_fetched:
        points = book.scores[like] = score(book.policy.priority, authority, depth, bonus)
        return points
    freshness = freshness_of(fate.history, book.wall_s) if fate is not None else 0.0
    tier = book.policy_of(book.domain(key)).tier
    return score(book.policy.priority, authority, depth, bonus, freshness, tier)

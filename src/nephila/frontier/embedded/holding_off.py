"""Why a ready host is not leased after all: asked right before every lease, so that what was decided since holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from nephila.model.outcome import DeferReason
from nephila.model.policy import DomainPolicy

from .book import Book
from .records import DomainState, HostState


class PutOff(NamedTuple):
    """A host waits as a whole."""

    reason: str
    until: int | None
    """On the timeline; None until something else changes."""


def reason_to_wait(
    book: Book, key: bytes, host: HostState, domain: DomainState, left: int | None, ahead_ms: int
) -> PutOff | None:
    """Why a host may not be asked now, None when it may; `left` is what `pages_left` says."""
    if host.free_at > book.now + ahead_ms:
        return PutOff("", host.free_at)
    if domain.paused_until > book.now:
        return PutOff(DeferReason.ERRORS, max(host.free_at, domain.paused_until))
    if book.blocks is not None and book.blocks.of_host(host.name) is not None:
        return PutOff(DeferReason.BLOCKED, None)
    if domain.policed:
        found = _by_policy(book, key, host, book.policy_of(domain), ahead_ms)
        if found is not None:
            return found
    return PutOff(DeferReason.HOST_LIMIT, None) if left == 0 and not host.robots else None


def pages_left(book: Book, host: HostState) -> int | None:
    """How many pages of a host may still be fetched in this cycle; None when there is no limit."""
    limit = book.policy.max_pages_per_host
    if not limit:
        return None
    fetched = host.fetched_in_cycle if host.cycle == book.totals.cycle else 0
    return max(0, limit - fetched)


def _by_policy(book: Book, key: bytes, host: HostState, policy: DomainPolicy, ahead_ms: int) -> PutOff | None:
    """What the policy of its domain says (R4): paused, other hours, or a longer delay than it has rested so far."""
    if policy.paused:
        return PutOff(DeferReason.PAUSED, None)
    opens_in_s = opens_in(policy, book.wall_s)
    if opens_in_s > 0:
        return PutOff(DeferReason.HOURS, max(host.free_at, book.now + opens_in_s * 1000))
    if policy.delay_s is None or not host.released_at:
        return None
    rested_at = host.released_at + max(int(policy.delay_s * 1000), book.delay_of(key, host)) + 1
    if rested_at <= book.now + ahead_ms:
        return None
    host.free_at = max(host.free_at, rested_at)
    return PutOff("", host.free_at)


def opens_in(policy: DomainPolicy, wall_s: int) -> int:
    """Seconds until a domain may be asked by the hours of its policy; 0 when it may be now."""
    if not policy.hours:
        return 0
    moment = datetime.fromtimestamp(wall_s, UTC)
    for ahead in range(25):
        hour = (moment.hour + ahead) % 24
        if any(_holds(first, last, hour) for first, last in policy.hours):
            return 0 if ahead == 0 else ahead * 3600 - moment.minute * 60 - moment.second
    return 86_400


def _holds(first: int, last: int, hour: int) -> bool:
    return first <= hour < last if first < last else hour >= first or hour < last

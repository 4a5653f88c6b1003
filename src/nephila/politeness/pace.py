"""How long a host rests between two requests (P2, P3): plain functions of what was seen last.

A host that answers slowly, with a server error, or not at all, is asked more slowly; one that says it has had enough
(429, 503) much more slowly; one that answers fast comes back towards the base delay in small steps. A 403 lengthens the
delay by as much as one fast answer shortens it: a forbidden page here and there costs nothing, a wave of them, which
is how many sites tell a crawler to go away, slows us down with each (decision 31). The site's own wish, Crawl-delay,
binds whenever it is longer, and Retry-After postpones the next request.

The base delay is the settings', or what a policy of the host's domain says (R4), higher or lower. A raised base binds
at once; under a lowered one the delay in force comes down as after a slow answer, step by step with fast ones.

What must stay true: an error never leads to a shorter delay than a good answer in its place would, however the others
fall; the delay is never under the base delay, and no answer raises it above the ceiling of its kind; a
ceiling never lowers it. Under a base delay of 0 (a crawl of one's own server) slow answers change nothing, because no
factor does, but 429 and 503 still bring a delay.
"""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from math import ceil
from typing import NamedTuple, TypeGuard

from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed
from nephila.model.noun import quick
from nephila.model.outcome import OriginRules
from nephila.model.settings import PolitenessSettings
from nephila.model.task import Pace

BUSY_FLOOR_MS = 1000
"""The least delay after 429 or 503: the default base delay (P2), since a factor cannot lift a delay of 0."""

LIGHT_BYTES = 1_000_000
"""Of an unpacked answer that cost nobody anything to speak of; one page in thousands is longer."""

LIGHT_RULES_BYTES = 100_000
"""The same of a robots.txt."""
RULES_FACTOR = 5
"""How much more it costs to read."""

_BUSY = frozenset({429, 503})
_FORBIDDEN = 403
_SERVER_ERROR = 500
_STRAINED = frozenset({FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.CONNECT})
"""Failures that may mean that the host has too much to do: they count as slow answers."""
_SECONDS = re.compile(r"([0-9]++)(?:[.,]([0-9]{1,30}+))?+")
_MAX_DIGITS = 9
"""Of a Retry-After in seconds: three decades, far over any ceiling."""
_FAR_MS = 10**12


@quick
class Observation(NamedTuple):
    """What an exchange showed of a host."""

    elapsed_ms: int
    status: int = 0
    """0 when there was no answer."""
    failure: FailureKind | None = None


def observe(answer: Answer) -> Observation:
    """What an answer, or its absence, shows of the host."""
    if isinstance(answer, FetchFailed):
        return Observation(answer.elapsed_ms, failure=answer.kind)
    return Observation(answer.elapsed_ms, status=answer.status)


def first_pace(settings: PolitenessSettings) -> Pace:
    """The pace of a host that was never asked."""
    return Pace(delay_ms=round(settings.delay_s * 1000))


def base_delay_ms(pace: Pace, settings: PolitenessSettings) -> int:
    """The least delay of a host: its policy's, where there is one (P2, R4)."""
    return pace.base_ms if pace.base_ms >= 0 else round(settings.delay_s * 1000)


def next_pace(pace: Pace, seen: Observation, settings: PolitenessSettings) -> Pace:
    """The pace after an exchange (P3)."""
    base_ms = base_delay_ms(pace, settings)
    delay_ms = max(pace.delay_ms, base_ms)
    if seen.status in _BUSY:
        wanted = max(delay_ms * settings.busy_factor, BUSY_FLOOR_MS)
        delay_ms = max(delay_ms, round(min(wanted, settings.busy_max_s * 1000)))
    elif _is_strained(seen, settings):
        delay_ms = max(delay_ms, round(min(delay_ms * settings.slow_factor, settings.slow_max_s * 1000)))
    elif seen.status == _FORBIDDEN:
        delay_ms = max(delay_ms, round(min(delay_ms * settings.forbidden_factor, settings.slow_max_s * 1000)))
    elif 0 < seen.status < _SERVER_ERROR and seen.elapsed_ms < settings.fast_below_s * 1000:
        delay_ms = max(base_ms, int(delay_ms * settings.fast_factor))
    return pace if delay_ms == pace.delay_ms else Pace(delay_ms, pace.crawl_delay_ms, pace.base_ms)


def _is_strained(seen: Observation, settings: PolitenessSettings) -> bool:
    """Whether the host may have too much to do."""
    slow = seen.elapsed_ms > settings.slow_after_s * 1000
    return seen.failure in _STRAINED or seen.status >= _SERVER_ERROR or slow


class Usual:
    """Knows the answer that changes nothing, as nearly every one does: whole, good, quick, of a host at its base delay.

    What all the other functions here would come to is then known beforehand: the host rests its delay, and no reason is
    given.
    """

    def __init__(self, settings: PolitenessSettings) -> None:
        self._base_ms = round(settings.delay_s * 1000)
        self._quick_ms = min(settings.fast_below_s, settings.slow_after_s) * 1000

    def leaves(self, answer: Answer | None, pace: Pace, rules: OriginRules | None) -> TypeGuard[Fetched]:
        """Whether an answer under these rules leaves the pace as it is, and says nothing else of it."""
        if not isinstance(answer, Fetched) or not 200 <= answer.status < 300 or answer.truncated is not None:
            return False
        if answer.elapsed_ms >= self._quick_ms or len(answer.body) > LIGHT_BYTES or pace.crawl_delay_ms:
            return False
        if rules is not None and len(rules.body) > LIGHT_RULES_BYTES:
            return False
        return pace.delay_ms == (pace.base_ms if pace.base_ms >= 0 else self._base_ms)


def with_crawl_delay(pace: Pace, crawl_delay_s: float | None) -> Pace:
    """The pace under the rules that are in force now."""
    crawl_delay_ms = round((crawl_delay_s or 0) * 1000)
    return pace if crawl_delay_ms == pace.crawl_delay_ms else Pace(pace.delay_ms, crawl_delay_ms, pace.base_ms)


def wait_ms(pace: Pace, settings: PolitenessSettings, retry_after_ms: int | None = None) -> int:
    """How long after the end of an answer the next request may leave."""
    asked_ms = min(retry_after_ms or 0, round(settings.max_retry_after_s * 1000))
    return max(pace.delay_ms, pace.crawl_delay_ms, asked_ms, base_delay_ms(pace, settings))


def heavy_ms(body_bytes: int, rules_bytes: int, settings: PolitenessSettings) -> int:
    """The least rest of a host whose answers, or whose robots.txt, are long: what it costs to read bounds how often.

    A megabyte of a page takes up to 60 ms, one of robots.txt up to half a second (it may have to be read again for any
    page), so that no host has more than about a tenth of a core (Q5).
    """
    megabytes = max(0, body_bytes - LIGHT_BYTES) + RULES_FACTOR * max(0, rules_bytes - LIGHT_RULES_BYTES)
    return round(megabytes / 1_000_000 * settings.heavy_s * 1000) if megabytes else 0


def parks(pace: Pace, settings: PolitenessSettings) -> bool:
    """Whether the Crawl-delay is so long that the host is put off as a whole, and told so."""
    return pace.crawl_delay_ms > settings.max_crawl_delay_s * 1000


def retry_after_ms(value: str, wall_ms: int) -> int | None:
    """What a Retry-After header asks for, seconds or a date (RFC 9110, 10.2.3); None when it makes no sense.

    Decimals and dates in the form of ISO 8601, which the RFC does not know and servers send, are read too: passing over
    what can be understood would be to come back too early.
    """
    value = value.strip()
    if (number := _SECONDS.fullmatch(value)) is not None:
        if len(number[1]) > _MAX_DIGITS:
            return _FAR_MS
        return int(number[1]) * 1000 + ceil(float(f"0.{number[2] or 0}") * 1000)
    try:
        at = _moment_ms(value)
    except (ValueError, OverflowError, IndexError):  # what the library lets through of bad dates
        return None
    return None if at is None else min(max(0, at - wall_ms), _FAR_MS)


def _moment_ms(value: str) -> int | None:
    """The time that a date means, without a zone in GMT, the only one that the RFC knows; None for no date."""
    date = parsedate_tz(value)
    if date is None:
        moment = datetime.fromisoformat(value)
        return ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if date[0] > MAXYEAR:
        return _FAR_MS * 1000
    return mktime_tz((*date[:9], date[9] or 0)) * 1000

"""Dates as sites write them: W3C (sitemaps, Atom) and RFC 822 with its variants (RSS). None is believed to be right."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import datetime
from email.utils import parsedate_tz
from functools import lru_cache

_TIME = r"[Tt ]+(\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?\s*([Zz]|[+-]\d\d:?(?:\d\d)?)?"
_W3C = re.compile(rf"(\d{{4}})(?:-?(\d\d)(?:-?(\d\d)(?:{_TIME})?)?)?", re.ASCII)
_LOOSE = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)(?!\d)", re.ASCII)
"""The same order with single digits or other separators: it must not be taken for a year alone."""
_EARLIEST_S = 631_152_000
"""1990: there was no page before, so such a date is a mistake."""
_LATEST_S = 4_102_444_800
"""2100. Whether a moment is in the future is for whoever has a clock to say."""


@lru_cache(maxsize=4096)
def moment_s(text: str) -> int:
    """UTC seconds of a date, at the beginning of what it does not say; 0 for what is no date."""
    text = text.strip()
    if not text or len(text) > 100:
        return 0
    if loose := _LOOSE.match(text):
        text = f"{loose[1]}-{loose[3]:0>2}-{loose[4]:0>2}{text[loose.end() :]}"
    match = _W3C.match(text)
    found = _w3c(match) if match else 0
    found = found or _rfc822(text)
    return found if _EARLIEST_S <= found < _LATEST_S else 0


def _w3c(match: re.Match[str]) -> int:
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        moment = datetime(  # noqa: DTZ001 - the zone is counted below
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), min(int(second or 0), 59)
        )
    except ValueError:
        return 0
    return timegm(moment.timetuple()) - _zone_s(zone)


def _zone_s(zone: str | None) -> int:
    if not zone or zone in {"Z", "z"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def _rfc822(text: str) -> int:
    try:
        parts = parsedate_tz(text)
        if parts is None:
            return 0
        datetime(*parts[:6])  # noqa: DTZ001 - only whether there is such a day
        return timegm((*parts[:6], 0, 1, 0)) - (parts[9] or 0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0

"""Which file a capture goes to, what files are called, and when one is full: plain functions of what is passed in.

Names sort by time and are never used twice: `prefix-YYYYMMDDhhmmss-NNNNN-wN.warc.gz`, where the serial number counts
on from the highest one in the directory and `wN` is the writing process. In the layout `domain-hour` the time is the
hour's and the registrable domain stands at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

WARC_SUFFIX = ".warc.gz"
INDEX_SUFFIX = ".cdxj"
HOUR_MS = 3_600_000

MAX_DOMAIN_IN_NAME = 100
"""File systems take 255 bytes of a name; a longer domain is cut, its serial number still tells it apart."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")
_SERIAL = re.compile(r"-\d{14}-(\d{5,})-w(\d+)(?:-|\.warc)")


class SegmentKey(NamedTuple):
    """What the captures of one file share. Rolling: nothing. domain-hour: domain and hour."""

    domain: str = ""
    hour: int = 0


@dataclass(frozen=True, slots=True)
class RollLimits:
    """When a file is full."""

    max_bytes: int
    max_age_ms: int

    def reached(self, end: int, more: int, age_ms: int) -> bool:
        """Whether a file of `end` bytes should be closed before `more` are written. A new one never is."""
        return end > 0 and (end + more > self.max_bytes or age_ms >= self.max_age_ms)


def segment_name(prefix: str, key: SegmentKey, at: int, serial: int, writer: int) -> str:
    """The name of a new file; `at` in UTC milliseconds."""
    moment = datetime.fromtimestamp((key.hour * HOUR_MS if key.domain else at) / 1000, UTC)
    domain = "-" + _NOT_IN_NAMES.sub("_", key.domain.lower())[:MAX_DOMAIN_IN_NAME] if key.domain else ""
    return f"{prefix}-{moment:%Y%m%d%H%M%S}-{serial:05d}-w{writer}{domain}{WARC_SUFFIX}"


def next_serial(names: Iterable[str], writer: int) -> int:
    """One more than the highest serial number of this writer."""
    found = (_SERIAL.search(name) for name in names if name.endswith(WARC_SUFFIX))
    return max((int(match[1]) + 1 for match in found if match and int(match[2]) == writer), default=0)


def writer_of(segment: str) -> int:
    """The process that has written a file; 0 where its name does not say."""
    found = _SERIAL.search(segment)
    return int(found[2]) if found else 0


def index_name(segment: str) -> str:
    """The CDXJ file beside a WARC file."""
    return segment.removesuffix(WARC_SUFFIX) + INDEX_SUFFIX

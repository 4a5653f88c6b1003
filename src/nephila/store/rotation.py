"""What files are called, what their names tell, and when one is full: plain functions of what is passed in.

Names are never used twice. They end with a tail, `-YYYYMMDDhhmmss-NNNNN-wN.warc.gz` (or `.warc.zst`): when the file was
begun, a serial number that counts on from the highest one there is, and the writing process. What stands before it is
the layout's affair (`layout`); in that of old, `domain-hour`, the registrable domain stands behind it. A name may have
folders in it, with slashes; then it is read from its end, for whatever is before the tail may come from a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

WARC_SUFFIX = ".warc.gz"
ZSTD_SUFFIX = ".warc.zst"
WARC_SUFFIXES = (WARC_SUFFIX, ZSTD_SUFFIX)
INDEX_SUFFIX = ".cdxj"
HOUR_MS = 3_600_000

MAX_NAME_BYTES = 320
"""Of a name with its folders: what a store of objects takes of a key beside the prefix (`place`)."""
MAX_PART_BYTES = 255
"""Of a folder, or of what is in the last one: what file systems take."""
LONGEST_SERIAL = 12
LONGEST_WRITER = 12
"""Digits. A fleet counts its writers on for ever."""

_TAIL = r"-(?P<at>\d{14})-(?P<serial>\d{5,})-w(?P<writer>\d+)"
_FLAT = re.compile(rf"{_TAIL}(?:-|\.warc)")
_IN_FOLDERS = re.compile(rf"{_TAIL}\.warc\.(?:gz|zst)\Z")


@dataclass(frozen=True, slots=True)
class RollLimits:
    """When a file is full."""

    max_bytes: int
    max_age_ms: int

    def reached(self, end: int, more: int, age_ms: int) -> bool:
        """Whether a file of `end` bytes should be closed before `more` are written. A new one never is."""
        return end > 0 and (end + more > self.max_bytes or age_ms >= self.max_age_ms)


def tail_of_name(at: int, serial: int, writer: int) -> str:
    """What makes a name the only one of its kind; `at` in UTC milliseconds."""
    return f"-{datetime.fromtimestamp(at / 1000, UTC):%Y%m%d%H%M%S}-{serial:05d}-w{writer}"


def longest_tail() -> int:
    """Characters of the longest tail that is ever written, with what a draft of a file adds."""
    return len(f"-{'':14}-{'':{LONGEST_SERIAL}}-w{'':{LONGEST_WRITER}}{ZSTD_SUFFIX}.purge")


def next_serial(names: Iterable[str], writer: int) -> int:
    """One more than the highest serial number of this writer."""
    found = (_told(name) for name in names if name.endswith(WARC_SUFFIXES))
    return max((int(match["serial"]) + 1 for match in found if match and int(match["writer"]) == writer), default=0)


def writer_of(segment: str) -> int:
    """The process that has written a file; 0 where its name does not say."""
    found = _told(segment)
    return int(found["writer"]) if found else 0


def begun_at(segment: str) -> int | None:
    """When a file was begun, UTC milliseconds; None where its name does not say."""
    found = _told(segment)
    if found is None:
        return None
    try:
        moment = datetime.strptime(found["at"], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp() * 1000)


def index_name(segment: str) -> str:
    """The CDXJ file beside a WARC file."""
    return without_suffix(segment) + INDEX_SUFFIX


def without_suffix(segment: str) -> str:
    """The name of a WARC file but for what says how it is compressed."""
    return segment.removesuffix(WARC_SUFFIX).removesuffix(ZSTD_SUFFIX)


def _told(name: str) -> re.Match[str] | None:
    return _IN_FOLDERS.search(name) if "/" in name else _FLAT.search(name)

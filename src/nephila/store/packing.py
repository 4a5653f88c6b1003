"""How records are compressed: each on its own, by gzip (`member`) or by Zstandard (`frame`).

A file is all of one kind, told by its suffix; an archive may hold both, from runs with other settings. Whoever reads
goes by the bytes (`reader`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .frame import frame, quick_frame, raw_frame
from .member import deflated, quickly_deflated, stored
from .rotation import WARC_SUFFIX, ZSTD_SUFFIX


class Packing(NamedTuple):
    """A way to compress records."""

    suffix: str
    """Of files."""
    packed: Callable[[bytes], bytes]
    quick: Callable[[bytes], bytes]
    """For requests and metadata, some 5 KB a page."""
    kept: Callable[[bytes], bytes]
    """For what was compressed before: as it is."""


GZIP = Packing(WARC_SUFFIX, deflated, quickly_deflated, stored)
ZSTD = Packing(ZSTD_SUFFIX, frame, quick_frame, raw_frame)
_BY_NAME = {"gzip": GZIP, "zstd": ZSTD}


def packing_named(name: str) -> Packing:
    """As the settings call it."""
    return _BY_NAME[name]


def packing_of(segment: str) -> Packing:
    """That of a file, by its name."""
    return ZSTD if segment.endswith(ZSTD_SUFFIX) else GZIP

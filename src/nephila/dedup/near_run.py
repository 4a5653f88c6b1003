"""Runs: packed, immutable tables of fingerprints, in which all within a few bits of a given one are found (D3).

Why tables. A fingerprint has 64 bits, four *blocks* of 16. If two fingerprints differ in at most 3 bits, one of their
blocks is the same in both; so four tables, each sorted by another block, need to be asked at one place each. If they
differ in up to 7 bits and no block is the same, every block differs in at least one bit, and then at least
``8 - distance`` blocks differ in exactly one (with fewer such blocks the others, two bits each at least, would add up
to more). So it is enough to ask, too, for the 16 one-bit neighbours of the block in any ``distance - 3`` of the
tables: of those, at least one is such a block. For distance 6 that makes 4 + 3 * 16 = 52 places instead of 68, and
nothing is missed.

Why runs, and not a bucket of a database for each place. A new page belongs to four places at random. In a B-tree each
costs a page of 4 KB: 175 us for one entry among a million, as measured with LMDB. Runs are written in one go, in order,
and merged into larger ones (`near_runs`): a fraction of a microsecond. A place in a run is found without a search, by a
directory of the leading bits, and its fingerprints lie side by side: 52 places are read in a few microseconds.

Layout, in the machine's own byte order, every part aligned to 8 bytes:

    magic (8), entries (4), bits (4)
    four times: directory, 2 ** bits + 1 numbers of 4 bytes: where the entries with these leading bits begin
                fingerprints, rotated left by 0, 16, 32 or 48 bits and sorted by (fingerprint, id), 8 bytes each
                ids, 4 bytes each, in the same order

*Packed entries*, not yet in a run, are fingerprint (8) and id (4), in any order. The work is done in C where the
extension was built (`native/near.c`), else by `near_twin`; both write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from struct import Struct

from nephila.native import AVAILABLE, native

from . import near_twin
from .near_twin import BLOCK_BITS, HEADER, MAGIC, TABLES, directory_bits

Bytes = bytes | bytearray | memoryview | mmap

FARTHEST = 7
"""The largest distance that four tables answer for."""

_entry = Struct("=QI")
ENTRY_BYTES = _entry.size
pack_entry = _entry.pack
iter_entries = _entry.iter_unpack

find_in_runs = native.near_find if AVAILABLE else near_twin.find_in_runs
"""(runs, fingerprint, distance): pairs of id and distance, each entry once; distance at most `FARTHEST`."""
scan_entries = native.near_scan if AVAILABLE else near_twin.scan_entries
"""(packed entries, fingerprint, distance): the same by looking at every one."""
_merge = native.near_merge if AVAILABLE else near_twin.merge


def run_bytes(entries: int) -> int:
    """The size of a run."""
    bits = directory_bits(entries)
    return HEADER + TABLES * (_padded(4 * ((1 << bits) + 1)) + 8 * entries + _padded(4 * entries))


def merge_into(out: memoryview | bytearray | mmap, runs: Sequence[Bytes], entries: bytes | bytearray) -> None:
    """Write one run that holds what these runs and packed entries hold; `out` has room for exactly that."""
    _merge(out, runs, entries)


def is_run(data: Bytes, entries: int) -> bool:
    """Whether this may be the run of so many entries that somebody wrote, whole."""
    size = run_bytes(entries)
    head = bytes(memoryview(data)[:HEADER]) if len(data) == size else b""
    return head == near_twin.header(entries)


def _padded(size: int) -> int:
    return (size + 7) & ~7


__all__ = [
    "BLOCK_BITS",
    "ENTRY_BYTES",
    "FARTHEST",
    "MAGIC",
    "TABLES",
    "Bytes",
    "find_in_runs",
    "is_run",
    "iter_entries",
    "merge_into",
    "pack_entry",
    "run_bytes",
    "scan_entries",
]

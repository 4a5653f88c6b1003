"""What `native/near.c` does, in Python: for machines without a compiler, and to compare it with.

The layout and the reasons are in `near_run`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from mmap import mmap
from struct import Struct

MAGIC = 0x314E_5552_4148_504E
TABLES = 4
BLOCK_BITS = 16
_BLOCK = (1 << BLOCK_BITS) - 1
_ALL = (1 << 64) - 1

_header = Struct("=QII")
HEADER = _header.size
_entry = Struct("=QI")

Bytes = bytes | bytearray | memoryview | mmap
Table = tuple[memoryview, memoryview, memoryview]
"""Directory, fingerprints, ids."""


def header(entries: int) -> bytes:
    """How a run of so many entries begins."""
    return _header.pack(MAGIC, entries, directory_bits(entries))


def directory_bits(entries: int) -> int:
    """Leading bits that the directory of a run tells apart: some 16 to 32 entries under each."""
    return min(max(entries.bit_length() - 5, 0), BLOCK_BITS)


def rotated(fingerprint: int, table: int) -> int:
    """The fingerprint as a table has it: the table's block leads."""
    shift = BLOCK_BITS * table
    return (fingerprint << shift | fingerprint >> (64 - shift)) & _ALL


def find_in_runs(runs: Sequence[Bytes], simhash: int, distance: int) -> list[tuple[int, int]]:
    """As `near_run`."""
    return [match for run in runs for match in _find(memoryview(run), simhash, _checked(distance))]


def scan_entries(entries: Bytes, simhash: int, distance: int) -> list[tuple[int, int]]:
    """As `near_run`."""
    _checked(distance)
    whole = memoryview(entries)[: len(entries) // _entry.size * _entry.size]
    found = (((hashed ^ simhash).bit_count(), number) for hashed, number in _entry.iter_unpack(whole))
    return [(number, apart) for apart, number in found if apart <= distance]


def merge(out: bytearray | memoryview | mmap, runs: Sequence[Bytes], entries: Bytes) -> None:
    """As `near_run.merge_into`. Sorts anew: half-sorted input is what Python's sort is quick with."""
    sources = [_tables(memoryview(run)) for run in runs]
    new = list(_entry.iter_unpack(memoryview(entries)))
    total = len(new) + sum(len(tables[0][1]) for tables in sources)
    bits = directory_bits(total)
    parts = [header(total)]
    for table in range(TABLES):
        pairs = [pair for tables in sources for pair in zip(tables[table][1], tables[table][2], strict=True)]
        pairs += [(rotated(fingerprint, table), number) for fingerprint, number in new]
        pairs.sort()
        directory = array("I", [0]) * ((1 << bits) + 1)
        for fingerprint, _ in pairs:
            directory[(fingerprint >> (64 - bits)) + 1] += 1
        for slot in range(1 << bits):
            directory[slot + 1] += directory[slot]
        parts += map(_padded, (directory.tobytes(), *_columns(pairs)))
    written = b"".join(parts)
    if len(written) != len(out):
        raise ValueError("the room for the merged run is not of its size")
    out[:] = written


def _columns(pairs: list[tuple[int, int]]) -> tuple[bytes, bytes]:
    return array("Q", [pair[0] for pair in pairs]).tobytes(), array("I", [pair[1] for pair in pairs]).tobytes()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _checked(distance: int) -> int:
    if not 0 <= distance <= 7:
        raise ValueError("four tables answer for distances 0 to 7")
    return distance


def _tables(run: memoryview) -> list[Table]:
    """The parts of a run. Raises ValueError where the bytes are none."""
    magic, entries, bits = _header.unpack_from(run) if len(run) >= HEADER else (0, 0, 0)
    directory_bytes = -(-4 * ((1 << bits) + 1) // 8) * 8 if bits <= BLOCK_BITS else 0
    each = directory_bytes + 8 * entries + -(-4 * entries // 8) * 8
    if magic != MAGIC or bits != directory_bits(entries) or len(run) != HEADER + TABLES * each:
        raise ValueError("not a run of fingerprints")
    tables = []
    for at in range(HEADER, len(run), each):
        hashes = at + directory_bytes
        directory = run[at : at + 4 * ((1 << bits) + 1)].cast("I")
        ids = hashes + 8 * entries
        tables.append((directory, run[hashes:ids].cast("Q"), run[ids : ids + 4 * entries].cast("I")))
    return tables


def _find(run: memoryview, simhash: int, distance: int) -> Iterator[tuple[int, int]]:
    entries, bits = _header.unpack_from(run)[1:] if len(run) >= HEADER else (0, 0)
    exact, near = min(distance + 1, TABLES), max(0, distance - (TABLES - 1))
    tables = _tables(run)
    for table in range(exact):
        directory, fingerprints, ids = tables[table]
        wanted = rotated(simhash, table)
        own = wanted >> (64 - bits) if bits else 0
        for slot in (own, *(own ^ 1 << bit for bit in range(bits if table < near else 0))):
            begin, end = directory[slot], min(directory[slot + 1], entries)
            for at, fingerprint in enumerate(fingerprints[begin:end], begin):
                apart = fingerprint ^ wanted
                if apart.bit_count() <= distance and _answers(rotated(apart, TABLES - table), table, near):
                    yield ids[at], apart.bit_count()


def _answers(apart: int, table: int, near: int) -> bool:
    """Whether this table is the first one that finds a pair which differs in these bits: each is told once."""
    for one in range(table + 1):
        block = apart >> (64 - BLOCK_BITS * (one + 1)) & _BLOCK
        if block.bit_count() <= (one < near):
            return one == table
    return False

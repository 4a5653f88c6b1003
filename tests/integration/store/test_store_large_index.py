"""The index of a segment with very many captures."""

import random
import tracemalloc
from pathlib import Path

from nephila.model.record import SegmentId
from nephila.store import LocalDisk, SqliteCatalogue
from nephila.store.cdxj import cdxj_line, write_index
from nephila.testing.contracts.catalogue import SEGMENT, sample_row

CAPTURES = 50_000
PEAK_BYTES = 10_000_000
"""Of Python's objects: all lines would be 17 MB, all rows 100."""


def test_a_large_segment_is_indexed_with_little_memory(tmp_path: Path) -> None:
    """Q3, W1: rows and lines of a segment are never in memory together, and the index is the same as if they were."""
    numbers = list(range(CAPTURES))
    random.Random(5).shuffle(numbers)
    rows = [sample_row(place, f"https://h{number % 97}.example/p/{number}") for place, number in enumerate(numbers)]
    expected = sorted(map(cdxj_line, rows))
    catalogue = SqliteCatalogue(tmp_path / "catalogue.sqlite")
    catalogue.record(rows, ())
    del rows
    (tmp_path / SEGMENT).touch()
    tracemalloc.start()
    try:
        write_index(LocalDisk(), tmp_path, SegmentId(SEGMENT), catalogue.captures(SEGMENT))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        catalogue.close()
    (index,) = tmp_path.glob("*.cdxj*")
    assert index.read_text(encoding="ascii") == "".join(expected)
    assert peak < PEAK_BYTES

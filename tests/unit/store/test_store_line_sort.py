"""Sorting with little memory."""

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.engines.disk import LocalDisk
from nephila.store.line_sort import LineSort
from nephila.testing.disk import ForgetfulDisk

SPILL = Path("/archive/index.sort")
LINES = st.lists(st.binary(max_size=200).map(lambda text: text.replace(b"\n", b" ") + b"\n"), max_size=200)


def _sorted(disk: ForgetfulDisk, lines: list[bytes], held_bytes: int) -> bytes:
    with LineSort(disk, SPILL, held_bytes) as sort:
        for line in lines:
            sort.add(line)
        return b"".join(sort.blocks())


@given(lines=LINES, held_bytes=st.integers(1, 5_000))
def test_lines_come_back_in_order_however_few_are_held(lines: list[bytes], held_bytes: int) -> None:
    """W1, F8: the same bytes as sorting all of them at once, repeated lines included."""
    disk = ForgetfulDisk()
    assert _sorted(disk, lines, held_bytes) == b"".join(sorted(lines))
    assert disk.names(SPILL.parent) == []
    assert disk.open_files == 0


def test_few_lines_never_touch_the_disk() -> None:
    """W1: a small segment costs no file."""
    disk = ForgetfulDisk(capacity=0)
    assert _sorted(disk, [b"b\n", b"a\n"], 1_000) == b"a\nb\n"


def test_what_another_left_is_removed() -> None:
    """W1, C1: a process that was killed while it sorted leaves lines that must not be taken for ours."""
    disk = ForgetfulDisk()
    disk.overwrite(SPILL, b"old\n")
    assert _sorted(disk, [b"b\n", b"a\n"], 1) == b"a\nb\n"
    assert disk.names(SPILL.parent) == []


def test_a_full_disk_is_told_and_given_its_room_back() -> None:
    """W1: what was laid down is worth nothing without the rest."""
    disk = ForgetfulDisk(capacity=5_000)
    with pytest.raises(OSError, match="No space left"):
        _sorted(disk, [b"%06d\n" % number for number in range(1_000)], 500)
    assert disk.room() == 5_000
    assert disk.open_files == 0


def test_lines_that_are_lost_are_missed() -> None:
    """W1: an index without some of its lines would be a wrong one."""
    disk = ForgetfulDisk()
    with LineSort(disk, SPILL, 1) as sort:
        sort.add(b"a\n")
        disk.open(SPILL).truncate(0)
        with pytest.raises(OSError, match="gone"):
            list(sort.blocks())


def test_memory_is_bounded_by_what_may_be_held(tmp_path: Path) -> None:
    """Q3, F8: ten times the lines that may be held take no more than twice the room, on the way in and out."""
    held = 1_000_000
    draw = random.Random(7)
    tracemalloc.start()
    try:
        with LineSort(LocalDisk(), tmp_path / "index.sort", held) as sort:
            for _ in range(33_000):
                sort.add(draw.randbytes(130).hex().encode() + b"\n")
            written = sum(len(block) for block in sort.blocks())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written == 33_000 * 261
    assert peak < 2 * held

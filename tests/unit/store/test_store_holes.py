"""Archive files in a store of objects whose tombstones take no room."""

from __future__ import annotations

import random
from hashlib import sha256
from pathlib import Path

import pytest

from nephila.interfaces.objects import ObjectBody
from nephila.model.record import SegmentId
from nephila.model.settings import ArchiveSettings
from nephila.store.holes import HoledFile, holed_file, write_holed
from nephila.store.readback import units
from nephila.store.reader import WarcReader
from nephila.store.remote_disk import opened
from nephila.store.rewriting import Rewriting, write_draft
from nephila.store.tombstone import is_tombstone, packed, unpacked
from nephila.testing.contracts.archive import assorted_captures, fetched_sample, page_capture
from nephila.testing.objects import SimulatedObjectStore, Weather

from .conftest import DIRECTORY, ArchiveWorld

KEY = "prefix/file"
OUT = Path("/made/out")


class Packed:
    """An archive file of which some captures were taken out, and the object that stands for it."""

    def __init__(self, world: ArchiveWorld, compression: str, gone: slice) -> None:
        archive = world.open(ArchiveSettings(compression=compression))
        big = page_capture(900, fetched_sample("https://spiders.example/big", random.Random(3).randbytes(300_000)))
        offsets = [archive.append(capture).ref.offset for capture in (*assorted_captures(), big, big)]
        archive.close()
        [self.segment] = archive.segments()
        self.world, self.offsets = world, offsets
        self.gone = set(offsets[gone])
        self.file = self._rewritten(self.segment, self.gone)
        self.store = SimulatedObjectStore(weather=Weather(latency_s=0.0, bytes_per_s=1e12))
        self.told_at = self.pack(self.gone)

    def _rewritten(self, segment: SegmentId, gone: set[int]) -> bytes:
        disk, work = self.world.disk, Rewriting(segment, gone)
        draft = write_draft(disk, DIRECTORY, work, takedown="retention", at=1, mentions=lambda _id, _url: False)
        if draft is None:
            return disk.contents(DIRECTORY / segment)
        disk.rename(DIRECTORY / draft, DIRECTORY / segment)
        return disk.contents(DIRECTORY / segment)

    def pack(self, offsets: set[int]) -> int:
        disk = self.world.disk
        disk.make_folder(OUT.parent)
        disk.remove(OUT)
        out = disk.create(OUT)
        told_at = write_holed(disk.open(DIRECTORY / self.segment), out, self.segment, offsets, 1)
        self.object = disk.contents(OUT)
        self.store.objects[KEY] = (self.object, sha256(self.object).hexdigest())
        self.store.holes[KEY] = told_at
        return told_at


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("gone", [slice(2, 9, 3), slice(0, None), slice(-1, None), slice(0, 2)], ids=str)
def test_an_object_with_holes_is_read_as_the_file_that_it_stands_for(
    world: ArchiveWorld, compression: str, gone: slice
) -> None:
    """W5, K1: every byte, from wherever it is read, and as long; the object is much smaller."""
    made = Packed(world, compression, gone)
    file = opened(made.store, KEY)
    assert isinstance(file, HoledFile)
    assert file.size() == len(made.file)
    assert file.read_at(0, len(made.file) + 10) == made.file
    draw = random.Random(5)
    for _ in range(200):
        start, size = draw.randrange(len(made.file) + 5), draw.randrange(3_000)
        assert file.read_at(start, size) == made.file[start : start + size]
    assert set(file.tombstones) <= made.gone
    saved = sum(hole.length for hole in file._holes)
    assert len(made.object) < len(made.file) - saved + 1_200 * len(file.tombstones)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_to_everybody_else_it_is_an_archive_like_any_other(world: ArchiveWorld, compression: str) -> None:
    """W1, W5: the same records, where the index says; what tells of the holes stands for no capture."""
    made = Packed(world, compression, slice(1, 9, 2))
    file = opened(made.store, KEY)
    assert isinstance(file, HoledFile)
    whole = list(units(WarcReader(made.world.disk.open(DIRECTORY / made.segment), made.segment)))
    kept = list(units(WarcReader(made.world.disk.open(OUT), made.segment)))
    assert is_tombstone(kept[-1][0])
    for was, now in zip(whole, kept[:-1], strict=True):
        assert [(one.record_id, one.block) for one in was] == [(one.record_id, one.block) for one in now]
        assert [file.place(one.offset) for one in was] == [one.offset for one in now]


def test_what_is_taken_out_later_is_packed_with_the_rest(world: ArchiveWorld) -> None:
    """W5: a second time; and what was packed before may stay as it is."""
    made = Packed(world, "gzip", slice(3, 6))
    first = len(made.object)
    made.file = made._rewritten(made.segment, set(made.offsets[-2:]))
    made.pack({*made.gone, *made.offsets[-2:]})
    assert len(made.object) < first - 100_000
    assert opened(made.store, KEY).read_at(0, len(made.file)) == made.file


def test_without_anything_taken_out_there_are_no_holes(world: ArchiveWorld) -> None:
    """W5: the object is the file."""
    made = Packed(world, "gzip", slice(0, 0))
    assert made.pack(set(made.offsets)) == 0
    assert made.object == made.file


def test_an_object_that_lies_about_its_holes_is_told(world: ArchiveWorld) -> None:
    """Q5, K1: somebody may have changed it; no crash, and no more memory than the file has bytes."""
    made = Packed(world, "gzip", slice(1, 9, 2))
    for told_at in (1, made.told_at - 1, made.told_at + 1, len(made.object) + 5):
        with pytest.raises(OSError, match="holes cannot be read"):
            holed_file(made.store, KEY, told_at)
    file = opened(made.store, KEY)
    assert isinstance(file, HoledFile)
    hole = file._holes[0]
    wrong = bytearray(made.object)
    wrong[hole.kept_at + hole.kept // 2] ^= 0xFF
    made.store.objects[KEY] = (bytes(wrong), "")
    with pytest.raises(OSError, match="is not what it was"):
        opened(made.store, KEY).read_at(0, len(made.file))


def test_what_is_packed_comes_back_in_as_many_bytes_or_not_at_all(world: ArchiveWorld) -> None:
    """W5: and nothing is unpacked that is longer than what was there."""
    made = Packed(world, "gzip", slice(-1, None))
    [offset] = made.gone
    was = made.file[offset:]
    assert unpacked(packed(was), len(was)) == was
    for wrong in (len(was) - 1, len(was) // 2, len(was) + 1):
        with pytest.raises(ValueError, match=r"does not make|more than was there"):
            unpacked(packed(was), wrong)
    body = ObjectBody(1, "", lambda _offset, _size: b"x")
    assert body.holes == 0

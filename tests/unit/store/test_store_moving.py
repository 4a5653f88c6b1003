"""Captures on their way into another archive."""

from functools import partial
from pathlib import Path

import pytest

from nephila.model.errors import StorageError
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, index_name
from nephila.store.moving import MOVED_FROM, Elsewhere
from nephila.store.reader import WarcReader
from nephila.testing.contracts.archive import assorted_captures, row_of
from nephila.testing.disk import ForgetfulDisk

from .conftest import DIRECTORY, ArchiveWorld

TARGET = Path("/old/archives/elsewhere")


def _records(disk: ForgetfulDisk, name: str) -> list[tuple[str, bytes]]:
    return [(one.record_id, one.block) for one in WarcReader(disk.open(TARGET / name), name) if one.kind != "warcinfo"]


@pytest.mark.parametrize("settings", [{}, {"layout": "key"}, {"compression": "zstd"}], ids=["rolling", "key", "zstd"])
def test_every_kind_of_capture_is_moved_byte_for_byte(world: ArchiveWorld, settings: dict[str, str]) -> None:
    """W5: durable when it returns, under the name that it had, with an index; a second time nothing is copied."""
    archive = world.open(ArchiveSettings(**settings))
    written = [(capture, archive.append(capture)) for capture in assorted_captures()]
    archive.close()
    elsewhere = Elsewhere(TARGET, world.disk, CrawlIdentity(7))
    for segment in archive.segments():
        rows = [row_of(capture, stored) for capture, stored in written if stored.ref.segment == segment]
        offsets = [row.offset for row in rows]
        source = world.disk.open(DIRECTORY / segment)
        assert elsewhere.take(source, segment, offsets, partial(iter, rows), 1) == len(rows)
        assert elsewhere.take(source, segment, offsets, partial(iter, rows), 1) == 0
    segments = archive.segments()
    after = world.disk.lose_power()
    assert [name for name in after.names(TARGET) if not name.endswith(".cdxj")] == segments
    assert len(after.names(TARGET)) == 2 * len(segments)
    for segment in segments:
        source = WarcReader(after.open(DIRECTORY / segment), segment)
        assert _records(after, segment) == [(one.record_id, one.block) for one in source if one.kind != "warcinfo"]
        first = next(iter(WarcReader(after.open(TARGET / segment), segment)))
        assert f"{MOVED_FROM}: {segment}".encode() in first.block
        assert b"software: " in first.block


def test_what_comes_later_from_the_same_file_has_a_file_of_its_own(world: ArchiveWorld) -> None:
    """W5: no archive grows; what is there is known by the ids of its records."""
    archive = world.open()
    written = [(capture, archive.append(capture)) for capture in assorted_captures()]
    archive.close()
    [segment] = archive.segments()
    rows = [row_of(capture, stored) for capture, stored in written]
    offsets = [row.offset for row in rows]
    elsewhere = Elsewhere(TARGET, world.disk, CrawlIdentity(7))
    assert elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets[:2], lambda: rows, 1) == 2
    assert elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets, lambda: rows, 1) == len(rows) - 2
    second = segment.replace(".warc.gz", ".2.warc.gz")
    assert sorted(name for name in world.disk.names(TARGET) if name.endswith(".warc.gz")) == sorted([segment, second])
    ids = [record_id for name in (segment, second) for record_id, _ in _records(world.disk, name)]
    assert len(ids) == len(set(ids))


def test_an_index_that_is_missing_is_written(world: ArchiveWorld) -> None:
    """W5: who was killed between the copy and its index copies nothing again, and leaves no file without one."""
    archive = world.open()
    written = [(capture, archive.append(capture)) for capture in assorted_captures()]
    archive.close()
    [segment] = archive.segments()
    rows = [row_of(capture, stored) for capture, stored in written]
    offsets = [row.offset for row in rows]
    elsewhere = Elsewhere(TARGET, world.disk, CrawlIdentity(7))
    elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets, lambda: rows, 1)
    index = TARGET / index_name(segment)
    before = world.disk.contents(index)
    world.disk.remove(index)
    assert elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets, lambda: rows, 1) == 0
    assert world.disk.contents(index) == before
    assert before


def test_a_disk_that_is_full_leaves_nothing_that_counts(world: ArchiveWorld) -> None:
    """W5: told in a sentence; when there is room, all of it is copied."""
    archive = world.open()
    written = [(capture, archive.append(capture)) for capture in assorted_captures()]
    archive.close()
    [segment] = archive.segments()
    rows = [row_of(capture, stored) for capture, stored in written]
    offsets = [row.offset for row in rows]
    elsewhere = Elsewhere(TARGET, world.disk, CrawlIdentity(7))
    world.disk.capacity = world.disk.used() + 2_000
    with pytest.raises(StorageError, match="no space left") as caught:
        elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets, lambda: rows, 1)
    assert "nothing was taken out" in caught.value.hint
    assert [name for name in world.disk.names(TARGET) if not name.endswith(".part")] == []
    world.disk.capacity = None
    assert elsewhere.take(world.disk.open(DIRECTORY / segment), segment, offsets, lambda: rows, 1) == len(rows)

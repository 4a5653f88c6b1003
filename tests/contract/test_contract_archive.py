"""The archive's promises, on a real directory, on the simulated disk, and in a store of objects."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from simulation import Recorder

from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.model.settings import ArchiveSettings, SpoolSettings
from nephila.node.shipping import Shipper
from nephila.store import ArchivePlace, CrawlIdentity, LocalArchive, LocalDisk, SpooledArchive
from nephila.store.trail import Trail
from nephila.store.trail_line import read_line
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import CHECKS, OpenArchive, decode_sample, page_capture
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.loop import run_virtual
from nephila.testing.objects import SimulatedObjectStore

LAYOUTS = [
    pytest.param(ArchiveSettings(), id="rolling"),
    pytest.param(ArchiveSettings(layout="domain-hour"), id="domain-hour"),
    pytest.param(ArchiveSettings(layout="key"), id="a-file-an-answer"),
    pytest.param(ArchiveSettings(layout="key", key="{date}/{domain}/{hour}.warc.gz"), id="by-another-key"),
    pytest.param(ArchiveSettings(compression="zstd"), id="zstd"),
    pytest.param(ArchiveSettings(layout="key", compression="zstd"), id="zstd-by-key"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("medium", [LocalDisk, ForgetfulDisk])
def test_local_archive_keeps_the_contract(
    check: Callable[[OpenArchive], None],
    layout: ArchiveSettings,
    medium: type[LocalDisk] | type[ForgetfulDisk],
    tmp_path: Path,
) -> None:
    """W1, F10: every check of the suite, whatever is underneath."""
    disk, clock = medium(), VirtualClock()

    def open_archive() -> LocalArchive:
        return LocalArchive(
            tmp_path, layout, clock, CrawlIdentity(secret=7), disk, decode_sample, lambda host: "one.example"
        )

    check(open_archive)


class Shipped(SpooledArchive):
    """An archive in a store of objects that is never behind: whatever is synced is closed, uploaded and removed."""

    def __init__(
        self, spool: LocalArchive, directory: Path, disk: ForgetfulDisk, objects: SimulatedObjectStore
    ) -> None:
        place = ArchivePlace("bucket", "prefix")
        super().__init__(spool, directory, disk, objects, place, decode_sample)
        self._given = (objects, place)

    def sync(self) -> list[tuple[SegmentId, int]]:
        super().close()
        run_virtual(self._ship())
        return self.take_acknowledged()

    async def _ship(self) -> None:
        objects, place = self._given
        shipper = Shipper(self, objects, place, SpoolSettings(), 2, VirtualClock(), Recorder(), random.Random(1))
        for segment in self.take_closed():
            shipper.ship(segment)
            while shipper.is_busy:
                await shipper.progress(1.0)
            self.remove(segment)
        await shipper.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arrived", [False, True], ids=["in-the-spool", "in-the-store"])
def test_an_archive_in_a_store_of_objects_keeps_the_contract(
    check: Callable[[OpenArchive], None], layout: ArchiveSettings, arrived: bool, tmp_path: Path
) -> None:
    """W2, W1, F10: while captures lie in the spool, and when they are read from the store."""
    disk, clock, objects = ForgetfulDisk(), VirtualClock(), SimulatedObjectStore()

    def open_archive() -> SpooledArchive:
        identity = CrawlIdentity(secret=7)
        names = [key.removeprefix("prefix/") for key in objects.objects]
        spool = LocalArchive(tmp_path, layout, clock, identity, disk, decode_sample, lambda host: "one.example")
        spool.count_on_from(names)
        archive = Shipped(spool, tmp_path, disk, objects)
        return archive if arrived else Synced(archive)

    check(open_archive)
    if arrived:
        assert all(key.startswith("prefix/") for key in objects.objects)
    else:
        assert objects.objects == {}


class Synced(SpooledArchive):
    """The same seen from the spool: told is what is safe there."""

    def __init__(self, archive: Shipped) -> None:
        vars(self).update(vars(archive))

    def sync(self) -> list[tuple[SegmentId, int]]:
        return self.sync_spool()


def test_what_an_upload_syncs_is_told_to_the_books_all_the_same(tmp_path: Path) -> None:
    """W2, F10: a segment is synced and sealed before it leaves; the books learn of it with the next sync."""
    disk, identity = ForgetfulDisk(), CrawlIdentity(secret=7)
    spool = LocalArchive(
        tmp_path, ArchiveSettings(), VirtualClock(), identity, disk, decode_sample, lambda host: "one.example"
    )
    spool.trail = Trail(tmp_path, 0, disk, VirtualClock(), archives=tmp_path)
    place = ArchivePlace("bucket", "prefix")
    archive = SpooledArchive(spool, tmp_path, disk, SimulatedObjectStore(), place, decode_sample)
    stored = archive.append(page_capture(1))
    body = archive.body(stored.ref.segment)
    assert archive.sync_spool() == [(stored.ref.segment, body.size)]
    assert archive.sync_spool() == []


def test_a_file_that_cannot_be_read_while_it_leaves_is_not_the_store_s_fault(tmp_path: Path) -> None:
    """W2, F10: what the disk refuses is told as such, and not waited for as if the store were away."""
    disk, identity = ForgetfulDisk(), CrawlIdentity(secret=7)
    spool = LocalArchive(
        tmp_path, ArchiveSettings(), VirtualClock(), identity, disk, decode_sample, lambda host: "one.example"
    )
    archive = SpooledArchive(
        spool, tmp_path, disk, SimulatedObjectStore(), ArchivePlace("bucket", "prefix"), decode_sample
    )
    segment = archive.append(page_capture(1)).ref.segment
    archive.sync_spool()
    body = archive.body(segment)
    assert len(body.read_at(0, body.size)) == body.size
    disk.remove(tmp_path / segment)
    with pytest.raises(StorageError, match="in the spool cannot be read"):
        body.read_at(0, body.size)


def test_that_a_segment_has_arrived_is_in_the_chain_before_it_leaves_the_spool(tmp_path: Path) -> None:
    """K1, W2: killed right afterwards, a worker has said that it must be there; so whoever removes it is found out."""
    disk, identity, clock = ForgetfulDisk(), CrawlIdentity(secret=7), VirtualClock()
    spool = LocalArchive(tmp_path, ArchiveSettings(), clock, identity, disk, decode_sample, lambda host: "one.example")
    spool.trail = Trail(tmp_path, 0, disk, clock, archives=tmp_path)
    place = ArchivePlace("bucket", "prefix")
    archive = SpooledArchive(spool, tmp_path, disk, SimulatedObjectStore(), place, decode_sample)
    segment = archive.append(page_capture(1)).ref.segment
    archive.roll()
    size = archive.body(segment).size
    archive.acknowledge(segment, size)
    archive.sync_spool()
    assert segment not in _arrived(disk, tmp_path), "the line is not due yet"
    archive.remove(segment)
    assert segment not in archive.segments()
    assert segment in _arrived(disk, tmp_path)


def _arrived(disk: ForgetfulDisk, root: Path) -> list[str]:
    """What the chain says has arrived."""
    lines = map(read_line, disk.contents(root / "chain" / "w0.jsonl").splitlines(keepends=True))
    return [name.rpartition("/")[2] for line in lines if line is not None for name in line.arrived]

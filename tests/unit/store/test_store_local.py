"""The archive in a directory: files, failures, power loss."""

import errno
import gzip
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.errors import StorageError
from nephila.model.record import Capture, SegmentId
from nephila.model.settings import ArchiveSettings
from nephila.store.layout import SegmentKey
from nephila.store.rotation import index_name
from nephila.store.segment import MAX_DESCRIPTORS, Segment, SegmentFiles, UnsyncedError
from nephila.testing.contracts.archive import fetched_sample, page_capture, row_of
from nephila.testing.disk import ForgetfulDisk, MemoryFile

from .conftest import DIRECTORY, ArchiveWorld

DOMAIN_HOUR = ArchiveSettings(layout="domain-hour")


def _of_host(number: int, host: str) -> Capture:
    return page_capture(number, fetched_sample(f"https://{host}/{number}"))


def _random_page(number: int, size: int = 3_000) -> Capture:
    return page_capture(number, fetched_sample("https://a.example/", random.Random(number).randbytes(size)))


def test_files_are_rolled_by_size(world: ArchiveWorld) -> None:
    """W1: no file grows over its limit; a capture that is larger has one for itself."""
    archive = world.open(ArchiveSettings(max_bytes=10_000))
    stored = [archive.append(_random_page(number, 30_000 if number == 5 else 3_000)) for number in range(10)]
    archive.close()
    sizes = {segment: len(world.bytes_of(segment)) for segment in archive.segments()}
    large = stored[5].ref.segment
    assert all(size <= 10_000 for segment, size in sizes.items() if segment != large)
    assert len(list(archive.tail(large, 0))) == 1
    assert world.closed == archive.segments()
    assert sum(len(list(archive.tail(segment, 0))) for segment in sizes) == 10


def test_files_are_rolled_by_age(world: ArchiveWorld) -> None:
    """W1: an old file is closed by the next capture, whatever the wall clock did."""
    archive = world.open(ArchiveSettings(max_age_s=60))
    first = archive.append(page_capture(1))
    world.clock.jump_wall(3_600)
    assert archive.append(page_capture(2)).ref.segment == first.ref.segment
    world.clock.advance(60)
    assert archive.append(page_capture(3)).ref.segment != first.ref.segment
    assert world.closed == [first.ref.segment]


def test_nothing_is_appended_while_listeners_hear_what_was_closed(world: ArchiveWorld) -> None:
    """D2, W2: they hear of files in the order in which those were closed, though threads close them."""
    archive = world.open(ArchiveSettings(max_bytes=10_000, max_age_s=60))
    was_held: list[bool] = []
    archive.on_roll(lambda _: was_held.append(archive._lock.locked()))
    for number in range(4):
        archive.append(_random_page(number))
    world.clock.advance(60)
    archive.roll_aged()
    archive.append(_random_page(5))
    archive.roll()
    assert was_held == [True] * len(world.closed)
    assert len(world.closed) == 3


def test_one_file_per_domain_and_hour(world: ArchiveWorld) -> None:
    """W1: captures of a domain and hour lie together; the next hour closes them all."""
    archive = world.open(DOMAIN_HOUR)
    hosts = ["a.one.example", "b.one.example", "two.example"]
    first_hour = [archive.append(_of_host(number, hosts[number % 3])).ref.segment for number in range(9)]
    assert sorted(set(first_hour)) == archive.segments()
    assert len(set(first_hour)) == 2
    assert all(("one.example" in name) == (number % 3 != 2) for number, name in enumerate(first_hour))
    world.clock.advance(3_600)
    archive.append(_of_host(10, "two.example"))
    assert sorted(world.closed) == sorted(set(first_hour))
    assert len(archive.segments()) == 3


def test_every_answer_has_a_file_that_is_closed_at_once(world: ArchiveWorld) -> None:
    """W1: in the layout key, as the preset has it; the same page on the same day makes another file."""
    archive = world.open(ArchiveSettings(layout="key"))
    stored = [archive.append(page_capture(number)).ref.segment for number in (1, 2, 1)]
    assert world.closed == stored
    assert len(set(stored)) == 3
    first, _, again = (name.partition("-2026")[0] for name in stored)
    assert first == again, "both are found under one key"
    assert [len(list(archive.tail(segment, 0))) for segment in stored] == [1, 1, 1]
    archive.sync()
    assert world.disk.open_files == 0
    assert world.closed == stored


def test_other_keys_are_closed_with_the_day_that_they_name(world: ArchiveWorld) -> None:
    """W1: captures of a key lie together until its day is over, also when nothing more comes."""
    archive = world.open(ArchiveSettings(layout="key", key="{date}/{domain}.warc.gz", max_age_s=10**6))
    hosts = ["a.one.example", "b.one.example", "two.example"]
    first_day = {archive.append(_of_host(number, hosts[number % 3])).ref.segment for number in range(9)}
    assert len(first_day) == 2
    world.clock.advance(86_400)
    later = archive.append(_of_host(10, "two.example")).ref.segment
    assert sorted(world.closed) == sorted(first_day)
    world.clock.advance(86_400)
    archive.roll_aged()
    assert world.closed[-1] == later
    archive.close()
    assert sorted(world.closed) == archive.segments()


def test_a_folder_that_is_removed_meanwhile_is_made_again(world: ArchiveWorld) -> None:
    """W1, W2: whoever empties a spool removes empty folders, perhaps the one in which a file is about to be made."""
    taken = []

    class Emptied(ForgetfulDisk):
        def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
            made = super().make_folder(directory, within)
            if len(taken) < 3:
                taken.append(directory)
                self.remove_folders(directory, DIRECTORY)
            return made

        def create(self, path: Path) -> MemoryFile:
            if str(path.parent) not in self._folders:
                raise FileNotFoundError
            return super().create(path)

    world.disk = Emptied()
    archive = world.open(ArchiveSettings(layout="key"))
    stored = archive.append(page_capture(1))
    assert len(taken) == 3
    assert len(list(archive.tail(stored.ref.segment, 0))) == 1


def test_recovery_leaves_no_empty_folder(world: ArchiveWorld) -> None:
    """W1: a file of which nothing was whole is removed with the folders that were made for it."""
    path = DIRECTORY / "2026-01-01" / "ab" / "cd-20260101000000-00000-w0.warc.gz"
    world.disk.overwrite(path, b"torn")
    archive = world.open(ArchiveSettings(layout="key"))
    assert archive.recover(archive.unfinished()[0], 0) == 0
    assert archive.segments() == []
    assert str(path.parent.parent) not in world.disk._folders


def test_open_files_are_bounded_whatever_is_open(world: ArchiveWorld) -> None:
    """F8, W1: hundreds of domains grow by turns with a bounded number of descriptors, synced or not."""
    archive = world.open(DOMAIN_HOUR)
    most = 0
    for number in range(3 * MAX_DESCRIPTORS * 2):
        archive.append(_of_host(number, f"d{number % (3 * MAX_DESCRIPTORS)}.example"))
        most = max(most, world.disk.open_files)
        if number % 50 == 49:
            archive.sync()
            most = max(most, world.disk.open_files)
    archive.close()
    assert most <= MAX_DESCRIPTORS + 1
    assert world.disk.open_files == 0
    assert len(archive.segments()) == 3 * MAX_DESCRIPTORS
    assert {len(list(archive.tail(segment, 0))) for segment in archive.segments()} == {2}


def test_a_full_disk_leaves_whole_captures_and_goes_on_when_there_is_room(world: ArchiveWorld) -> None:
    """W2, F10: the write that did not fit is undone and told; the next one that fits is written."""
    world.disk.capacity = 10_000
    archive = world.open()
    stored = []
    with pytest.raises(StorageError, match="no space left") as caught:
        stored.extend(archive.append(_random_page(number)) for number in range(10))
    stored = list(archive.tail(archive.segments()[0], 0))
    assert len(stored) >= 2
    assert len(world.bytes_of(archive.segments()[0])) == stored[-1][1].ref.end
    assert "go" in caught.value.hint
    world.disk.capacity = 100_000
    again = archive.append(_random_page(11))
    assert again.ref.offset == stored[-1][1].ref.end
    archive.close()
    assert [one.ref for _, one in archive.tail(again.ref.segment, 0)][-1] == again.ref


def test_a_disk_that_is_full_from_the_start_leaves_no_file(world: ArchiveWorld) -> None:
    """W2: a file of which nothing is whole is removed by recovery, and no listener hears of it."""
    world.disk.capacity = 100
    archive = world.open()
    with pytest.raises(StorageError):
        archive.append(page_capture(1))
    archive.close()
    assert world.closed == []
    archive = world.open()
    assert archive.recover(archive.unfinished()[0], 0) == 0
    assert archive.segments() == []


def test_a_capture_that_cannot_be_undone_is_the_last_of_its_file(world: ArchiveWorld) -> None:
    """F10: after a torn write the file never grows; the next capture begins another."""
    archive = world.open()
    first = archive.append(_random_page(1))
    world.disk.capacity, world.disk.refuses_truncation = len(world.bytes_of(first.ref.segment)) + 50, True
    with pytest.raises(StorageError, match="cut back"):
        archive.append(_random_page(2))
    world.disk.capacity, world.disk.refuses_truncation = None, False
    third = archive.append(_random_page(3))
    assert third.ref.segment != first.ref.segment
    assert (first.ref.segment, first.ref.end) in archive.sync()
    assert [one for _, one in archive.tail(first.ref.segment, 0)] == [first]
    assert archive.recover(first.ref.segment, first.ref.end) == first.ref.end


def test_after_a_failed_sync_nothing_is_promised_any_more(world: ArchiveWorld) -> None:
    """W2: the kernel may have dropped the bytes; a later fsync that succeeds must not confirm them."""
    archive = world.open()
    archive.append(page_capture(1))
    world.disk.refuses_sync = True
    with pytest.raises(StorageError):
        archive.sync()
    world.disk.refuses_sync = False
    for verb in (archive.sync, lambda: archive.append(page_capture(2)), archive.close):
        with pytest.raises(StorageError):
            verb()
    assert world.closed == []


def test_a_file_that_cannot_be_closed_after_its_sync_is_as_durable_as_any(world: ArchiveWorld) -> None:
    """W2: closing tells of bytes that were written since the last sync, and there are none."""
    archive = world.open(ArchiveSettings(max_bytes=6_000))
    stored = [archive.append(_random_page(number)) for number in range(5)]
    world.disk.refuses_close = True
    marks = dict(archive.sync())
    assert marks[stored[0].ref.segment] >= stored[0].ref.end
    archive.append(_random_page(9))
    archive.close()
    assert world.closed == archive.segments()
    assert world.disk.open_files == 0


@pytest.mark.parametrize("refusal", ["refuses_sync", "refuses_close"])
def test_a_file_that_gives_way_and_cannot_be_synced_ends_all_promises(world: ArchiveWorld, refusal: str) -> None:
    """W2, F8: too many files are open, one must be made durable to be closed, and the disk refuses."""
    archive = world.open(DOMAIN_HOUR)
    for number in range(MAX_DESCRIPTORS):
        archive.append(_of_host(number, f"host{number}.example"))
    setattr(world.disk, refusal, True)
    if refusal == "refuses_close":  # it was synced right before: nothing is lost by it
        archive.append(_of_host(100, "one-more.example"))
        archive.sync()
        return
    with pytest.raises(StorageError):
        archive.append(_of_host(100, "one-more.example"))
    world.disk.refuses_sync = False
    for verb in (archive.sync, lambda: archive.append(page_capture(2)), archive.close):
        with pytest.raises(StorageError):
            verb()
    assert world.closed == []


def test_a_closing_that_fails_before_its_sync_is_a_sync_that_failed() -> None:
    """W2: the system says there that what was written may be gone."""
    disk = ForgetfulDisk()
    files = SegmentFiles(DIRECTORY, disk)
    segment = Segment(SegmentId("a.warc.gz"), SegmentKey(), 0)
    files.create(segment)
    files.append(segment, b"capture")
    disk.refuses_close = True
    with pytest.raises(UnsyncedError, match="could not be written"):
        files.release(segment)
    files.append(segment, b"capture")
    segment.synced = segment.end
    files.release(segment)
    assert disk.open_files == 0


@pytest.mark.parametrize("layout", ["rolling", "domain-hour", "key"])
def test_what_sync_returned_survives_a_power_loss(layout: str) -> None:
    """W2, Q4: at any moment, whatever part of the unsynced bytes and names the disk kept."""
    for seed in range(30):
        draw, world = random.Random(seed), ArchiveWorld()
        archive = world.open(ArchiveSettings(layout=layout, max_bytes=6_000))
        marks: dict[str, int] = {}
        durable = 0
        for number in range(draw.randrange(1, 25)):
            archive.append(_of_host(number, draw.choice(["one.example", "two.example"])))
            if draw.random() < 0.3:
                marks.update(archive.sync())
                durable = number + 1
        world.disk = world.disk.lose_power(draw)
        archive = world.open()
        found = []
        for segment in archive.unfinished():
            archive.recover(segment, marks.get(segment, 0))
        for segment in archive.segments():
            captures = list(archive.tail(segment, 0))
            assert captures[-1][1].ref.end >= marks.get(segment, 0) if captures else segment not in marks
            found += [int(capture.fetched.url.rpartition("/")[2]) for capture, _ in captures]
        assert set(found) >= set(range(durable))
        assert len(found) == len(set(found))


def test_a_new_file_needs_its_name_synced(world: ArchiveWorld) -> None:
    """W2: bytes whose file has no durable name are lost bytes."""
    archive = world.open()
    stored = archive.append(page_capture(1))
    archive.sync()
    assert world.disk.lose_power().names(world.path(stored.ref.segment).parent) == [stored.ref.segment]


def test_a_sync_that_could_not_begin_leaves_the_names_for_the_next(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W2: a file that had given way cannot be opened for once; what is promised later has its name, too."""
    archive = world.open(DOMAIN_HOUR)
    stored = [archive.append(_of_host(number, f"host{number}.example")) for number in range(MAX_DESCRIPTORS + 1)]
    with monkeypatch.context() as patch:
        patch.setattr(world.disk, "open", _no_descriptor)
        with pytest.raises(StorageError):
            archive.sync()
    assert len(archive.sync()) == len(stored)
    assert world.disk.lose_power().names(DIRECTORY) == sorted(one.ref.segment for one in stored)


def _no_descriptor(_path: Path) -> MemoryFile:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_syncing_an_idle_archive_touches_no_disk(world: ArchiveWorld) -> None:
    """Q1: ten times a second is cheap when there is nothing."""
    archive = world.open()
    archive.append(page_capture(1))
    archive.sync()
    before = world.disk.syncs
    assert archive.sync() == []
    assert world.disk.syncs == before


def test_sync_runs_beside_append(world: ArchiveWorld) -> None:
    """W2: from a thread, all captures in the end confirmed, none beyond its end."""
    archive = world.open(ArchiveSettings(max_bytes=20_000))
    marks: dict[str, int] = {}
    with ThreadPoolExecutor(1) as pool:
        for number in range(200):
            running = pool.submit(archive.sync)
            archive.append(page_capture(number))
            archive.append(page_capture(1_000 + number))
            marks.update(running.result())
        marks.update(pool.submit(archive.sync).result())
    assert marks == {segment: len(world.bytes_of(segment)) for segment in archive.segments()}


def test_every_run_begins_new_files(world: ArchiveWorld) -> None:
    """F10: an old file is never grown, and no name is taken twice."""
    segments = [world.open().append(page_capture(number)).ref.segment for number in range(3)]
    segments += [world.open(writer=1).append(page_capture(9)).ref.segment]
    assert len(set(segments)) == 4
    assert world.open().segments() == sorted(segments)


def test_a_segment_is_unfinished_until_it_has_an_index(world: ArchiveWorld) -> None:
    """W1: recovery looks at those only; the index is there whole or not at all, power loss or not."""
    archive = world.open()
    stored = archive.append(page_capture(1))
    archive.close()
    segment = stored.ref.segment
    assert archive.unfinished() == [segment]
    archive.write_index(segment, [row_of(*one) for one in archive.tail(segment, 0)])
    assert archive.unfinished() == []
    world.disk = world.disk.lose_power()
    assert world.open().unfinished() == []
    assert world.disk.contents(world.path(index_name(segment))).startswith(b"example,spiders)/web/1?q=%20b 20260101")


@settings(max_examples=50, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_an_index_is_never_half_written(seed: int) -> None:
    """W1: whatever fails while it is replaced, readers find the old one or the new one."""
    world, draw = ArchiveWorld(), random.Random(seed)
    archive = world.open()
    stored = [archive.append(page_capture(number)) for number in range(5)]
    archive.close()
    segment = stored[0].ref.segment
    rows = [row_of(*one) for one in archive.tail(segment, 0)]
    archive.write_index(segment, rows[:2])
    old = world.disk.contents(world.path(index_name(segment)))
    world.disk.capacity = len(old) + len(world.bytes_of(segment)) + draw.randrange(3_000)
    with suppress(StorageError):
        archive.write_index(segment, rows)
    after = world.disk.lose_power(draw)
    assert after.contents(world.path(index_name(segment))).count(b"\n") in {2, 5}


def test_reading_what_is_not_there_is_told(world: ArchiveWorld) -> None:
    """F10: a lost segment is a sentence, not a traceback."""
    archive = world.open()
    with pytest.raises(StorageError, match="nowhere"):
        list(archive.tail("nowhere.warc.gz", 0))


def test_the_first_record_says_who_wrote(world: ArchiveWorld) -> None:
    """W1, P6: warcinfo carries software, agent and operator."""
    archive = world.open(replace(ArchiveSettings(), operator="Ada"))
    stored = archive.append(page_capture(1))
    text = gzip.decompress(world.bytes_of(stored.ref.segment)[: stored.ref.offset]).decode()
    for line in ("WARC-Type: warcinfo", f"WARC-Filename: {stored.ref.segment}", "operator: Ada", "software: Nephila"):
        assert line in text

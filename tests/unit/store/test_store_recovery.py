"""Archives that were cut."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.errors import StorageError
from nephila.model.settings import ArchiveSettings
from nephila.store.recovery import recover
from nephila.testing.contracts.archive import assorted_captures, page_capture

from .conftest import ArchiveWorld


class _Written:
    """Three small captures, made once."""

    def __init__(self, compression: str) -> None:
        self.world = ArchiveWorld()
        archive = self.world.open(ArchiveSettings(compression=compression))
        self.stored = [archive.append(page_capture(number)) for number in range(3)]
        archive.sync()
        self.segment = self.stored[0].ref.segment
        self.path = self.world.path(self.segment)
        self.data = self.world.bytes_of(self.segment)
        self.start = self.stored[0].ref.offset
        """The end of warcinfo."""
        self.ends = [0, self.start, *(one.ref.end for one in self.stored)]

    def found(self, data: bytes, confirmed: int = 0) -> tuple[int, bytes]:
        self.world.disk.overwrite(self.path, data)
        end = recover(self.world.disk, self.path, confirmed)
        return end, self.world.bytes_of(self.segment)


@pytest.fixture(scope="module", params=["gzip", "zstd"])
def written(request: pytest.FixtureRequest) -> _Written:
    return _Written(request.param)


def test_what_was_recovered_survives_a_power_loss() -> None:
    """F10, W2: whoever was killed before the first sync had made neither the bytes durable nor the name."""
    world = ArchiveWorld()
    stored = world.open().append(page_capture(1))
    path = world.path(stored.ref.segment)
    end = recover(world.disk, path)
    after = world.disk.lose_power()
    assert len(after.contents(path)) == end == stored.ref.end


@pytest.mark.parametrize("confirmed", [False, True])
def test_what_a_failed_sync_has_left_in_memory_is_made_durable_by_recovery(*, confirmed: bool) -> None:
    """F10, W2: the system takes it for written, gives it to whoever reads, and does not try again by itself."""
    world = ArchiveWorld()
    archive = world.open()
    mark = 0
    if confirmed:
        mark = archive.append(page_capture(1)).ref.end
        archive.sync()
    stored = archive.append(page_capture(2))
    world.disk.refuses_sync = True
    with pytest.raises(StorageError):
        archive.sync()
    world.disk.refuses_sync = False
    path = world.path(stored.ref.segment)
    assert recover(world.disk, path, mark) == stored.ref.end
    whole = world.disk.contents(path)
    assert world.disk.lose_power().contents(path) == whole


def test_a_whole_file_is_left_alone(written: _Written) -> None:
    """F10: recovery of what needs none changes nothing."""
    assert written.found(written.data) == (len(written.data), written.data)


def test_a_tail_torn_at_any_byte_is_cut_to_the_last_whole_capture(written: _Written) -> None:
    """F10, Q4: every byte offset of it; never to a whole record of a capture that is not whole."""
    for cut in (*range(written.start + 1), *range(written.ends[-2] - 1, len(written.data))):
        expected = max(end for end in written.ends if end <= cut)
        assert written.found(written.data[:cut]) == (expected, written.data[:expected])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_torn_tail_may_hold_anything(data: st.DataObject) -> None:
    """F10, Q5: zeros, garbage or another file's bytes behind the cut, and twice is once."""
    written = data.draw(st.sampled_from(_SHARED))
    cut = data.draw(st.integers(0, len(written.data)))
    junk = data.draw(st.one_of(st.binary(max_size=300), st.builds(bytes, st.integers(0, 5_000))))
    torn = written.data[:cut] + junk
    end, left = written.found(torn)
    kept = max(one for one in written.ends if one <= cut)
    assert end >= kept
    assert left == torn[:end]
    assert written.found(left) == (end, left)


_SHARED = (_Written("gzip"), _Written("zstd"))


def test_a_flipped_bit_cuts_from_there(written: _Written) -> None:
    """F10: the checksum of each member is believed, not its length; what it does not cover says nothing."""
    draw, last, segment = random.Random(4), written.ends[-2], written.segment
    harmless = 0
    for _ in range(300):
        position = draw.randrange(last, len(written.data))
        damaged = bytearray(written.data)
        damaged[position] ^= 1 << draw.randrange(8)
        end, left = written.found(bytes(damaged))
        if end == last:
            assert left == damaged[:last]
        else:
            harmless += 1
            [(capture, _)] = written.world.open().tail(segment, last)
            assert capture == page_capture(2)
    assert harmless < 20


def test_confirmed_bytes_are_never_touched(written: _Written) -> None:
    """W2: bytes that are missing before the mark are an error that names the file, and nothing is cut."""
    confirmed = written.ends[-2]
    for broken in (written.data[: confirmed - 1], b""):
        with pytest.raises(StorageError, match=written.segment):
            written.found(broken, confirmed)
        assert written.world.bytes_of(written.segment) == broken


def test_bytes_before_the_mark_are_not_read_again(written: _Written) -> None:
    """F10: a crawl of many gigabytes goes on within seconds; what was confirmed is left as it is."""
    confirmed = written.ends[-2]
    damaged = bytearray(written.data)
    damaged[confirmed - 9] ^= 0xFF
    assert written.found(bytes(damaged), confirmed) == (len(damaged), bytes(damaged))


def test_damage_behind_the_mark_is_cut(written: _Written) -> None:
    """W2: the mark itself is no obstacle."""
    assert written.found(written.data[:-1], written.ends[-2])[0] == written.ends[-2]
    assert written.found(written.data, written.ends[-1])[0] == written.ends[-1]


def test_the_cut_is_durable(written: _Written) -> None:
    """F10: a power loss after recovery does not bring the torn tail back."""
    written.found(written.data[:-1])
    after = written.world.disk.lose_power()
    assert len(after.contents(written.path)) == written.ends[-2]
    written.world.disk = after


def test_a_file_that_is_not_there_is_an_error(written: _Written) -> None:
    """F10: told in a sentence, not as a traceback."""
    with pytest.raises(StorageError, match="nowhere"):
        recover(written.world.disk, written.path.with_name("nowhere.warc.gz"))


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_torn_capture_of_every_kind_is_cut_whole(world: ArchiveWorld, compression: str) -> None:
    """F10, W1: resource, revisit and large captures too: cut between any two of its members."""
    archive = world.open(ArchiveSettings(compression=compression))
    captures = assorted_captures()
    ends = [archive.append(capture).ref.end for capture in captures]
    segment = archive.segments()[0]
    data = world.bytes_of(segment)
    for before, end in pairwise(ends):
        world.disk.overwrite(world.path(segment), data[: (before + end) // 2])
        assert recover(world.disk, world.path(segment)) == before

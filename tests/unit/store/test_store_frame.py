"""Zstandard frames: ours read by others, others' read by us, hostile ones refused."""

from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from warc_checks import FastIterator

from nephila.model.settings import ArchiveSettings
from nephila.store.frame import MAGIC, RAW_MAX, frame, quick_frame, raw_frame
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.testing.contracts.archive import assorted_captures
from nephila.testing.disk import ForgetfulDisk

from .conftest import ArchiveWorld

PATH = Path("/archive/x.warc.zst")
RECORD = (
    b"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:12345678-1234-8234-9234-123456789012>\r\n"
    b"WARC-Date: 2026-01-31T12:00:00.000Z\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n"
)


def _read(data: bytes) -> list[WarcRecord]:
    disk = ForgetfulDisk()
    disk.overwrite(PATH, data)
    return list(WarcReader(disk.open(PATH), PATH.name))


@pytest.mark.parametrize("packed", [frame, quick_frame, raw_frame])
@given(
    data=st.one_of(st.binary(max_size=300), st.integers(0, 3 * RAW_MAX).map(lambda size: b"web of silk" * (size // 11)))
)
def test_frames_hold_what_was_put_into_them(packed: object, data: bytes) -> None:
    """W1: with a checksum and their size, by the library's own reading."""
    assert callable(packed)
    made = packed(data)
    told = zstandard.get_frame_parameters(made)
    assert (told.has_checksum, told.content_size, told.dict_id) == (True, len(data), 0)
    assert zstandard.ZstdDecompressor().decompress(made) == data


def test_every_capture_is_read_by_another_program_where_we_say_it_lies(world: ArchiveWorld, tmp_path: Path) -> None:
    """W1: FastWARC finds the same records at the same offsets, and their digests hold."""
    archive = world.open(ArchiveSettings(compression="zstd"))
    stored = [archive.append(capture) for capture in assorted_captures()]
    archive.close()
    [segment] = archive.segments()
    assert segment.endswith(".warc.zst")
    path = tmp_path / segment
    path.write_bytes(world.bytes_of(segment))
    with path.open("rb") as stream:
        found = [
            (one.stream_pos, one.headers["WARC-Record-ID"].strip("<>"), one.verify_block_digest())
            for one in FastIterator(stream, parse_http=False)
        ]
    ours = list(WarcReader(world.disk.open(world.path(segment)), segment))
    assert [(one.offset, one.record_id) for one in ours] == [place[:2] for place in found]
    assert all(holds for *_, holds in found)
    assert {one.ref.offset for one in stored} <= {offset for offset, *_ in found}


def test_a_record_is_read_alone_at_its_offset(world: ArchiveWorld) -> None:
    """W1: what an index promises: offset and length are enough, with the tools of Zstandard."""
    archive = world.open(ArchiveSettings(compression="zstd"))
    stored = [archive.append(capture) for capture in assorted_captures()]
    data = world.bytes_of(stored[0].ref.segment)
    for one in stored:
        piece = data[one.ref.offset : one.ref.offset + one.ref.length]
        assert zstandard.ZstdDecompressor().decompress(piece).startswith(b"WARC/1.1\r\n")


def test_files_of_others_are_read() -> None:
    """W1: frames without a size or a checksum, and mixed with members of gzip in one archive."""
    plain = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False)
    stream = plain.compressobj()
    unsized = stream.compress(RECORD) + stream.flush()
    assert zstandard.get_frame_parameters(unsized).content_size == zstandard.CONTENTSIZE_UNKNOWN
    found = _read(unsized + plain.compress(RECORD) + frame(RECORD))
    assert [one.block for one in found] == [b"hello"] * 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (MAGIC, "is cut"),
        (MAGIC[:2], "is cut"),
        (frame(RECORD)[:-1], "is cut"),
        (frame(RECORD + RECORD), "several records in one Zstandard frame"),
        (frame(RECORD)[:-1] + b"?", "cannot be read"),
        (frame(b"nonsense"), "no WARC record"),
        (MAGIC + b"\xc4\x38" + (1 << 40).to_bytes(8, "little") + b"\x01\0\0", "is over"),
    ],
)
def test_what_is_not_whole_is_damage(data: bytes, said: str) -> None:
    """F10, Q5: from the byte on at which it begins; what came before is whole."""
    with pytest.raises(DamagedArchiveError, match=said) as caught:
        _read(frame(RECORD) + data)
    assert caught.value.offset == len(frame(RECORD))


def test_a_dictionary_is_told() -> None:
    """W1: the standard allows one; we have none, and read none."""
    samples = [RECORD.replace(b"hello", f"{number:05d}".encode()) * 3 for number in range(500)]
    dictionary = zstandard.train_dictionary(2_000, samples)
    data = zstandard.ZstdCompressor(dict_data=dictionary).compress(RECORD)
    with pytest.raises(DamagedArchiveError, match="dictionary"):
        _read(data)


def test_a_bomb_is_not_unpacked() -> None:
    """Q5: a frame that does not say how much it holds is read in small steps, and let go of at the limit."""
    block = ((1 << 17) << 3 | 2).to_bytes(3, "little") + b"x"
    bomb = MAGIC + bytes((0x00, 0x38)) + block * 9_000 + b"\x01\0\0"
    with pytest.raises(DamagedArchiveError, match="is over"):
        _read(bomb)

"""What takes the place of a capture: exactly as long, readable by everybody, the same each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from warc_checks import FastIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from nephila.store.frame import MAGIC, frame
from nephila.store.member import HEADER, deflated
from nephila.store.reader import WarcReader, WarcRecord
from nephila.store.tombstone import in_as_many_bytes, is_tombstone, tombstone, without_original
from nephila.testing.disk import ForgetfulDisk

METADATA = WarcRecord(
    *(0, 1, 1, "WARC/1.1", (("warc-type", "metadata"),)),
    b"via: http://secret.test/\r\ntoken: 5\r\nsent-at: 1\r\nended-at: 2\r\nsent-steady-ms: 77\r\nfetchTimeMs: 8\r\n",
)
REVISIT = (
    b"WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:uuid:12345678-1234-8234-9234-123456789012>\r\n"
    b"WARC-Date: 2026-01-31T12:00:00.000Z\r\nWARC-Target-URI: http://copy.test/\r\n"
    b"WARC-Refers-To: <urn:uuid:99999999-1234-8234-9234-123456789012>\r\n"
    b"WARC-Refers-To-Target-URI: http://secret.test/\r\nWARC-Refers-To-Date: 2026-01-30T12:00:00.000Z\r\n"
    b"WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nWARC-Block-Digest: sha1:B\r\n"
    b"Content-Type: application/http;msgtype=response\r\nContent-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n"
)


def read(data: bytes) -> WarcRecord:
    disk = ForgetfulDisk()
    path = Path("/warc/a.warc.gz")
    file = disk.create(path)
    file.append(data)
    (record,) = WarcReader(file, path.name)
    return record


LENGTHS = [
    *range(131_040, 131_120),
    *range(700, 1400, 7),
    *range(1000, 1040),
    *range(10_180, 10_230),
    *range(65_600, 65_640),
    131_200,
    1_000_003,
]


def unpacked(member: bytes) -> bytes:
    if member.startswith(MAGIC):
        return zstandard.ZstdDecompressor().decompress(member)
    return gzip.decompress(member)


@pytest.mark.parametrize("begins", [b"x", MAGIC], ids=["gzip", "zstd"])
def test_it_is_as_long_as_what_it_replaces_whatever_that_was(begins: bytes) -> None:
    """K2, W5: also where the length's own digits, or the blocks of the format, change in between."""
    for length in LENGTHS:
        member = tombstone([METADATA], begins.ljust(length), "000042", 1_790_000_000_000)
        assert len(member) == length
        assert member.startswith(MAGIC) == (begins == MAGIC)
        record = read(member)
        assert is_tombstone(record)
        assert unpacked(member).endswith(b"\r\n\r\n")
        assert record.length == length


def test_it_tells_times_and_digest_and_nothing_that_was_there() -> None:
    """K1, K2: an audit needs to know that a request was made; nobody needs to know which."""
    member = tombstone([METADATA], b"x" * 900, "000042", 1_790_000_000_000)
    said = gzip.decompress(member)
    assert b"secret" not in said
    assert b"sent-steady-ms: 77\r\nfetchTimeMs: 8" in said
    assert member == tombstone([METADATA], b"x" * 900, "000042", 1_790_000_000_000), "repeated, it is the same"
    assert member != tombstone([METADATA], b"y" * 900, "000042", 1_790_000_000_000)


def test_too_short_a_place_is_refused() -> None:
    """K2: half a record is worse than none."""
    with pytest.raises(ValueError, match="too short"):
        tombstone([METADATA], b"x" * 100, "000042", 1)


def test_a_record_is_spelled_anew_in_the_bytes_that_it_had(tmp_path: Path) -> None:
    """K2, W1: read by us, by warcio and by FastWARC, whatever is left over."""
    anew = without_original(read(deflated(REVISIT)))
    assert b"secret" not in anew
    least = len(deflated(anew, 3))
    for length in (*range(least, least + 30), least + 70_000):
        member = in_as_many_bytes(anew, length, HEADER)
        assert member is not None
        assert len(member) == length
        assert read(member).get("warc-type") == "revisit"
        path = tmp_path / "a.warc.gz"
        path.write_bytes(member + tombstone([METADATA], b"x" * 900, "1", 1))
        with path.open("rb") as stream:
            assert [one.rec_type for one in WarcioIterator(stream)] == ["revisit", "metadata"]
        with path.open("rb") as stream:
            assert len(list(FastIterator(stream, parse_http=False))) == 2
    assert in_as_many_bytes(anew, 40, HEADER) is None


def test_a_frame_is_spelled_anew_in_the_bytes_that_it_had(tmp_path: Path) -> None:
    """K2, W1: by empty blocks and by how its size is written; read by us and by FastWARC, whatever is left over."""
    anew = without_original(read(frame(REVISIT)))
    least = len(frame(anew)) + 12
    for length in (*range(least, least + 30), least + 70_000):
        member = in_as_many_bytes(anew, length, MAGIC)
        assert member is not None
        assert len(member) == length
        assert read(member).get("warc-type") == "revisit"
        path = tmp_path / "a.warc.zst"
        path.write_bytes(member + tombstone([METADATA], MAGIC.ljust(900), "1", 1))
        with path.open("rb") as stream:
            kinds = [one.headers["WARC-Type"] for one in FastIterator(stream, parse_http=False)]
        assert kinds == ["revisit", "metadata"]
    assert in_as_many_bytes(anew, 40, MAGIC) is None

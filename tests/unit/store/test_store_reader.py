"""Reading WARC files, good and bad."""

import base64
import gzip
import hashlib
from functools import partial
from pathlib import Path

import pytest

from nephila.store.member import deflated, stored
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.store.verify import digest_problems, unchunked
from nephila.testing.disk import ForgetfulDisk

_sha1, _md5 = partial(hashlib.new, "sha1"), partial(hashlib.new, "md5")
PATH = Path("/archive/x.warc.gz")


def _record(block: bytes, *, extra: str = "", kind: str = "resource", length: int | None = None) -> bytes:
    size = len(block) if length is None else length
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\n{extra}Content-Length: {size}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def _read(data: bytes, start: int = 0) -> list[WarcRecord]:
    disk = ForgetfulDisk()
    disk.overwrite(PATH, data)
    return list(WarcReader(disk.open(PATH), PATH.name, start))


def test_offsets_and_lengths_of_members_are_exact() -> None:
    """W1: each record can be read at its offset alone, however large and however compressed."""
    blocks = [b"", b"a" * 10, bytes(range(256)) * 1_000, b"b" * 3_000_000, b"c"]
    members = [stored(_record(block)) if index % 2 else deflated(_record(block)) for index, block in enumerate(blocks)]
    data = b"".join(members)
    records = _read(data)
    assert [record.block for record in records] == blocks
    assert [record.length for record in records] == [len(member) for member in members]
    for record in records:
        assert _read(data, record.offset)[0] == record
        assert gzip.decompress(data[record.offset : record.end]) == _record(record.block)


def test_plain_files_are_read_too() -> None:
    """W1: archives of other tools may be uncompressed."""
    blocks = [b"one", b"", b"three" * 10_000]
    records = _read(b"".join(_record(block) for block in blocks))
    assert [record.block for record in records] == blocks
    assert [record.length for record in records] == [len(_record(block)) - 4 for block in blocks]


def test_folded_fields_and_brackets_are_understood() -> None:
    """W1: what other tools write, the reader puts right."""
    [record] = _read(_record(b"", extra="WARC-Target-URI: <http://a.example/x y>\r\nX: one\r\n\ttwo\r\n"))
    assert record.target == "http://a.example/x%20y"
    assert record.get("x") == "one two"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"garbage", "no WARC record"),
        (bytes(100), "no WARC record"),
        (b"WARC/1.1\r\nWARC-Type: x\r\n", "do not end"),
        (_record(b"abc", length=99), "shorter than its Content-Length"),
        (_record(b"abc", length=2), "two empty lines"),
        (b"WARC/1.1\r\nWARC-Type: x\r\n\r\n\r\n\r\n", "no usable Content-Length"),
        (b"WARC/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n\r\n\r\n", "no usable Content-Length"),
        (b"WARC/1.1\r\nContent-Length: -5\r\n\r\n\r\n\r\n", "no usable Content-Length"),
        (b"WARC/1.1\r\nnonsense\r\nContent-Length: 0\r\n\r\n\r\n\r\n", "is no field"),
        (gzip.compress(_record(b"abc") * 2), "several records in one gzip member"),
        (stored(_record(b"abc") * 2), "several records in one gzip member"),
        (deflated(_record(b"abc", length=99)), "shorter than its Content-Length"),
        (deflated(_record(b"abc", length=2)), "two empty lines"),
        (deflated(b"abc"), "no WARC record"),
        (stored(_record(b"abc"))[:-1], "is cut"),
        (stored(_record(b"abc"))[:13], "is cut"),
        (deflated(_record(b"abc"))[:-1], "is cut"),
        (stored(_record(b"abc"))[:-2] + b"\x01\x00", "checksum"),
        (b"\x1f\x8b" + bytes(50), "cannot be read"),
        (deflated(_record(b"abc" * 99))[:-8] + bytes(8), "cannot be read"),
    ],
)
def test_damage_is_named_with_its_offset(data: bytes, reason: str) -> None:
    """Q5: whatever the bytes are, the records before are given out and the damage is told."""
    good = stored(_record(b"good"))
    disk = ForgetfulDisk()
    disk.overwrite(PATH, good + data)
    reader = iter(WarcReader(disk.open(PATH), PATH.name))
    assert next(reader).block == b"good"
    with pytest.raises(DamagedArchiveError, match=reason) as caught:
        next(reader)
    assert caught.value.offset == len(good)
    assert PATH.name in str(caught.value)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("sha1:" + base64.b32encode(_sha1(b"silk").digest()).decode(), True),
        ("sha1:" + _sha1(b"silk").hexdigest(), True),
        ("SHA-256:" + hashlib.sha256(b"silk").hexdigest().upper(), True),
        ("md5:" + _md5(b"silk").hexdigest(), True),
        ("sha1:" + _sha1(b"3\r\nsil\r\n1\r\nk\r\n0\r\n\r\n").hexdigest(), False),
        ("crc:1", False),
        ("sha1:!", False),
    ],
)
def test_digests_are_checked_in_every_spelling(claim: str, holds: bool) -> None:
    """W1: base 32 and hexadecimal; a wrong or unknown one is told. Of a block, of a payload, of one in chunks."""
    http = "Content-Type: application/http;msgtype=response\r\n"
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    [block] = _read(_record(b"silk", extra=f"WARC-Block-Digest: {claim}\r\n"))
    [payload] = _read(_record(head + b"silk", extra=f"WARC-Payload-Digest: {claim}\r\n{http}"))
    [chunks] = _read(_record(head + b"4\r\nsilk\r\n0\r\n\r\n", extra=f"WARC-Payload-Digest: {claim}\r\n{http}"))
    assert digest_problems(block) == ([] if holds else [f"block digest failed: {claim}"])
    assert digest_problems(payload) == ([] if holds else [f"payload digest failed: {claim}"])
    assert digest_problems(chunks) == ([] if holds else [f"payload digest failed: {claim}"])


def test_a_revisit_has_no_payload_to_check() -> None:
    """D2: its digest is that of the original."""
    [record] = _read(_record(b"", kind="revisit", extra="WARC-Payload-Digest: sha1:AAAA\r\n"))
    assert digest_problems(record) == []


def test_chunk_framing_is_taken_off_only_where_there_is_one() -> None:
    """W1: a payload that only claims to be chunked stays as it is."""
    assert unchunked(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n") == b"abcde"
    assert unchunked(b"no chunks here") == b"no chunks here"

"""What is read back of our own: chains, journals, exported frontiers; and what a store of objects says."""

from __future__ import annotations

import gzip
import os
import tempfile
from itertools import pairwise
from pathlib import Path

from nephila.frontier.embedded.journal import FILE_NAME, Journal
from nephila.frontier.moving.stream import check_stream, read_stream
from nephila.model.errors import FrontierError, StorageError
from nephila.store.s3.answers import Answer, refusal_of
from nephila.store.trail import last_line, lines_of, raw_lines
from nephila.store.trail_line import NO_HASH, Receipt, TrailLine, read_line, spelled
from nephila.testing.disk import ForgetfulDisk

from .target import Choices, Target

_CHAIN = Path("/chain/w0.jsonl")
_FRONTIER = Path("/frontier")


def check_chain(data: bytes) -> None:
    """Every byte belongs to one line; what is no line of ours is passed over; from behind it reads as from before."""
    disk = ForgetfulDisk()
    disk.overwrite(_CHAIN, data)
    raw = list(raw_lines(disk, _CHAIN))
    assert b"".join(line for _, line in raw) == data
    assert all(offset + len(line) == following for (offset, line), (following, _) in pairwise(raw))
    whole = [line for _, line in raw if line.endswith(b"\n")]
    assert last_line(disk, _CHAIN) == (read_line(whole[-1]) if whole else None)
    for line in lines_of(disk, _CHAIN):
        again, digest = spelled(line)
        found = read_line(again)
        assert found is not None
        assert found.hash == digest
        assert spelled(found)[0] == again


def check_journal(data: bytes) -> None:
    """Whatever lies there, what is appended comes back behind what was whole, and what was whole stays."""
    disk = ForgetfulDisk()
    disk.overwrite(_FRONTIER / FILE_NAME, data)
    try:
        before = Journal(disk, _FRONTIER, 7).records(3)
    except FrontierError:
        return  # a whole record with its checksum, and what is in it is not ours: that is told
    journal = Journal(disk, _FRONTIER, 7)
    journal.append(3, len(before), [(1, {b"key": b"value", b"gone": None})])
    assert journal.records(3) == [*before, [(1, {b"key": b"value", b"gone": None})]]
    journal.close()


def check_export(data: bytes) -> None:
    """A file is read to its end, or what is wrong with it is told."""
    choices = Choices(data)
    packed, body = choices.number(2), choices.rest()
    path = Path(tempfile.gettempdir()) / f"nephila-fuzz-{os.getpid()}"
    path.write_bytes(gzip.compress(body, 1, mtime=0) if packed else body)
    try:
        for read in (check_stream, lambda one: list(read_stream(one))):
            try:
                read(path)
            except (FrontierError, StorageError) as error:
                assert str(error)
                assert "\n" not in str(error)
    finally:
        path.unlink()


def check_refusal(data: bytes) -> None:
    """Whatever a store says, there is one sentence for it."""
    choices = Choices(data)
    status = (400, 403, 404, 409, 412, 301, 500, 503, 200)[choices.number(9)]
    answer = Answer(status, {"date": "today"}, choices.rest())
    error = refusal_of(answer, "bucket", "written")
    assert str(error)
    assert "\n" not in str(error)
    assert str(error).isprintable()
    for part in answer.parts("Contents"):
        assert part.field("Key") is not None


def _journal() -> bytes:
    disk = ForgetfulDisk()
    journal = Journal(disk, _FRONTIER, 7)
    for transaction, number in ((2, 0), (3, 0), (3, 1)):
        journal.append(transaction, number, [(number, {b"a" * 20: b"b" * 30})])
    file = disk.open(_FRONTIER / FILE_NAME)
    return file.read_at(0, file.size())


_LINE = spelled(TrailLine(1, "2026-01-31T12:00:00.123Z", NO_HASH, "w0", [("a", 1)], [("warc/a", 0, 9, NO_HASH, 1)]))[0]
_RECEIPT = Receipt("warc/a", (9, NO_HASH), (5, NO_HASH), ["00"], "asked for")
_MORE = spelled(
    TrailLine(2, "2026-01-31T12:00:01.123Z", NO_HASH, heads={"w1": (3, NO_HASH)}, receipt=_RECEIPT, end=True)
)[0]
_ROWS = (
    b'{"kind":"crawl","format":1,"secret":"00"}\n{"kind":"domain","name":"a.test"}\n{"kind":"host","name":"www.a.test"}\n'
    b'{"kind":"url","url":"http://www.a.test/","state":"queued"}\n{"kind":"end","rows":{"crawl":1},"sha256":"00"}\n'
)
TARGETS = (
    Target("chain", check_chain, (_LINE + _MORE, _LINE[:-3], b"\n\n" + _LINE), (b'"hash":"', b'"}\n', b"\n", b'"prev":"', NO_HASH.encode())),
    Target("journal", check_journal, (_journal(), _journal()[:-5], b""), (b"\0" * 24, b"\x03" + b"\0" * 7)),
    Target(
        "export",
        check_export,
        (b"\1" + _ROWS, b"\0" + gzip.compress(_ROWS, mtime=0), b"\1" + _ROWS[:60]),
        (b'{"kind":"', b'"url":"', b'"state":"', b'"}\n', b"\n", b'"rows":{', b'"sha256":"', b"null", b"1e999", b"-1", b"\x1f\x8b\x08"),
        2048,
    ),
    Target(
        "refusal",
        check_refusal,
        (
            b"\0<Error><Code>SlowDown</Code><Message>Please &lt;wait&gt;</Message><Region>eu-1</Region></Error>",
            b"\2<ListBucketResult><Contents><Key>a&amp;b</Key></Contents><Contents><Key>c</Key></Contents></ListBucketResult>",
            b"\1<Error><Code>RequestTimeTooSkewed</Code><ServerTime>now</ServerTime></Error>",
        ),
        (b"<Code>", b"</Code>", b"<Message>", b"</Message>", b"<Region>", b"</Region>", b"&#10;", b"NoSuchBucket", b"<Contents>", b"<Key>"),
        1024,
    ),
)  # fmt: skip

"""Our files in the hands of others: warcio, FastWARC, cdxj-indexer."""

import io
import subprocess
import sys
import warnings
from pathlib import Path

from warc_checks import WARCIO
from warcio.archiveiterator import ArchiveIterator

from nephila.store import LocalDisk
from nephila.store.reader import WarcReader
from nephila.store.verify import digest_problems

from .conftest import StoredCrawl, store_crawl

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # FastWARC warns about its own old names while it is imported
    from fastwarc.warc import ArchiveIterator as FastArchiveIterator
    from fastwarc.warc import WarcRecordType

BIN = Path(sys.executable).parent


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    program = list(WARCIO) if command[0] == "warcio" else [str(BIN / command[0])]
    return subprocess.run([*program, *command[1:]], capture_output=True, text=True, check=False, timeout=60)


def _expected(crawl: StoredCrawl) -> dict[str, bytes]:
    """Record id of every response to the block it must hold."""
    return {
        stored.record_id: capture.fetched.head + capture.fetched.payload
        for (capture, stored), row in zip(crawl.written, crawl.rows, strict=True)
        if row.kind == "response"
    }


def test_warcio_reads_every_answer_byte_for_byte(stored_crawl: StoredCrawl) -> None:
    """W1: heads and payloads, chunk framing and coding included."""
    found = {}
    with stored_crawl.warc.open("rb") as stream:
        for record in ArchiveIterator(stream, no_record_parse=True):
            block = record.raw_stream.read()
            if record.rec_type == "response":
                found[record.rec_headers.get_header("WARC-Record-ID").strip("<>")] = block
    assert found == _expected(stored_crawl)


def test_warcio_finds_every_digest_right(stored_crawl: StoredCrawl) -> None:
    """W1: block and payload digests as `warcio check` computes them, HTTP heads parsed."""
    checked = 0
    with stored_crawl.warc.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests=True):
            while record.raw_stream.read(65_536):
                pass
            assert record.digest_checker.problems == []
            checked += record.digest_checker.passed is True
    assert checked == sum(1 for _ in _our_records(stored_crawl)) - 2  # it does not check revisits


def test_fastwarc_reads_every_answer_byte_for_byte(stored_crawl: StoredCrawl) -> None:
    """W1: and finds every digest right, where it looks for the payload where it is.

    A revisit's payload is elsewhere; and it knows no head whose lines end without a carriage return.
    """
    found = {}
    with stored_crawl.warc.open("rb") as stream:
        for record in FastArchiveIterator(stream, parse_http=False):
            assert record.verify_block_digest(consume=False)
            if record.record_type == WarcRecordType.response:
                found[record.record_id.strip("<>").removeprefix("urn:uuid:")] = record.reader.read()
    expected = {key.removeprefix("urn:uuid:"): value for key, value in _expected(stored_crawl).items()}
    assert found == expected
    with stored_crawl.warc.open("rb") as stream:
        for record in FastArchiveIterator(stream, parse_http=True):
            if record.record_type == WarcRecordType.response and not record.headers["WARC-Target-URI"].endswith(
                "/bare"
            ):
                assert record.verify_payload_digest(consume=True)


def _our_records(crawl: StoredCrawl):  # noqa: ANN202 - an iterator of records
    file = LocalDisk().open(crawl.warc)
    try:
        yield from WarcReader(file, crawl.warc.name)
    finally:
        file.close()


def test_our_own_reader_agrees_with_both(stored_crawl: StoredCrawl) -> None:
    """W1: same records, same offsets and lengths, no digest wrong."""
    ours = [(record.kind, record.offset, record.length) for record in _our_records(stored_crawl)]
    assert [problem for record in _our_records(stored_crawl) for problem in digest_problems(record)] == []
    theirs = []
    with stored_crawl.warc.open("rb") as stream:
        iterator = ArchiveIterator(stream, no_record_parse=True)
        theirs = [(one.rec_type, iterator.get_record_offset(), iterator.get_record_length()) for one in iterator]
    assert ours == theirs
    with stored_crawl.warc.open("rb") as stream:
        offsets = [record.stream_pos for record in FastArchiveIterator(stream)]
    assert offsets == [offset for _, offset, _ in ours]


def test_the_checkers_of_both_tools_pass(stored_crawl: StoredCrawl, tmp_path: Path) -> None:
    """W1: as a user runs them.

    `fastwarc check -p` looks for the payload of a revisit in the revisit itself, and knows no head whose lines end
    without a carriage return. It is given a crawl without those; all else is in it.
    """
    taken = [capture for capture, _ in stored_crawl.written[:-2] if b"\r\n" in capture.fetched.head]
    crawl = store_crawl(tmp_path, taken)
    assert _run("fastwarc", "check", "-q", str(stored_crawl.warc)).returncode == 0
    checked = _run("warcio", "check", "-v", str(crawl.warc))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "digest pass" in checked.stdout
    revisits = crawl.rows[-2].offset
    crawl.warc.write_bytes(crawl.warc.read_bytes()[:revisits])
    assert _run("fastwarc", "check", "-q", "-p", str(crawl.warc)).returncode == 0


def test_a_record_is_read_at_its_offset_alone(stored_crawl: StoredCrawl) -> None:
    """W1: what the index promises: seek, read one member, done."""
    data = stored_crawl.warc.read_bytes()
    for (capture, stored), row in zip(stored_crawl.written, stored_crawl.rows, strict=True):
        member = data[stored.ref.offset : stored.ref.offset + stored.ref.length]
        record = next(iter(ArchiveIterator(io.BytesIO(member), no_record_parse=True)))
        assert record.rec_headers.get_header("WARC-Record-ID") == f"<{stored.record_id}>"
        assert record.rec_type == row.kind
        assert record.rec_headers.get_header("WARC-Target-URI") == capture.fetched.url


def test_our_index_is_that_of_cdxj_indexer(stored_crawl: StoredCrawl) -> None:
    """W1, H3: byte for byte, one line for each response, revisit and resource, but for a 304: the page is elsewhere."""
    made = _run("cdxj-indexer", "--sort", str(stored_crawl.warc))
    assert made.returncode == 0, made.stderr
    theirs = made.stdout.splitlines()
    assert stored_crawl.index.read_text().splitlines() == [line for line in theirs if '"status": "304"' not in line]
    resources = sum(capture.rules is not None for capture, _ in stored_crawl.written)
    assert len(theirs) == len(stored_crawl.written) + resources


def test_dates_are_understood(stored_crawl: StoredCrawl) -> None:
    """W1: milliseconds survive in FastWARC, whole seconds elsewhere."""
    with stored_crawl.warc.open("rb") as stream:
        record = next(iter(FastArchiveIterator(stream, record_types=WarcRecordType.response)))
    assert round(record.record_date.timestamp() * 1000) == stored_crawl.written[0][1].at

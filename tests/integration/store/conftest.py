"""A directory of WARC files with every kind of capture in it, indexed."""

import gzip
from dataclasses import dataclass, replace
from pathlib import Path

import brotlicffi as brotli
import pytest
import zstandard

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.exchange import Truncation
from nephila.model.record import Capture, StoredCapture
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import (
    assorted_captures,
    chunked,
    decode_sample,
    fetched_sample,
    original_of,
    page_capture,
    row_of,
)

_BODY = b"<html><body>" + bytes(range(32, 127)) * 40 + b"</body></html>"
_URL = "https://spiders.example/"


def decode_any(head: bytes, payload: bytes) -> bytes:
    """Brotli and Zstandard on top of the sample codings."""
    if b"Content-Encoding: br" in head:
        return brotli.decompress(payload)
    if b"Content-Encoding: zstd" in head:
        return zstandard.decompress(payload)
    try:
        return decode_sample(head, payload)
    except ValueError:
        return payload  # the header promised chunks that did not come


def more_captures() -> list[Capture]:
    """What servers also send: other codings, cuts in the middle of a chunk, codings that are a lie, error pages."""
    fetches = [
        fetched_sample(_URL + "br", brotli.compress(_BODY), _BODY, Content_Encoding="br"),
        fetched_sample(_URL + "zstd", zstandard.compress(_BODY), _BODY, Content_Encoding="zstd"),
        replace(
            fetched_sample(_URL + "cut-chunk", chunked(_BODY)[:333], Transfer_Encoding="chunked"),
            body=decode_sample(b"Transfer-Encoding: chunked", chunked(_BODY)[:333]),
            truncated=Truncation.DISCONNECT,
        ),
        fetched_sample(_URL + "no-chunks", _BODY, Transfer_Encoding="chunked"),
        fetched_sample(_URL + "big-gzip", gzip.compress(_BODY * 40, 0), _BODY * 40, Content_Encoding="gzip"),
        fetched_sample("http://spiders.example:8080/A%20b/?z=1&a=2&PHPSESSID=" + "0" * 32, _BODY),
        fetched_sample("https://www.xn--bcher-kva.example/", _BODY, Content_Type='Text/HTML ;charset="x"'),
    ]
    captures = [page_capture(100 + number, fetched) for number, fetched in enumerate(fetches)]
    gone = fetched_sample(_URL + "gone", b"gone")
    head = gone.head.replace(b"200 OK", b"404 Not Found")
    captures.append(page_capture(120, replace(gone, head=head, status=404)))
    bare = b"HTTP/1.0 200 OK\nServer: old\n\n"
    captures.append(page_capture(121, replace(gone, url=_URL + "bare", head=bare, headers=(("server", "old"),))))
    return captures


@dataclass(frozen=True)
class StoredCrawl:
    """Where it lies and what is in it."""

    directory: Path
    written: list[tuple[Capture, StoredCapture]]
    rows: list[CaptureRow]

    @property
    def warc(self) -> Path:
        return self.directory / self.written[0][1].ref.segment

    @property
    def index(self) -> Path:
        return self.warc.with_name(self.warc.name.removesuffix(".warc.gz") + ".cdxj")


def store_crawl(directory: Path, captures: list[Capture]) -> StoredCrawl:
    """These captures, and after them a copy of the first and a 304 of it."""
    identity = CrawlIdentity(secret=1, user_agent="Nephila/0.1 (+https://nephila.invalid/bot)")
    archive = LocalArchive(directory, ArchiveSettings(), VirtualClock(), identity, LocalDisk(), decode_any)
    written = [(capture, archive.append(capture)) for capture in captures]
    first, stored = written[0]
    original = original_of(first, stored)
    copy = replace(page_capture(500, replace(first.fetched, url="https://copy.example/X")), revisit_of=original)
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    unchanged = replace(first.fetched, head=head, payload=b"", body=b"", status=304, headers=(("etag", "x"),))
    later = replace(unchanged, sent_at=unchanged.sent_at + 60_000)
    not_modified = replace(page_capture(501, later), revisit_of=original, not_modified=True)
    written += [(capture, archive.append(capture)) for capture in (copy, not_modified)]
    archive.close()
    rows = [row_of(capture, one) for capture, one in written]
    archive.write_index(stored.ref.segment, rows)
    return StoredCrawl(directory, written, rows)


@pytest.fixture(scope="session")
def stored_crawl(tmp_path_factory: pytest.TempPathFactory) -> StoredCrawl:
    return store_crawl(tmp_path_factory.mktemp("archive"), [*assorted_captures(), *more_captures()])

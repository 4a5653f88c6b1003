"""W1, Q1: CPU per captured page of our WARC writer against warcio and FastWARC, in one run, on the same pages.

Each writer stores the same exchange: response, request and metadata records, digests included, into memory; ours also
makes all of a capture's fields. FastWARC is given its fastest level, warcio has but one. Pages are 30 KB of HTML, once
as they come from most servers (gzip) and once plain. Figures are CPU microseconds a page, the best of three rounds; the
ratios are what counts. Also: reading back, and rows into the catalogue.

Usage: python bench/warc.py [--pages N] [--json]
"""

from __future__ import annotations

import argparse
import io
import json
import random
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk, SqliteCatalogue
from nephila.store.capture import encode_capture
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import decode_sample, fetched_sample, page_capture
from nephila.testing.contracts.catalogue import sample_row

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.stream_io import GzipWriter
    from fastwarc.warc import WarcRecord, WarcRecordType

IDENTITY = CrawlIdentity(secret=1)


def html(number: int, size: int = 30_000) -> bytes:
    """Text that compresses about as well as pages do (four to one)."""
    draw = random.Random(number)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(900)]
    parts, length = ["<html><body>"], 0
    while length < size:
        parts.append(f'<p class="text"><a href="/{draw.choice(words)}">{" ".join(draw.choices(words, k=9))}</a></p>')
        length += len(parts[-1])
    return "".join(parts).encode()[:size]


def captures(count: int, *, coded: bool) -> list[Capture]:
    """As many different pages, with eighty links each."""
    made = []
    for number in range(count):
        body = html(number)
        payload = zlib.compress(body, 6, 31) if coded else body
        headers = {"Content_Encoding": "gzip"} if coded else {}
        fetched = fetched_sample(f"https://spiders.example/{number}", payload, body, **headers)
        links = tuple(f"https://spiders.example/page/{number}/{link}?ref=list a" for link in range(80))
        made.append(replace(page_capture(number, fetched), outlinks=links))
    return made


def cpu_us(act: Callable[[Capture], object], pages: list[Capture]) -> float:
    """CPU microseconds a page: the best of three rounds."""
    rounds = []
    for _ in range(3):
        start = time.process_time()
        for page in pages:
            act(page)
        rounds.append((time.process_time() - start) / len(pages) * 1e6)
    return min(rounds)


def with_warcio() -> Callable[[Capture], object]:
    writer = WARCWriter(io.BytesIO(), gzip=True, warc_version="1.1")

    def write(page: Capture) -> None:
        fetched = page.fetched
        head = StatusAndHeaders("200 OK", list(fetched.headers), protocol="HTTP/1.1")
        sent = StatusAndHeaders("GET / HTTP/1.1", [("Host", "spiders.example")], is_http_request=True)
        response = writer.create_warc_record(
            fetched.url, "response", payload=io.BytesIO(fetched.payload), http_headers=head
        )
        request = writer.create_warc_record(fetched.url, "request", http_headers=sent)
        writer.write_request_response_pair(request, response)
        fields = "".join(f"outlink: {link}\r\n" for link in page.outlinks).encode()
        writer.write_record(
            writer.create_warc_record(
                fetched.url, "metadata", payload=io.BytesIO(fields), warc_content_type="application/warc-fields"
            )
        )

    return write


def with_fastwarc() -> Callable[[Capture], object]:
    def write(page: Capture) -> None:
        fetched = page.fetched
        fields = "".join(f"outlink: {link}\r\n" for link in page.outlinks).encode()
        blocks = (
            (WarcRecordType.response, fetched.head + fetched.payload),
            (WarcRecordType.request, fetched.request),
            (WarcRecordType.metadata, fields),
        )
        for kind, block in blocks:
            record = WarcRecord()
            record.init_headers(kind, content_length=len(block))
            record.headers["WARC-Target-URI"] = fetched.url
            record.set_bytes_content(block)
            writer = GzipWriter(io.BytesIO(), compression_level=1)
            record.write(writer, checksum_data=True)
            writer.finish()

    return write


def reading_us(pages: list[Capture]) -> tuple[float, float]:
    """Appending to a real file, and reading it back with bodies decoded."""
    with tempfile.TemporaryDirectory() as folder:
        archive = LocalArchive(Path(folder), ArchiveSettings(), VirtualClock(), IDENTITY, LocalDisk(), decode_sample)
        appended = cpu_us(archive.append, pages)
        archive.close()
        [segment] = archive.segments()
        start = time.process_time()
        count = sum(1 for _ in archive.tail(segment, 0))
        return appended, (time.process_time() - start) / count * 1e6


def catalogue_us(rows: int, batch: int = 500) -> float:
    """CPU microseconds a row, indexes and figures of domains included."""
    made = [
        replace(sample_row(number), fingerprint=random.Random(number).randbytes(16), domain=f"d{number % 997}.example")
        for number in range(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        catalogue = SqliteCatalogue(Path(folder) / "catalogue.sqlite")
        start = time.process_time()
        for first in range(0, rows, batch):
            catalogue.record(made[first : first + batch], ())
        spent = (time.process_time() - start) / rows * 1e6
        catalogue.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures: dict[str, float] = {}
    for name, coded in (("gzip", True), ("plain", False)):
        pages = captures(chosen.pages, coded=coded)
        figures[f"{name} nephila"] = cpu_us(lambda page: encode_capture(page, IDENTITY), pages)
        figures[f"{name} fastwarc"] = cpu_us(with_fastwarc(), pages)
        figures[f"{name} warcio"] = cpu_us(with_warcio(), pages)
        figures[f"{name} append"], figures[f"{name} read back"] = reading_us(pages)
    figures["catalogue row"] = catalogue_us(chosen.rows)
    if chosen.json:
        print(json.dumps({name: round(value, 2) for name, value in figures.items()}))
        return
    for name, value in figures.items():
        ours = figures.get(f"{name.split()[0]} nephila", value)
        print(f"{name:18s} {value:9.1f} us  {value / ours:6.1f} x")


if __name__ == "__main__":
    main()

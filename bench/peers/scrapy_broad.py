"""Scrapy, with the settings that its documentation recommends for broad crawls, robots.txt obeyed.

The spider follows all links by Scrapy's own extractor and keeps every page: as a file, or as a record of a WARC file
(warcio, compressed), which is nearer to what nephila does.

    python scrapy_broad.py SEEDS PAGES OUT [--warc]
"""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SETTINGS = {
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "CONCURRENT_REQUESTS": 100,
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "LOG_LEVEL": "INFO",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 15,
    "REDIRECT_ENABLED": False,
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    # not of that chapter, but of the comparison:
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
}


class Saver:
    """Keeps pages as files."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._count = 0

    def save(self, response: Response) -> None:
        """One file a page."""
        self._count += 1
        (self._out / f"{self._count}.html").write_bytes(response.body)


class WarcSaver(Saver):
    """Keeps pages as records."""

    def __init__(self, out: Path) -> None:
        super().__init__(out)
        self._file = (out / "pages.warc.gz").open("wb")
        self._writer = WARCWriter(self._file, gzip=True)

    def save(self, response: Response) -> None:
        """One response record a page; the body as Scrapy has it, unpacked."""
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, values in response.headers.items()
            for value in values
        ]
        head = StatusAndHeaders(f"{response.status} OK", headers, protocol="HTTP/1.1")
        record = self._writer.create_warc_record(
            response.url, "response", payload=io.BytesIO(response.body), http_headers=head
        )
        self._writer.write_record(record)


class Broad(scrapy.Spider):
    """Follows everything."""

    name = "broad"

    def __init__(self, seeds: list[str], saver: Saver, **given: Any) -> None:  # noqa: ANN401 - Scrapy's own
        super().__init__(**given)
        self._seeds = seeds
        self._saver = saver
        self._extractor = LinkExtractor()

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The seeds."""
        for url in self._seeds:
            yield scrapy.Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[scrapy.Request]:  # noqa: ANN401 - Scrapy's own
        """Keep the page, follow its links."""
        self._saver.save(response)
        if isinstance(response, TextResponse):
            for link in self._extractor.extract_links(response):
                yield scrapy.Request(link.url)


def main() -> None:
    seeds, pages, out = Path(sys.argv[1]).read_text().split(), int(sys.argv[2]), Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    saver = WarcSaver(out) if "--warc" in sys.argv else Saver(out)
    hosts = len(seeds)  # whose robots.txt it counts as pages
    process = CrawlerProcess({**SETTINGS, "CLOSESPIDER_PAGECOUNT": pages + hosts})
    process.crawl(Broad, seeds=seeds, saver=saver)
    process.start()


if __name__ == "__main__":
    main()

"""Q1: what a page costs between the fetcher and the frontier: the sentence alone, in one process.

All parts are those of a crawl (`node/wiring.py`), but for fetcher, frontier and archive, which do nothing: an answer is
there at once, a settle is accepted, a capture lies nowhere. What is left is robots.txt, parsing, judging, duplicates,
what is learned, the row, the event. Pages are those of `local_site`, one a lease, of hosts in turn. Nothing is sent.
CPU of the process, block by block; the least counts.

    nephila bench sentence [--json] [--quick] [--sizes 3,30] [--pages N] [--blocks N] [--profile FILE]

FILE gets the calls of one block more, as `cProfile` counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

from local_site.arguments import numbers, one_sentence
from local_site.pages import Plan, Site
from nephila.interfaces.frontier import Admission, Settled
from nephila.model.errors import NephilaError
from nephila.model.exchange import Fetched, FetchRequest
from nephila.model.outcome import OriginRules, RulesKind
from nephila.model.record import Capture, RecordRef, SegmentId, StoredCapture
from nephila.model.settings import Settings
from nephila.model.task import Lease, Level, Pace, PageTask, Token
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.wiring import Ground, assemble
from nephila.pipeline import Pipeline
from nephila.urls import origin_of

HOSTS, SITE_PAGES, PORT = 200, 20_000, 8080
AT_ONCE = 64
PAGES, QUICK_PAGES, BLOCKS = {3: 1000, 30: 400}, 128, 5
RULES = b"User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\nAllow: /\n"
STORED_AT = 1000
FAR = 10**9
"""In milliseconds: a time that does not come."""


class NoWire:
    """A fetcher that has every answer."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self.bodies: dict[str, bytes] = {}

    async def fetch(self, request: FetchRequest) -> Fetched:
        """As the interface."""
        await asyncio.sleep(0)
        body, now = self.bodies[request.url], self._clock.wall_ms()
        headers = (("content-type", "text/html; charset=utf-8"), ("content-length", str(len(body))), ("etag", '"a"'))
        head, sent_ms = b"HTTP/1.1 200 OK\r\n\r\n", self._clock.steady_ms()
        return Fetched(request.url, b"", head, body, 200, headers, body, "127.0.0.1", now, now, 3, sent_ms=sent_ms)


class NoFrontier:
    """A frontier that accepts, and knows one robots.txt."""

    async def settle(self, *_: object) -> Settled:
        """As the interface."""
        await asyncio.sleep(0)
        return Settled(accepted=True, admission=Admission(3, 10))

    def rules(self, origin: str) -> OriginRules:
        """As the interface."""
        return OriginRules(origin, RulesKind.RULES, RULES, STORED_AT, FAR)


class NoArchive:
    """An archive that keeps nothing."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._offset = 0

    def append(self, _capture: Capture, _encoded: object = None) -> StoredCapture:
        """As the interface."""
        self._offset += 100
        ref = RecordRef(SegmentId("none"), self._offset, 100, self._offset + 100)
        return StoredCapture(ref, f"urn:uuid:{self._offset}", "sha1:A", "identity", self._clock.wall_ms())


class Bench:
    """A pipeline with pages to work on."""

    def __init__(self, folder: Path, kilobytes: int, stack: AsyncExitStack) -> None:
        clock, usual = SystemClock(), Settings()
        settings = replace(usual, scope=replace(usual.scope, mode="all"))
        directory = CrawlDirectory(folder / "crawl")
        stack.enter_context(directory.held())
        self._machinery = assemble(directory, settings, Ground(clock), stack, _broken)
        self._site = Site(Plan(SITE_PAGES, kilobytes, hosts=HOSTS), "http", PORT)
        self._wire, frontier = NoWire(clock), NoFrontier()
        own = self._machinery.pipeline
        stages, self._conduct = own._to, own._conduct  # noqa: SLF001 - nobody else has use for them
        others: dict[str, Any] = {"frontier": frontier, "view": frontier, "fetcher": self._wire}
        stages = replace(stages, archive=NoArchive(clock), **others)  # type: ignore[arg-type]  # as much as is asked
        self._pipeline = Pipeline(stages, self._conduct)
        self._leases = self._endless()

    def _endless(self) -> Iterator[Lease]:
        number = 0
        while True:
            host, page = number % HOSTS, number // HOSTS % self._site.per_host
            number += 1
            url = self._site.url(host, page)
            address = self._conduct.identify(url)
            if address is None:
                raise TypeError(f"{url} is no address")
            if url not in self._wire.bodies:
                self._wire.bodies[url] = self._site.body(host, page)
            task = PageTask(address.fingerprint, url, 2, Level.MEDIUM, via=f"{origin_of(url)}/")
            now, own = self._conduct.now(), address.host
            yield Lease(Token(number), own, own, (task,), 0, now + FAR, Pace(1000), now, STORED_AT)

    async def block(self, pages: int, looking: cProfile.Profile | None = None) -> float:
        """CPU seconds a page of so many pages; what makes them is not counted."""
        leases = list(islice(self._leases, pages))
        with looking or nullcontext():
            began = process_time()
            for first in range(0, pages, AT_ONCE):
                await asyncio.gather(*map(self._pipeline.work, leases[first : first + AT_ONCE]))
            return (process_time() - began) / pages


def _broken(error: NephilaError) -> None:
    raise error


async def measure(kilobytes: int, pages: int, blocks: int, profile: Path | None) -> dict[str, Any]:
    """One size."""
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as folder:
        async with AsyncExitStack() as stack:
            bench = Bench(Path(folder), kilobytes, stack)
            await bench.block(pages)  # memories fill
            spent = [await bench.block(pages) for _ in range(blocks)]
            if profile is not None:
                looking = cProfile.Profile()
                await bench.block(pages, looking)
                looking.dump_stats(profile)
    shown = [round(one * 1e6, 1) for one in spent]
    return {"kilobytes": kilobytes, "pages": pages, "us_per_page": min(shown), "blocks_us": shown}


def _pages(kilobytes: int, *, quick: bool) -> int:
    return QUICK_PAGES if quick else PAGES.get(kilobytes, 400)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="nephila bench sentence", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="two short blocks; ends within 45 s")
    parser.add_argument("--sizes", type=numbers, default=[3, 30], metavar="KB,...", help="page sizes [3,30]")
    parser.add_argument("--pages", type=int, default=0, metavar="N", help="pages of a block [1000 of 3 KB, else 400]")
    parser.add_argument("--blocks", type=int, default=0, metavar="N", help=f"[{BLOCKS}]")
    parser.add_argument("--profile", type=Path, default=None, metavar="FILE", help="where to write counted calls")
    one_sentence(parser)
    given = parser.parse_args()
    if given.pages < 0 or given.blocks < 0:
        parser.error("--pages and --blocks are not under 0")
    blocks = given.blocks or (2 if given.quick else BLOCKS)
    rows = [
        asyncio.run(measure(size, given.pages or _pages(size, quick=given.quick), blocks, given.profile))
        for size in given.sizes
    ]
    if given.json:
        print(json.dumps({"bench": "sentence", "rows": rows}))
        return
    for row in rows:
        print(f"{row['kilobytes']:>4} KB: {row['us_per_page']:.0f} us a page, the least of {row['blocks_us']}")


if __name__ == "__main__":
    main()

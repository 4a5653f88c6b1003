"""X3, Q3: a tree of sitemaps with a million URLs, streamed into the frontier: time, memory, how long the loop stood.

A server in a process of its own serves an index, its sitemaps (50,000 URLs each, one of them 50 MB and not compressed)
and a robots.txt that forbids the pages themselves, so that nothing is measured but the lists. The crawl is the real
one, on disk, in this process; a task beside it asks for the time every five milliseconds, and the longest it had to
wait is the longest that any exchange could have been held up. How long that is when there is nothing to do was measured
right before; and how much the loop's own thread worked between two answers is told beside it, for on a machine that is
shared the rest is waiting for a processor. Memory is this process's own (anonymous) before the crawl, at its peak, and
at its peak in each fifth of the tree, by the entries that were read: bounded is what does not grow with the tree. The
fifth in which the sitemap of 50 MB is read stands out, since a body is held while it is stored and read. The resident
one has the mapped pages of the frontier in it. Exit code 1 where entries are missing, where the fifths differ by more
than the budget allows, that one apart, or where the peak is over its own.

    nephila bench sitemaps [--json] [--quick] [--sitemaps N]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import cast

import uvloop

from nephila.config import load
from nephila.node.inspect import CrawlView
from nephila.node.run import Running, run_crawl
from nephila.seeds import ArgumentSeeds

PER_SITEMAP = 50_000
PLAIN_BYTES = 50_000_000
TICK_S = 0.005
IDLE_S = 5.0
FIFTHS = 5
GROWTH, PEAK_BYTES = 1.25, 300_000_000
"""Q3: the largest of the fifths against the least, the one with the sitemap of 50 MB apart; and the peak at most: that
body a few times, as it came, as it is stored, and as it is read."""


def urlset(origin: str, number: int, *, least_bytes: int = 0) -> bytes:
    """A sitemap of 50,000 URLs; its locations are as long as is needed to make it so large."""
    bare = 190 + len(origin)
    filler = "x" * max(0, least_bytes // PER_SITEMAP - bare)
    entries = [
        f"<url>\n<loc>{origin}/pages/{number}/{place}/a-title-of-some-length-{filler}.html</loc>\n"
        f"<lastmod>2026-01-{place % 28 + 1:02d}T10:00:00+00:00</lastmod>\n"
        "<changefreq>weekly</changefreq>\n<priority>0.5</priority>\n</url>\n"
        for place in range(PER_SITEMAP)
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{''.join(entries)}</urlset>\n".encode()


class _Server(asyncio.Protocol):
    """Answers from a dictionary."""

    def __init__(self, answers: dict[str, tuple[str, bytes]]) -> None:
        self._answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        path = data.partition(b" ")[2].partition(b" ")[0].decode()
        kind, body = self._answers.get(path, ("text/plain", b""))
        status = "200 OK" if body else "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


def _serve(pipe: Pipe, sitemaps: int) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        answers: dict[str, tuple[str, bytes]] = {}
        server = await loop.create_server(lambda: _Server(answers), "127.0.0.1", 0)
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        robots = f"User-agent: *\nDisallow: /pages/\nSitemap: {origin}/index.xml\n"
        answers["/robots.txt"] = "text/plain", robots.encode()
        names = [f"/map-{number}.xml.gz" for number in range(sitemaps - 1)]
        for number, name in enumerate(names):
            answers[name] = "application/gzip", gzip.compress(urlset(origin, number), 1)
        plain = "/map-plain.xml"
        answers[plain] = "application/xml", urlset(origin, sitemaps, least_bytes=PLAIN_BYTES)
        listed = "".join(f"<sitemap><loc>{origin}{name}</loc></sitemap>" for name in [*names, plain])
        answers["/index.xml"] = "application/xml", f"<sitemapindex>{listed}</sitemapindex>".encode()
        answers["/"] = "text/html", b"<title>Home</title><p>Nothing here."
        pipe.send((origin, len(answers[plain][1])))
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(serve())


class _Watch:
    """The longest that the loop did not answer, and the most memory of its own that the process had."""

    def __init__(self, entries: int = 1) -> None:
        self.longest_s = 0.0
        self.longest_work_s = 0.0
        self.anonymous_bytes = 0
        self.by_fifth = [0] * FIFTHS
        self._entries = entries

    async def __call__(self, crawl: Running | None = None, ticks: int = 1 << 62) -> None:
        for tick in range(ticks):
            asked, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            self.longest_work_s = max(self.longest_work_s, time.thread_time() - worked)
            self.longest_s = max(self.longest_s, time.perf_counter() - asked - TICK_S)
            if tick % 10 == 0:
                self._weigh(crawl)

    def _weigh(self, crawl: Running | None) -> None:
        now = anonymous_bytes()
        self.anonymous_bytes = max(self.anonymous_bytes, now)
        if crawl is not None:
            read = crawl.snapshot().listed
            fifth = min(FIFTHS - 1, read * FIFTHS // self._entries)
            self.by_fifth[fifth] = max(self.by_fifth[fifth], now)


def anonymous_bytes() -> int:
    """Memory that is not a mapped file, as the kernel counts it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def measure(sitemaps: int) -> dict[str, object]:
    """Crawl such a tree and tell what it took."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, sitemaps), daemon=True)
    server.start()
    try:
        origin, plain_bytes = ours.recv()
        idle, watch = _Watch(), _Watch(sitemaps * PER_SITEMAP)
        uvloop.run(idle(ticks=round(IDLE_S / TICK_S)))
        before, cpu = anonymous_bytes(), time.process_time()
        settings = (
            "politeness.delay_s=0",
            "fetch.allow_addresses=127.0.0.0/8",
            "limits.max_wait_s=1",
            "scope.mode=host",
            "fetch.timeout_s=200",  # a machine that is shared may take its time over 50 MB
        )
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "crawl"
            summary = run_crawl(out, load(assignments=settings), [ArgumentSeeds([origin])], view=watch)
            lists = dict(CrawlView(out).status().lists)
            known = CrawlView(out).status().known
        return {
            "sitemaps": lists["sitemaps"],
            "entries": lists["entries"],
            "urls_known": known,
            "largest_bytes": plain_bytes,
            "seconds": round(summary.seconds, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
            "us_per_url": round((time.process_time() - cpu) / max(1, lists["entries"]) * 1e6, 1),
            "anonymous_before_bytes": before,
            "anonymous_peak_bytes": watch.anonymous_bytes,
            "anonymous_by_fifth_bytes": watch.by_fifth,
            "is_bounded": _is_bounded(watch.by_fifth),
            "is_whole": lists["entries"] == sitemaps * (PER_SITEMAP + 1),
            "resident_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "longest_stall_ms": round(watch.longest_s * 1000, 1),
            "longest_work_on_loop_ms": round(watch.longest_work_s * 1000, 1),
            "longest_stall_idle_ms": round(idle.longest_s * 1000, 1),
        }
    finally:
        ours.send(None)
        server.join(10)
        if server.is_alive():
            server.kill()


def _is_bounded(by_fifth: list[int]) -> bool:
    ordinary = sorted(one for one in by_fifth if one)[:-1]
    return max(by_fifth) <= PEAK_BYTES and (not ordinary or ordinary[-1] <= GROWTH * ordinary[0])


def main() -> int:
    parser = argparse.ArgumentParser(prog="nephila bench sitemaps", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="three sitemaps instead of twenty")
    parser.add_argument("--sitemaps", type=int, default=0, metavar="N", help="how many of 50,000 URLs each")
    arguments = parser.parse_args()
    uvloop.install()
    report = measure(arguments.sitemaps or (3 if arguments.quick else 20))
    if arguments.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        for name, value in report.items():
            told = ", ".join(f"{one:,}" for one in value) if isinstance(value, list) else f"{value:,}"
            sys.stdout.write(f"{name:24} {told}\n")
    return 0 if report["is_bounded"] and report["is_whole"] else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The script that one writes in an afternoon, written well: aiohttp, selectolax, a queue and a set.

It keeps pages as files and nothing else: no robots.txt, no delays, no archive, nothing that outlives it.

    python script.py SEEDS PAGES OUT [AUTHORITY.pem]
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import aiohttp
from selectolax.lexbor import LexborHTMLParser

CONCURRENCY = 100
GRACE_S = 3.0
"""For what is on the wire when enough have been asked for."""


class Crawl:
    """One crawl."""

    def __init__(self, session: aiohttp.ClientSession, pages: int, out: Path) -> None:
        self.session = session
        self.left = pages
        self.out = out
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.seen: set[str] = set()
        self.saved = 0

    def add(self, url: str) -> None:
        """Queue what is new."""
        if url not in self.seen:
            self.seen.add(url)
            self.queue.put_nowait(url)

    async def work(self) -> None:
        """Fetch until there have been enough."""
        while self.left > 0:
            url = await self.queue.get()
            if self.left <= 0:
                return
            self.left -= 1
            async with self.session.get(url) as answer:
                body = await answer.read()
                if answer.status != 200 or answer.content_type != "text/html":
                    continue
            self.saved += 1
            (self.out / f"{self.saved}.html").write_bytes(body)
            for anchor in LexborHTMLParser(body).css("a[href]"):
                link = urldefrag(urljoin(url, anchor.attributes["href"] or "")).url
                if link.startswith(("http://", "https://")):
                    self.add(link)


async def run(seeds: list[str], pages: int, out: Path, authority: str | None) -> None:
    context = True if authority is None else ssl.create_default_context(cafile=authority)
    connector = aiohttp.TCPConnector(limit=CONCURRENCY, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        crawl = Crawl(session, pages, out)
        for url in seeds:
            crawl.add(url)
        workers = [asyncio.create_task(crawl.work()) for _ in range(CONCURRENCY)]
        await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        _, waiting = await asyncio.wait(workers, timeout=GRACE_S)
        for worker in waiting:  # those that wait for a URL when enough have been fetched
            worker.cancel()
        for ended in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


def main() -> None:
    out = Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    authority = sys.argv[4] if len(sys.argv) > 4 else None
    asyncio.run(run(Path(sys.argv[1]).read_text().split(), int(sys.argv[2]), out, authority))


if __name__ == "__main__":
    main()

"""Crawlee for Python with its leanest HTML crawler (Parsel), queue in memory, robots.txt obeyed, pages kept as files.

python crawlee_parsel.py SEEDS PAGES OUT
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from datetime import timedelta
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

CONCURRENCY = 100


async def crawl(seeds: list[str], pages: int, out: Path) -> None:
    crawler = ParselCrawler(
        max_requests_per_crawl=pages,
        max_request_retries=0,
        use_session_pool=False,
        respect_robots_txt_file=True,
        storage_client=MemoryStorageClient(),
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(
            min_concurrency=CONCURRENCY, max_concurrency=CONCURRENCY, desired_concurrency=CONCURRENCY
        ),
        statistics_log_format="inline",
        status_message_logging_interval=timedelta(hours=1),
    )
    numbers = itertools.count(1)

    @crawler.router.default_handler
    async def keep(context: ParselCrawlingContext) -> None:
        body = await context.http_response.read()
        (out / f"{next(numbers)}.html").write_bytes(body)
        await context.enqueue_links(strategy="all")

    await crawler.run(seeds)


def main() -> None:
    out = Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.INFO)
    asyncio.run(crawl(Path(sys.argv[1]).read_text().split(), int(sys.argv[2]), out))


if __name__ == "__main__":
    main()

"""A first crawl: every page as it is stored. `python first_crawl.py https://example.org site [settings.toml]`."""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import sys

import nephila


async def main(seed: str, out: str, config: str | None = None) -> None:
    """Crawl a hundred pages from `seed` into the directory `out`; running it again goes on."""
    async for page in nephila.crawl(seed, out=out, config=config, max_pages=100):
        print(page.status, page.url, page.title, f"({len(page.links)} links)")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))

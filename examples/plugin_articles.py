"""A link filter: follow articles only. `python plugin_articles.py https://example.org site [settings.toml]`.

A filter is asked once a page, with all links that the crawl's own rules let through, and answers for each of them: True
lets it in, a text keeps it out and is what `nephila why` tells of it. This one is an ordinary, synchronous class, so it
runs in a process of its own: were it to hang, it would be ended, and the crawl would go on without it.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import re
import sys
from collections.abc import Sequence

import nephila
from nephila.model.page import Link
from nephila.model.plugin import Glimpse


class OnlyArticles:
    """Lets in what looks like an article: a page with a number, and the front pages that lead to them."""

    name = "only-articles"

    def __init__(self, pattern: str = r"-\d+(\.html|/)?$") -> None:
        self.pattern = pattern

    def filter_links(self, page: Glimpse, links: Sequence[Link]) -> list[bool | str]:
        """One answer a link."""
        wanted = re.compile(self.pattern)
        return [True if _path(link.url) == "/" or wanted.search(_path(link.url)) else "no article" for link in links]


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3].partition("?")[0]


async def main(seed: str, out: str, config: str | None = None) -> None:
    """Crawl articles only, and say what was kept out."""
    stream = nephila.crawl(seed, out=out, config=config, max_pages=100, plugins=[OnlyArticles()])
    async for page in stream:
        print(page.status, page.url)
    if stream.summary is not None:
        print(f"{stream.summary.refused.get('plugin', 0)} links kept out, failures: {dict(stream.summary.plugins)}")


if __name__ == "__main__":  # the plugin's own process imports this file: it must not begin another crawl
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))

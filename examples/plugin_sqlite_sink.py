"""A record sink: pages into a SQLite database. `python plugin_sqlite_sink.py https://example.org site [settings.toml]`.

A sink gets every page that was stored and settled, in batches, beside the crawl; a sink that falls behind slows the
crawl down, and one that fails loses a batch, which is counted. It opens its database where it runs, in its own process,
and closes it when the crawl has ended.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing

import nephila
from nephila.model.plugin import PageRecord


class SqliteSink:
    """Writes pages and their links."""

    name = "sqlite-sink"

    def __init__(self, file: str) -> None:
        self.file = file
        self._connection: sqlite3.Connection | None = None

    def write_records(self, records: Sequence[PageRecord]) -> None:
        """Take a batch, in one transaction."""
        if self._connection is None:
            self._connection = sqlite3.connect(self.file)
            self._connection.execute("CREATE TABLE IF NOT EXISTS page (url PRIMARY KEY, status, title, digest)")
            self._connection.execute("CREATE TABLE IF NOT EXISTS link (source, target, text)")
        with self._connection as connection:
            for page in records:
                row = (page.url, page.status, page.title, page.digest)
                connection.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", row)
                links = [(page.url, link.url, link.text) for link in page.links]
                connection.executemany("INSERT INTO link VALUES (?, ?, ?)", links)

    def close(self) -> None:
        """The crawl has ended."""
        if self._connection is not None:
            self._connection.close()


async def main(seed: str, out: str, config: str | None = None, file: str = "pages.sqlite") -> None:
    """Crawl into the database, then ask it something."""
    await nephila.crawl(seed, out=out, config=config, max_pages=100, plugins=[SqliteSink(file)]).run()
    with closing(sqlite3.connect(file)) as connection:
        [(pages,)] = connection.execute("SELECT count(*) FROM page").fetchall()
        print(f"{pages} pages in {file}; most linked to:")
        question = "SELECT count(DISTINCT source), target FROM link GROUP BY target ORDER BY 1 DESC, 2 LIMIT 3"
        for number, target in connection.execute(question):
            print(f"{number:6}  {target}")


if __name__ == "__main__":  # the plugin's own process imports this file: it must not begin another crawl
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))

"""Stop a crawl from code and go on with it later. `python stop_and_resume.py https://example.org site`.

`stop` ends cleanly: no new request leaves, answers on the wire arrive and are stored, all else stays queued. The second
crawl needs no seed and no settings: the directory remembers both. Ctrl-C, kill -9 or a power cut in place of `stop`
would make no difference to what comes after.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import sys

import nephila

FIRST = 10


async def main(seed: str, out: str, config: str | None = None) -> None:
    """Crawl until `FIRST` pages have come, stop, look, go on to the end."""
    before: set[str] = set()
    stream = nephila.crawl(seed, out=out, config=config, max_pages=100)
    async for page in stream:  # what was on the wire when it stopped still comes
        before.add(page.url)
        if len(before) == FIRST:
            stream.stop()
    if stream.summary is not None:
        print(f"stopped by {stream.summary.stopped_by}: {len(before)} pages, {stream.summary.remaining} URLs queued")

    after = {page.url async for page in nephila.crawl(out=out)}
    print(f"went on: {len(after)} more pages, {len(before & after)} of them twice")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))

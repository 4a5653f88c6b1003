"""A listener: what a crawl tells of itself, as it happens. `python follow_events.py https://example.org site`.

A listener is any object with `emit`, `flush` and `close` (`nephila.interfaces.events.EventSink`). It is called on the
crawl's own loop for every event, so it must be quick; what it raises stops the crawl cleanly and comes out of `run`.
The same events stand in the crawl directory, one JSON object a line.
"""
# ruff: noqa: T201 - an example shows what it finds

import asyncio
import sys
from collections import Counter

import nephila
from nephila.model.events import Event, EventKind


class SlowPages:
    """Counts events by kind, and remembers the slowest answers."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.slowest: list[tuple[int, str]] = []

    def emit(self, event: Event) -> None:
        """Take one event."""
        self.kinds[event.kind] += 1
        if event.kind is EventKind.FETCH_OK and event.elapsed_ms is not None:
            self.slowest = sorted([*self.slowest, (event.elapsed_ms, event.url)], reverse=True)[:5]

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""


async def main(seed: str, out: str, config: str | None = None) -> None:
    """Crawl to the end without looking at the pages; then say what was heard."""
    listener = SlowPages()
    summary = await nephila.crawl(seed, out=out, config=config, max_pages=100, listeners=[listener]).run()
    print(f"{summary.pages} pages in {summary.seconds:.1f} s, ended by: {summary.stopped_by}")
    for kind, count in listener.kinds.most_common():
        print(f"{count:6}  {kind}")
    for elapsed_ms, url in listener.slowest:
        print(f"{elapsed_ms:4} ms  {url}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))

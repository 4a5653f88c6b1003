"""Seeds read beside the event loop: a list may be a pipe into which nobody writes, and Ctrl-C must still be heard.

A thread of its own reads ahead, a bounded number of seeds; the loop takes what there is, as soon as there is any, so
that seeds which trickle in are crawled as they come. The thread is a daemon: one that is stuck in a read does not keep
the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice

from nephila.seeds import Seed, SeedSource

BATCH = 1000
AHEAD = 10_000
"""Seeds that are read before anybody has taken them: some megabytes at most."""


async def seed_batches(sources: Sequence[SeedSource], *, threaded: bool) -> AsyncIterator[list[Seed]]:
    """The seeds of all sources in batches. Raises what a source raises, after what was read before it."""
    if threaded:
        reader = _SeedReader(sources)
        try:
            while batch := await reader.take():
                yield batch
        finally:
            reader.leave()
        return
    seeds: Iterator[Seed] = chain.from_iterable(sources)
    while batch := list(islice(seeds, BATCH)):
        yield batch


class _SeedReader:
    """The thread and what it has read. `take` belongs to the loop, `_run` to the thread."""

    def __init__(self, sources: Iterable[SeedSource]) -> None:
        self._sources = sources
        self._loop = asyncio.get_running_loop()
        self._read: deque[Seed] = deque()
        self._room = threading.Semaphore(AHEAD)
        self._news = asyncio.Event()
        self._idle = False
        self._left = False
        self._over = False
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="nephila-seeds", daemon=True).start()

    async def take(self) -> list[Seed]:
        """What was read meanwhile, at least one seed; empty at the end."""
        while not self._read and not self._over:
            self._news.clear()
            self._idle = True
            if not self._read and not self._over:
                await self._news.wait()
            self._idle = False
        batch = [self._read.popleft() for _ in range(min(len(self._read), BATCH))]
        if batch:
            self._room.release(len(batch))
        elif self._error is not None:
            raise self._error
        return batch

    def leave(self) -> None:
        """Nobody takes any more: the thread ends when it next looks up."""
        self._left = True
        self._room.release()

    def _run(self) -> None:
        try:
            for seed in chain.from_iterable(self._sources):
                self._room.acquire()
                if self._left:
                    return
                self._read.append(seed)
                self._wake()
        except BaseException as error:  # noqa: BLE001 - handed to the loop, where it is raised
            self._error = error
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._idle or self._over:
            with suppress(RuntimeError):  # the loop is closed: the crawl has ended without us
                self._loop.call_soon_threadsafe(self._news.set)

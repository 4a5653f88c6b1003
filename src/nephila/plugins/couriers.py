"""What is carried to sinks beside the crawl: a bounded queue, and a task that hands over what has gathered.

Records are waited for: where the sink is behind, the crawl slows down with it, as with every reader of pages. Events
are not, because whoever tells one must not be held up: those that find the queue full are dropped and counted.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from .keeping import FAILURES, Kept
from .points import Point

T = TypeVar("T")


class Courier(Generic[T]):
    """Carries things to one plugin."""

    def __init__(self, kept: Kept, point: Point, *, waiting: int, at_once: int) -> None:
        """`waiting` are as many as the queue holds, `at_once` as many as are handed over together."""
        self.kept = kept
        self._point = point
        self._queue: asyncio.Queue[T | None] = asyncio.Queue(waiting)
        self._at_once = at_once
        self._task: asyncio.Task[None] | None = None

    async def send(self, thing: T) -> None:
        """Queue something; waits while the queue is full."""
        if self.kept.is_off:
            self.kept.lose(1)
            return
        self._begin()
        await self._queue.put(thing)

    def send_now(self, thing: T) -> None:
        """Queue something, or drop it."""
        if self.kept.is_off or self._queue.full():
            self.kept.lose(1)
            return
        self._begin()
        self._queue.put_nowait(thing)

    async def settle(self) -> None:
        """Hand over all that is queued; then nothing more is taken until something is sent again."""
        if self._task is not None:
            task, self._task = self._task, None
            await self._queue.put(None)
            await task

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._carry(), name=f"plugin-{self.kept.name}-{self._point}")

    async def _carry(self) -> None:
        last = False
        while not last:
            batch: list[T] = []
            last = not self._take(await self._queue.get(), batch)
            while not last and len(batch) < self._at_once and not self._queue.empty():
                last = not self._take(self._queue.get_nowait(), batch)
            if not batch:
                continue
            try:
                await self.kept.ask(self._point, batch)
            except FAILURES:
                self.kept.lose(len(batch))  # the failure itself is counted and told

    @staticmethod
    def _take(thing: T | None, batch: list[T]) -> bool:
        """Add something to a batch; False for the mark of the end."""
        if thing is None:
            return False
        batch.append(thing)
        return True

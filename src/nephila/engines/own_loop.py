"""An event loop of its own in a thread: for callers that are synchronous, of client libraries that are not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


class OwnLoop:
    """Runs until `close`. Safe for threads."""

    def __init__(self, name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.is_closed = False
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something there and wait for what comes of it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Do one last thing, and end the thread."""
        self.is_closed = True
        try:
            self.run(last)
            self.run(_settle())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


async def _settle() -> None:
    """End what a library has left running."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)

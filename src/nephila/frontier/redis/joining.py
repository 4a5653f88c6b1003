"""Links of several pages to one shard, told in one call.

Nearly every link that leaves a page's domain goes to another shard, and a call costs the engine as much for its
beginning and its end as for what is in it. So what pages have for a shard in the same moment goes there together:
whoever is first waits that moment (`linger_s`), and takes along what has come meanwhile. A call that is full leaves at
once. Whoever cannot wait leaves with the next turn of the event loop, and takes along those who do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from nephila.interfaces.frontier import Admission

from .asking import Args, Asked

MOST = 32
"""Pages in one call: the engine answers nobody else meanwhile."""


class Part(NamedTuple):
    """What one page has for a shard."""

    asked: Asked
    source: dict[str, Any]
    args: Args


Send = Callable[[int, Sequence[Part]], Awaitable[list[Admission]]]


class Joining:
    """Gathers the parts of each shard, and sends them by `send`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.linger_s = 0.0
        """How long the first part of a call waits for company."""
        self._waiting: dict[int, list[tuple[Part, asyncio.Future[Admission]]]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def admit(self, shard: int, part: Part, *, waits: bool = False) -> asyncio.Future[Admission]:
        """What becomes of a part; `waits`: it may wait for company.

        No coroutine: a page has ten of these, and a task for each costs more than it.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Admission] = loop.create_future()
        waiting = self._waiting.get(shard)
        if waiting is None:
            self._waiting[shard] = waiting = []
            if waits and self.linger_s:
                loop.call_later(self.linger_s, self._leave, shard, waiting)
        if not (waits and self.linger_s):
            loop.call_soon(self._leave, shard, waiting)
        waiting.append((part, told))
        if len(waiting) == MOST:
            self._leave(shard, waiting)  # the next one begins another call
        return told

    def _leave(self, shard: int, together: list[tuple[Part, asyncio.Future[Admission]]]) -> None:
        """Make the call, unless it was full and has left."""
        if self._waiting.get(shard) is not together:
            return
        del self._waiting[shard]
        # A task of its own: whoever began it may be cancelled, and the others want their answers all the same.
        task = asyncio.create_task(self._deliver(shard, together), name=f"links to shard {shard}")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _deliver(self, shard: int, together: list[tuple[Part, asyncio.Future[Admission]]]) -> None:
        try:
            answers = await self._send(shard, [part for part, _ in together])
        except BaseException as error:
            for _, told in together:
                if not told.done():
                    told.set_exception(error) if isinstance(error, Exception) else told.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, told), answer in zip(together, answers, strict=True):
            if not told.done():
                told.set_result(answer)

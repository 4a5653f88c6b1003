"""Who is at work: workers that tell the engine from time to time that they live.

What is known of others only decides which shards a worker asks first (N1). Nothing goes wrong where it is wrong: every
worker asks every shard sooner or later, so nothing of a dead one is left behind.
"""

from __future__ import annotations

from nephila.engines.valkey import Valkey

from .shards import crawl_key

ALIVE_S = 30
"""A worker that was not heard of for so long is not counted."""


class Presence:
    """The workers of a crawl, by when they were last heard of."""

    def __init__(self, valkey: Valkey, crawl: str, worker: str) -> None:
        self._valkey, self._worker = valkey, worker
        self._key = crawl_key(crawl, "workers")

    async def tell(self) -> set[str]:
        """We live; who else does."""
        time = await self._valkey.do(self._key, "TIME")
        now = int(time[0])
        await self._valkey.do(self._key, "ZADD", self._key, now, self._worker)
        await self._valkey.do(self._key, "ZREMRANGEBYSCORE", self._key, "-inf", now - 10 * ALIVE_S)
        alive = await self._valkey.do(self._key, "ZRANGEBYSCORE", self._key, now - ALIVE_S, "+inf")
        return {one.decode() for one in alive}

    async def leave(self) -> None:
        """We end."""
        await self._valkey.do(self._key, "ZREM", self._key, self._worker)

"""What is kept for pages in browsers, on the servers of a fleet: shared by its workers, bounded, each for its time.

One hash tag holds all of a crawl, so that what is there can be counted and bounded in one script; what is oldest goes
first. Large things are packed. A server that does not answer is as one that has nothing.
"""

from __future__ import annotations

import asyncio
import zlib

from nephila.interfaces.shared import SharedState
from nephila.model.errors import NephilaError

ASK_S = 2.0
"""For an answer of the servers: what they have can be asked for again."""
LEVEL = 1

_KEEP = """
local function drop(name)
  local size = redis.call('HGET', KEYS[2], name)
  if size then
    redis.call('HDEL', KEYS[2], name)
    redis.call('ZREM', KEYS[3], name)
    redis.call('INCRBY', KEYS[4], -size)
  end
  redis.call('DEL', KEYS[1] .. name)
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
drop(ARGV[1])
if #ARGV == 1 then return 1 end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do drop(name) end
redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2], 'PX', ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], #ARGV[2])
redis.call('ZADD', KEYS[3], now + ARGV[3], ARGV[1])
local total = redis.call('INCRBY', KEYS[4], #ARGV[2])
while total > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not oldest then break end
  drop(oldest)
  total = tonumber(redis.call('GET', KEYS[4]))
end
return 1
"""


_CLEAR = """
for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do redis.call('DEL', KEYS[1] .. name) end
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
return 1
"""


class SharedShelf:
    """Implements `interfaces.renderer.Shelf`."""

    def __init__(self, state: SharedState, crawl: str, max_bytes: int) -> None:
        self._state = state
        self._max_bytes = max_bytes
        tag = f"nephila:{{{crawl}:shelf}}:"
        self._keys = [f"{tag}kept:", f"{tag}sizes", f"{tag}until", f"{tag}bytes"]

    async def find(self, name: str) -> bytes | None:
        """As the interface."""
        try:
            async with asyncio.timeout(ASK_S):
                packed = await self._state.call("GET", self._keys[0] + name)
            return None if packed is None else zlib.decompress(packed)
        except (NephilaError, TimeoutError, zlib.error):
            return None

    async def keep(self, name: str, data: bytes, lasts_ms: int) -> bool:
        """As the interface."""
        packed = await asyncio.to_thread(zlib.compress, data, LEVEL) if len(data) > 100_000 else zlib.compress(data, 1)
        if lasts_ms <= 0 or len(packed) > self._max_bytes // 8:
            return False
        return await self._run(name, packed, lasts_ms, self._max_bytes)

    async def drop(self, name: str) -> None:
        """As the interface."""
        await self._run(name)

    async def clear(self) -> None:
        """Keep nothing of what is there (K2): it is asked for again. Raises `EngineAwayError`."""
        await self._state.run(_CLEAR, self._keys)

    async def _run(self, *arguments: str | bytes | int) -> bool:
        try:
            async with asyncio.timeout(ASK_S):
                await self._state.run(_KEEP, self._keys, arguments)
        except (NephilaError, TimeoutError):
            return False
        return True

"""New cycles (F2): begun once for all shards, whoever says so, and whatever breaks on the way.

What says which cycle it is, and whether one that was begun is still open, is changed by one script beside the crawl's
name. Then every shard is told, each of which queues what ended before in steps, claim by claim
(`docs/decisions/0011-new-cycle-as-a-sweep.md`). A shard that was not told is told by whoever notices: who says the same
again, a worker that starts, one that looks at the counters, one that thinks that all is done.
"""

from __future__ import annotations

from .claiming import Claiming
from .shards import crawl_key

_BEGIN_CYCLE = """
local cycle = tonumber(redis.call('HGET', KEYS[1], 'cycle') or '1')
if redis.call('HGET', KEYS[1], 'open') == '1' and cycle ~= tonumber(ARGV[1]) then return {0, cycle} end
redis.call('HSET', KEYS[1], 'cycle', cycle + 1, 'open', '1')
return {1, cycle + 1}
"""
_END_CYCLE = """
local cycle = tonumber(redis.call('HGET', KEYS[1], 'cycle') or '1')
if cycle > tonumber(ARGV[1]) then return {0, cycle} end
redis.call('HSET', KEYS[1], 'open', '0')
return {1, cycle}
"""


class Cycling(Claiming):
    """Cycles."""

    async def begin_cycle(self) -> bool:
        """Begin a new cycle, unless one that was begun so is still open: the same command goes on (F10)."""
        return await self.begin_cycle_after(None)

    async def begin_cycle_after(self, left: int | None) -> bool:
        """The same, also where the cycle of that number is open: it is over, or left unfinished.

        Of several who leave the same one only the first begins another; for the rest it was begun already.
        """
        key = crawl_key(self._shards.crawl, "crawl")
        begun, cycle = await self._valkey.do(key, "EVAL", _BEGIN_CYCLE, 1, key, left or 0)
        await self._bring_cycle(int(cycle))  # whoever began it may not have come to all shards
        return bool(begun)

    async def end_cycle(self) -> bool:
        """Nothing is left to do in this cycle: the next `begin_cycle` begins another. False where one was begun."""
        key = crawl_key(self._shards.crawl, "crawl")
        ended, cycle = await self._valkey.do(key, "EVAL", _END_CYCLE, 1, key, self.snapshot().cycle)
        if not ended:
            await self._bring_cycle(int(cycle))
            await self.look()
        return bool(ended)

    async def _bring_cycle(self, cycle: int) -> None:
        """Have every shard begin a cycle that it has not begun yet."""
        await self._every("begin_cycle", cycle)
        self._quiet.clear()
        await self._touched(range(self._shards.count))

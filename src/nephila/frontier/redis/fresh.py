"""Whether a crawl has asked for anything yet: what was only given to it may still be given up, or given anew.

Each shard counts the leases that it has given since it was made; an import counts as one. Without a lease nothing is
ever requested, whoever works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .shards import Shards


async def fresh_urls(do: Callable[..., Awaitable[Any]], shards: Shards) -> int | None:
    """How many URLs a crawl knows that has asked for nothing yet; None for one that has.

    `do` sends a command, behind the key that says where to.
    """
    leases = await asyncio.gather(*(do(key, "HGET", f"{key}:meta", "tokens") for key in shards.keys))
    if any(int(count or 0) for count in leases):
        return None
    urls = await asyncio.gather(*(do(key, "HGET", f"{key}:count", "urls") for key in shards.keys))
    return sum(int(count or 0) for count in urls)

"""Pools of threads that are all there from the start: none is started while a crawl runs (see `node/memory.py`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier


def started_pool(count: int, name: str) -> ThreadPoolExecutor:
    """So many threads, all of them running. Who is interrupted here leaves none behind that waits for the others."""
    pool, together = ThreadPoolExecutor(count, name), Barrier(count)
    try:
        for waiting in [pool.submit(together.wait) for _ in range(count)]:
            waiting.result()
    except BaseException:
        together.abort()
        pool.shutdown(wait=False)
        raise
    return pool

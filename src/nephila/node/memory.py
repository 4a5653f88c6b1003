"""Memory that may run out: too tight a limit is refused at the start; a shortage later ends the crawl in a sentence.

A process that is short of memory must not try to go on: what it cannot allocate is refused anywhere, in the middle of
anything. What was stored is safe, as after a kill; the page that it broke on is asked for again by the next run.

What must stay true: no thread is started while a crawl runs or ends. One that finds no memory for its first frame dies
before it has said that it lives, and whoever started it waits for ever (`threading.Thread.start`).
"""

from __future__ import annotations

import asyncio
import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from nephila.engines.threads import started_pool
from nephila.model.errors import FileShortageError, MemoryShortageError, NephilaError, is_shortage
from nephila.native import AVAILABLE, native

LEAST_DATA_BYTES = 160_000_000
"""A small crawl was seen to take 113 MB of what RLIMIT_DATA counts, half of it the stacks of threads."""

MAPS_BESIDE_BYTES = 600 << 30
"""Address space, at most, of the indexes beside the frontier (known bodies, near-duplicates, what was learned)."""

THREADS = 6
"""For the books (one call at a time), and for what the control API reads beside the loop."""

ARENAS = 2
"""Of memory in the C library, for all threads. By default each has one of its own, which keeps what the thread gives
back: the books are kept by whichever thread is free, so that every one of them ends up with what the largest call took.
Only one thread runs Python at a time, so they hardly wait for each other. (glibc; others have no such thing.)"""


def check_memory_limits(map_bytes: int) -> None:
    """Raise `NephilaError` where the limits of this process leave too little for a crawl."""
    data, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if data not in {resource.RLIM_INFINITY, -1} and data < LEAST_DATA_BYTES:
        raise NephilaError(
            f"this process may use {data // 1_000_000} MB of memory, and a crawl needs at least "
            f"{LEAST_DATA_BYTES // 1_000_000}",
            hint="raise the limit, for example with ulimit -d unlimited",
        )
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space not in {resource.RLIM_INFINITY, -1} and space < map_bytes + MAPS_BESIDE_BYTES:
        raise NephilaError(
            f"the address space of this process is limited to {space // 1_000_000:,} MB, "
            "and the store of a crawl is mapped into it",
            hint="lift the limit with ulimit -v unlimited, and limit memory by ulimit -d or a control group",
        )


def failure_of(error: BaseException, what: str) -> NephilaError:
    """What broke us as one of our own errors."""
    if isinstance(error, NephilaError):
        return error
    if is_shortage(error):
        return MemoryShortageError()
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return FileShortageError()
    return NephilaError(f"{what} broke: {error!r}")


@contextmanager
def threads(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Give a loop its pool of threads, all of them started; end them before the loop, which would start one for it."""
    if AVAILABLE:
        native.share_arenas(ARENAS)
    pool = started_pool(THREADS, "nephila-books")
    loop.set_default_executor(pool)
    try:
        yield
    finally:
        pool.shutdown()
        loop.set_default_executor(None)  # type: ignore[arg-type]  # uvloop's: there is nothing left to be shut down

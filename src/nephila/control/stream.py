"""Events as they happen, for browsers and scripts (server-sent events). Who is cut off goes on where he was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from nephila.node.tailing import EventTail

LOOK_S = 0.5
ALIVE_S = 15.0
"""A comment is sent when nothing else was, so that proxies keep the connection and a reader who left is noticed."""


async def stream_events(
    tail: EventTail,
    *,
    kinds: frozenset[str],
    backlog: int,
    max_per_s: int,
    follow: bool,
    after: str,
    stream_s: float,
    stopping: asyncio.Event,
) -> AsyncIterator[bytes]:
    """The stream, piece by piece, until `stopping`."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + stream_s
    spoken_at = loop.time()
    lines = await tail.begin(after, backlog)
    yield b"retry: 3000\n\n"
    while True:
        wanted = [line for line in lines if not kinds or line.kind in kinds]
        most = max(1, int(max_per_s * LOOK_S)) if follow else len(wanted)
        skipped = max(0, len(wanted) - most) + sum(line.skipped for line in lines)
        if skipped and not backlog:
            yield b"event: skipped\ndata: %d\n\n" % skipped
            wanted = wanted[-most:]
        backlog = 0
        for line in wanted:
            yield b"id: %s\nevent: %s\ndata: %s\n\n" % (line.id.encode(), line.kind.encode(), line.text)
        if wanted:
            spoken_at = loop.time()
        elif loop.time() - spoken_at > ALIVE_S:
            yield b": alive\n\n"
            spoken_at = loop.time()
        if not follow or loop.time() >= ends_at:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(LOOK_S, max(0.0, ends_at - loop.time()))):
                await stopping.wait()
                return
        lines = await tail.look()

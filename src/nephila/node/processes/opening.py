"""A crawl directory opened for a crawl in several processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from nephila.config import Configured, write_stored
from nephila.interfaces.events import EventSink, GlancingSink
from nephila.model.errors import NephilaError
from nephila.node.ground import Ground, Seat
from nephila.node.opening import begun, sized
from nephila.node.wiring import assemble
from nephila.politeness import mark_resumed, shared_ledger, shared_table

from .supervisor import Supervisor
from .workforce import Workforce


@asynccontextmanager
async def supervised(
    out: Path, configured: Configured, ground: Ground, processes: int, *, listeners: Sequence[EventSink] = ()
) -> AsyncIterator[Supervisor]:
    """Hold the directory, start the workers and build their supervisor; all has ended and is closed at the end."""
    supervisor: Supervisor | None = None

    def fail(error: NephilaError) -> None:
        if supervisor is not None:
            supervisor.fail(error)

    def is_untouched() -> bool:
        return supervisor is None or supervisor.is_untouched

    settings, warning = sized(configured.settings)
    with begun(out, configured, is_untouched) as (directory, lock):
        async with AsyncExitStack() as stack:
            table = shared_table()
            stack.callback(os.close, table)
            workforce = Workforce(
                str(out),
                settings,
                processes,
                (lock, table),
                ground.clock,
                hear_all=not all(isinstance(sink, GlancingSink) for sink in listeners),
            )
            stack.push_async_callback(workforce.abandon)
            await workforce.start()
            seat = Seat(supervises=True)
            machinery = assemble(directory, settings, ground, stack, fail, seat=seat, listeners=listeners)
            if machinery.frontier.snapshot().hosts:
                mark_resumed(table, ground.clock.steady_ms())
            workforce.ledger = shared_ledger(settings.politeness, os.dup(table), 0)
            if workforce.ledger is not None:
                stack.callback(workforce.ledger.close)
            supervisor = Supervisor(machinery, workforce, listeners)
            write_stored(out, configured.settings)
            if warning:
                supervisor.warn("descriptors", warning)
            yield supervisor

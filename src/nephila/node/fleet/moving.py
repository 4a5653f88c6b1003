"""A fleet's frontier taken off its engine as a file, or put there (N2): a crawl moves to a fleet and back.

Nobody may work on the crawl meanwhile: workers that were heard of lately are found in the register and on the engine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.frontier.moving import DomainRow, HostRow, Row, ScopeRow, read_stream, write_stream
from nephila.frontier.redis.exporting import RedisExport
from nephila.frontier.redis.importing import check_free, import_into
from nephila.frontier.redis.opening import Opening
from nephila.interfaces.clock import Clock
from nephila.model.errors import FrontierError
from nephila.model.settings import Settings
from nephila.node.moving import Moved, asked_for, check_file, check_normal_form, with_rules_due, with_scope

from .access import check_fleet, valkey_servers
from .agreeing import agree
from .registry import Registry
from .servers import chunks_of, fleet_policy

SCOPE_ENTRIES = 1_000


def export_fleet(settings: Settings, to: Path, clock: Clock) -> Moved:
    """Write the frontier of the crawl that the settings name to a file."""
    crawl, servers = check_fleet(settings), valkey_servers(settings, os.environ)
    scope = asyncio.run(_scope_of(settings))
    with (
        closing(chunks_of(settings)) as chunks,
        closing(RedisExport(servers, crawl, fleet_policy(settings), clock, asked_for(settings), chunks)) as export,
    ):
        return Moved(write_stream(to, with_scope(export.rows(), scope)).rows)


async def _scope_of(settings: Settings) -> bytes:
    """What the seeds allow, once nobody works on the crawl."""
    crawl = check_fleet(settings)
    state = await ValkeyState.open(valkey_servers(settings, os.environ), refused_s=PROMPT_S)
    try:
        registry = Registry(state, crawl)
        roll = await registry.roll()
        alive = [one for one in roll.workers if one.silent_ms < settings.fleet.silent_s * 1000]
        if alive:
            raise FrontierError(
                f"{len(alive)} workers are at work on the crawl {crawl}",
                f"drain them (`nephila fleet drain`), and wait for {settings.fleet.silent_s:.0f} s",
            )
        found: list[bytes] = []
        while entries := await registry.scope(len(found), SCOPE_ENTRIES):
            found += entries
        return b"".join(found)
    finally:
        await state.close()


def import_fleet(
    file: Path, settings: Settings, clock: Clock, wanted: Callable[[Iterator[Row]], Iterator[Row]] = with_rules_due
) -> Moved:
    """Put a frontier onto the engine, under a name that no crawl has there, but for one that has asked for nothing.

    `wanted` may change or leave out rows.
    """
    head, end = check_file(file)
    crawl, servers = check_fleet(settings), valkey_servers(settings, os.environ)
    check_normal_form(head, settings, f"the crawl {crawl}")

    async def put() -> int:
        await check_free(servers, crawl)
        # The scope first: whoever claims a URL must find what let it in. What is there is left of an import.
        state = await ValkeyState.open(servers, refused_s=PROMPT_S)
        try:
            registry = Registry(state, crawl)
            await agree(state, settings, "import")
            await registry.clear_scope()
            for lines in _scope_in(file):
                await registry.add_to_scope(lines)
        finally:
            await state.close()
        options = Opening(shards=settings.fleet.shards, compact=settings.fleet.compact)
        rows = wanted(read_stream(file))
        return await import_into(servers, crawl, head, rows, fleet_policy(settings), clock, options)

    return Moved(end.rows, dropped=asyncio.run(put()))


def _scope_in(file: Path) -> Iterator[bytes]:
    """Scope rows stand before everything that they let in."""
    for row in read_stream(file):
        if isinstance(row, ScopeRow):
            yield row.lines.encode()
        elif isinstance(row, DomainRow | HostRow):
            return

"""Whether an archive and a catalogue have outlived the frontier of their crawl: whoever begins one anew must not (N8).

Seeds that came after the engine was lost would begin a crawl of the same name, of which no worker could go on: archive
and catalogue bear the mark of the one that was lost, which `nephila frontier rebuild` brings back. So both are asked
before a crawl is begun. One that cannot be asked now says nothing: seeds need neither, and workers look again.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from nephila.engines.postgres import Patience, PostgresDatabase, Session
from nephila.engines.postgres_address import PostgresAddress
from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.clock import Clock
from nephila.model.errors import NephilaError, UsageError
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.store import MARKER, ArchivePlace
from nephila.store.postgres.migrating import schema_of

ANSWER_S = 5.0
MARK_BYTES = 100


async def check_not_outlived(settings: Settings, frontier: RedisFrontier, clock: Clock) -> None:
    """UsageError where a crawl that knows nothing yet has the archive or the catalogue of another, which was lost."""
    if frontier.snapshot().urls:
        return
    crawl, identity = settings.fleet.crawl, identity_of(frontier.secret)
    place = await _marked(settings, identity, clock) or await asyncio.to_thread(_listed, settings, identity)
    if place:
        raise UsageError(
            f"there was a crawl called {crawl} already, which the engine has lost: {place} is of that one",
            "bring it back with `nephila frontier rebuild`, or begin another (fleet.crawl, archive.url)",
        )


async def _marked(settings: Settings, identity: str, clock: Clock) -> str:
    """The archive, where it bears the mark of another crawl."""
    place = ArchivePlace.parse(settings.archive.url)
    key = place.key(MARKER)
    with suppress(NephilaError, TimeoutError):
        objects = object_store(settings, clock, uploads=1)
        try:
            async with asyncio.timeout(ANSWER_S):
                if key in await objects.keys(key):
                    mark = await asyncio.to_thread(objects.read, key, 0, MARK_BYTES)
                    return "" if identity.encode() in mark else f"the archive {place}"
        finally:
            await objects.close()
    return ""


def _listed(settings: Settings, identity: str) -> str:
    """The catalogue, where it lists what another crawl has stored. Blocks."""
    schema = schema_of(settings.catalogue.name or settings.fleet.crawl)

    async def ask(session: Session) -> bool:
        if await session.value("SELECT to_regclass('segments') IS NULL OR to_regclass('crawl') IS NULL"):
            return False
        others = "SELECT EXISTS (SELECT 1 FROM crawl WHERE identity <> $1) AND EXISTS (SELECT 1 FROM segments)"
        return bool(await session.value(others, identity))

    with suppress(NephilaError):
        database = PostgresDatabase(PostgresAddress.of(settings.catalogue, os.environ), schema, settings.catalogue)
        try:
            if database.do(ask, Patience(0)):
                return f"the catalogue {schema}"
        finally:
            database.close()
    return ""

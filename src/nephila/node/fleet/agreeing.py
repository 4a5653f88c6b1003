"""What all workers of a crawl must have in common: the form of URLs, where the catalogue is, and where the archive.

The first who comes writes it down on the engine; whoever says otherwise is refused, before anything is written where
the others would never find it. Where the catalogue and the store are may change, for databases move: `fleet moved` says
so on purpose, while nobody works. One server may have several names; all workers use the same one.

No secret is part of it: neither users nor passwords.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from hashlib import sha256

from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.store import check_layout
from nephila.store.postgres.migrating import schema_of

from .access import check_fleet, valkey_servers
from .regions import Regions, regional
from .registry import Registry

SETTINGS = {"catalogue": "catalogue.url or catalogue.name", "archive": "s3.endpoint or s3.region"}


async def agree(registry: Registry, settings: Settings) -> None:
    """The form of URLs, and where the archive is, are the same for all workers and for ever; its layout need not be."""
    check_layout(settings.archive)
    urls = settings.urls
    told = f"{urls!r} {settings.archive.url.rstrip('/')}"
    if not await registry.same_terms(sha256(told.encode()).hexdigest()):
        raise UsageError(
            f"urls.* or archive.url differ from those that the crawl {settings.fleet.crawl} was begun with",
            "leave them as they were, or begin a crawl of another name (fleet.crawl)",
        )
    own = places_of(settings)
    if (other := elsewhere(settings.fleet.crawl, own, await registry.places(own))) is not None:
        raise other


def places_of(settings: Settings) -> dict[str, str]:
    """Where the catalogue and the archive are, by these settings: for people, and to be compared."""
    address = PostgresAddress.of(settings.catalogue, {"PGUSER": "anybody", **os.environ})
    schema = schema_of(settings.catalogue.name or settings.fleet.crawl)
    store = settings.s3.endpoint.rstrip("/").lower() or f"Amazon's {settings.s3.region}".rstrip()
    return {"catalogue": f"{address} ({schema})", "archive": store}


def elsewhere(crawl: str, own: Mapping[str, str], known: Mapping[str, str]) -> UsageError | None:
    """What to say of settings that keep something elsewhere than the crawl does."""
    for what, place in known.items():
        if own[what] != place:
            says = f"these settings say {own[what]} ({SETTINGS[what]})"
            return UsageError(
                f"the {what} of the crawl {crawl} is kept at {place}, and {says}",
                "write what the other workers have; or, where it has moved, tell the crawl: `nephila fleet moved`",
            )
    return None


def move_places(whole: Settings) -> list[tuple[str, str, str, str]]:
    """Catalogue and archive are where the settings say from now on, in all regions: crawl, what, before, now.

    Raises `UsageError` while somebody works there.
    """
    return asyncio.run(_move(whole))


async def _move(whole: Settings) -> list[tuple[str, str, str, str]]:
    check_fleet(whole)
    state = await ValkeyState.open(valkey_servers(whole, os.environ), refused_s=PROMPT_S)
    try:
        begun = []
        for group in ("", *sorted(Regions(whole.fleet.regions).groups)):
            settings = regional(whole, group)
            registry = Registry(state, settings.fleet.crawl)
            await _check_idle(registry, settings)
            if known := await registry.places():
                begun.append((settings.fleet.crawl, registry, places_of(settings), known))
        if not begun:
            raise UsageError(f"nobody has worked on the crawl {whole.fleet.crawl} yet", "there is nothing to change")
        changed = []
        for crawl, registry, own, known in begun:
            await registry.move(own)
            changed += [(crawl, what, known[what], own[what]) for what in own if known.get(what) != own[what]]
        return changed
    finally:
        await state.close()


async def _check_idle(registry: Registry, settings: Settings) -> None:
    roll = await registry.roll()
    alive = [one.member.name for one in roll.workers if one.silent_ms < settings.fleet.silent_s * 1000]
    if alive:
        names = ", ".join(alive[:8])
        raise UsageError(
            f"{names} of the crawl {settings.fleet.crawl} would go on where it is now",
            "drain all workers first: `nephila fleet drain`",
        )

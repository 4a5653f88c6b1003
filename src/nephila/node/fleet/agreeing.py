"""What all workers of a crawl must have in common: the form of URLs, where the catalogue is, and where the archive.

The first who comes writes it down on the engine; whoever says otherwise is refused, before anything is written where
the others would never find it. It binds once something was asked for, or while a worker is alive that has agreed to it;
until then a worker, seeds or an import may still bring other settings. Where the catalogue and the store are may change
later, too, for databases move: `fleet moved` says so on purpose, while nobody works. One server may have several names;
all workers use the same one.

No secret is part of it: neither users nor passwords.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import fields

from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.valkey import PROMPT_S
from nephila.engines.valkey_state import ValkeyState
from nephila.interfaces.shared import SharedState
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.store import check_layout
from nephila.store.postgres.migrating import schema_of

from .access import check_fleet, valkey_servers
from .agreement import Agreed, Agreement, digest_of
from .regions import Regions, regional
from .registry import Registry

_AS_THEY_WERE = "leave them as they were, or begin a crawl of another name (fleet.crawl)"
SETTINGS = {"catalogue": "catalogue.url or catalogue.name", "archive": "s3.endpoint or s3.region"}


async def agree(state: SharedState, settings: Settings, who: str = "") -> None:
    """The form of URLs, and where the archive is, are the same for all workers and for ever; its layout need not be.

    `who` begins the crawl where nobody has, or has got no further than to agree; others only go by what it says.
    """
    check_layout(settings.archive)
    own, agreement = agreed_by(settings), Agreement(state, settings.fleet.crawl)
    known = await agreement.take(own, who)
    if who and known.differs(own) and await agreement.may_change(own, known):
        known = await agreement.take(own, who, changing=True)
    if (other := disagreement(settings.fleet.crawl, own, known)) is not None:
        raise other


def agreed_by(settings: Settings) -> Agreed:
    """What these settings say of all that workers agree on."""
    urls, place = settings.urls, settings.archive.url.rstrip("/")
    told = {"archive.url": place, **{f"urls.{one.name}": _written(getattr(urls, one.name)) for one in fields(urls)}}
    return Agreed(digest_of(f"{urls!r} {place}"), told, places_of(settings))


def _written(value: object) -> str:
    """A value as a file has it."""
    return json.dumps(value)


def places_of(settings: Settings) -> dict[str, str]:
    """Where the catalogue and the archive are, by these settings: for people, and to be compared."""
    address = PostgresAddress.of(settings.catalogue, {"PGUSER": "anybody", **os.environ})
    schema = schema_of(settings.catalogue.name or settings.fleet.crawl)
    store = settings.s3.endpoint.rstrip("/").lower() or f"Amazon's {settings.s3.region}".rstrip()
    return {"catalogue": f"{address} ({schema})", "archive": store}


def disagreement(crawl: str, own: Agreed, known: Agreed) -> UsageError | None:
    """What to say of settings that say something else than the crawl."""
    others = known.other_settings(own)
    if others and not known.settings:
        return UsageError(
            f"urls.* or archive.url differ from those that the crawl {crawl} was begun with",
            _AS_THEY_WERE,
        )
    for name in others:
        has = f"the crawl {crawl} was begun with {name} = {known.settings.get(name, 'nothing')}"
        return UsageError(f"{has}, and these settings say {own.settings[name]}", _AS_THEY_WERE)
    for what in known.other_places(own):
        says = f"these settings say {own.places[what]} ({SETTINGS[what]})"
        return UsageError(
            f"the {what} of the crawl {crawl} is kept at {known.places[what]}, and {says}",
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
            agreement = Agreement(state, settings.fleet.crawl)
            await _check_idle(Registry(state, settings.fleet.crawl), settings)
            if known := (await agreement.read()).places:
                begun.append((settings.fleet.crawl, agreement, places_of(settings), known))
        if not begun:
            raise UsageError(f"nobody has worked on the crawl {whole.fleet.crawl} yet", "there is nothing to change")
        changed = []
        for crawl, agreement, own, known in begun:
            await agreement.move(own)
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

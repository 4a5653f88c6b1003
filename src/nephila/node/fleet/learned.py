"""What a fleet has learned of aliases, read from the servers for whoever looks or decides (D4, T8).

What is decided is exchanged for what was read. Where a worker was faster it is read and decided anew, so that neither
its evidence nor the decision is lost. Workers hear of it by the log they follow, with their next sign of life.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from nephila.dedup import LearnedAliases, MemoryAliasStorage, SharedNotes
from nephila.dedup.shared_notes import SHOWN, Exchange, Held
from nephila.interfaces.clock import Clock
from nephila.interfaces.shared import SharedState
from nephila.model.errors import EngineAwayError
from nephila.model.settings import Settings
from nephila.node.addressing import aliases_on, identifier_of

TRIES = 20

T = TypeVar("T")


async def aliases_of_fleet(state: SharedState, settings: Settings, clock: Clock, domain: str) -> LearnedAliases:
    """What is known of one domain, to be looked at."""
    found = await SharedNotes(state, settings.fleet.crawl).tallies([domain])
    return _learned(_stored(found, settings), settings, clock)


async def rules_of_fleet(state: SharedState, settings: Settings, clock: Clock) -> LearnedAliases:
    """The rules of all domains, for whoever applies them and tests none."""
    known = replace(settings, aliases=replace(settings.aliases, verify_every=0))
    return _learned(_stored(await _all(SharedNotes(state, settings.fleet.crawl)), known), known, clock)


async def decide(
    state: SharedState, settings: Settings, clock: Clock, act: Callable[[LearnedAliases], T], domain: str = ""
) -> T:
    """Look at the rules of one domain or of all, or change one of a domain; what is changed holds for all workers."""
    notes = SharedNotes(state, settings.fleet.crawl)
    for _ in range(TRIES):
        found = await (notes.tallies([domain]) if domain else _all(notes))
        storage = _stored(found, settings)
        answer = act(_learned(storage, settings, clock))
        changed = sorted(storage.changed(0)[1])
        changes = [Exchange(name, found[name].version, storage.tallies(name)) for name in changed]
        if len(await notes.exchange(changes)) == len(changes):
            await notes.tell_changed(changed)
            return answer
    raise EngineAwayError(f"the rules of {domain} change all the time", "try it again")


def _stored(found: Mapping[str, Held], settings: Settings) -> MemoryAliasStorage:
    return MemoryAliasStorage(settings.aliases.votes, {name: held.tallies for name, held in found.items()})


def _learned(storage: MemoryAliasStorage, settings: Settings, clock: Clock) -> LearnedAliases:
    return aliases_on(storage, settings, identifier_of(settings, 0), clock)


async def _all(notes: SharedNotes) -> dict[str, Held]:
    """The rules of all domains, without what is only watched: that is for lists, and may be much."""
    found: dict[str, Held] = {}
    async for domains in notes.ruled():
        for name, (version, tallies) in (await notes.tallies(domains)).items():
            shown = {subject: tally for subject, tally in tallies.items() if tally.state in SHOWN}
            found[name] = Held(version, shown)
    return found

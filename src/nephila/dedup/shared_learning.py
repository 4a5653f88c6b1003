"""What a worker of a fleet has learned of sites, and what the others have (N3): a site is learned once, by whomever.

Before work on a host begins, the servers are asked what is known of it, unless they were asked some minutes ago; what
was learned is told a batch at a time, beside the work. Rules that have changed are said by a log that all workers
follow, so that one that a person has undone is out of force everywhere a moment later, whoever meets its links.

What must stay true: no page waits for it, but for one answer of the servers when its host is claimed; a server that
does not answer costs nothing but that what is known here holds on, and what is learned here is told later.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from nephila.interfaces.shared import SharedState
from nephila.model.errors import EngineAwayError, NephilaError
from nephila.urls import registrable_domain

from .alias_lmdb import LmdbAliasStorage
from .alias_travelling import Findings, TravellingAliasStorage, standing
from .aliases import LearnedAliases
from .shared_notes import ALIASES, Exchange, SharedNotes, held
from .travelling import SharedTable

REFRESH_S = 300.0
"""How long what the servers said of a host is taken for what they would say."""
TELL_S = 60.0
"""How long evidence may wait to be told that changes no rule; what does is told with the next round."""
ASK_S = 1.0
AWAY_S = 5.0
"""Servers that did not answer within `ASK_S` are not asked again for so long: a claim must not wait for them."""
FINISH_S = 5.0
"""For what is told at the end; what is not told then lies on the disk of this worker."""
REMEMBERED = 65_536
"""Hosts, and domains, of which it is known when the servers were asked."""
AT_ONCE = 200
"""Domains, or hosts, that are told or read at once."""
TRIES = 8
"""Exchanges of tallies that others write, too; after these the evidence waits for the next round."""

T = TypeVar("T")


class SharedLearning:
    """Between what one worker knows and what all know. Used by one event loop."""

    def __init__(self, state: SharedState, crawl: str, *, refresh_s: float = REFRESH_S, tell_s: float = TELL_S) -> None:
        self._notes = SharedNotes(state, crawl)
        self._refresh_s = refresh_s
        self._tell_s = tell_s
        self._tables: Sequence[SharedTable] = ()
        self._aliases: LearnedAliases | None = None
        self._storage: TravellingAliasStorage | None = None
        self._hosts: OrderedDict[str, float] = OrderedDict()
        self._domains: OrderedDict[str, float] = OrderedDict()
        self._versions: OrderedDict[str, bytes] = OrderedDict()
        """Of the tallies that this worker's own began with."""
        self._away_until = self._told_at = 0.0
        self._log_at = ""
        self._unsaid: set[str] = set()
        """Domains whose rules have changed, which the log does not say yet."""
        self._telling: set[str] = set()
        """Domains whose evidence is on its way: what comes of it is brought when it is there."""
        self._round: asyncio.Task[None] | None = None

    # Put together

    def over(self, own: LmdbAliasStorage, votes: int) -> TravellingAliasStorage:
        """The storage that aliases are to be learned on."""
        self._storage = TravellingAliasStorage(own, votes)
        return self._storage

    def attach(self, aliases: LearnedAliases | None, tables: Sequence[SharedTable]) -> None:
        """Share this. `aliases`, on that storage, is None where they are not learned."""
        self._aliases = aliases
        self._tables = tables

    # Asking

    async def ask(self, hosts: Iterable[str]) -> None:
        """Know what is known of these hosts, before work on them begins. Never raises for servers that are away."""
        now = asyncio.get_running_loop().time()
        stale = [host for host in hosts if self._is_stale(self._hosts, host, now)]
        if not stale or now < self._away_until:
            return
        wanted: dict[str, list[str]] = {}
        for host in stale:
            fields = wanted.setdefault(registrable_domain(host), [])
            fields += [table.letter + host for table in self._tables]
        asked = [domain for domain in wanted if self._is_stale(self._domains, domain, now)]
        for domain in asked if self._aliases is not None else ():
            wanted[domain].append(ALIASES + domain)
        try:
            async with asyncio.timeout(ASK_S):
                found = await self._notes.read(wanted)
        except (EngineAwayError, TimeoutError):
            self._away_until = now + ASK_S + AWAY_S
            return
        for host in stale:
            _remember(self._hosts, host, now)
            for table in self._tables:
                table.bring(host, found[table.letter + host])
        for domain in asked:
            self._bring(domain, found.get(ALIASES + domain), now)

    def _is_stale(self, asked: OrderedDict[str, float], name: str, now: float) -> bool:
        at = asked.get(name)
        return at is None or now - at >= self._refresh_s

    def _bring(self, domain: str, packed: bytes | None, now: float) -> None:
        """What the servers have of the aliases of a domain."""
        if self._storage is None or self._aliases is None or domain in self._telling:
            return
        _remember(self._domains, domain, now)
        there = held(packed)
        if not there.version:
            if self._storage.tallies(domain):
                self._storage.tell_all(domain)
        elif there.version != self._versions.get(domain):
            _remember(self._versions, domain, there.version)
            self._storage.bring(domain, there.tallies)
            self._aliases.take_in(domain)

    # Following

    async def begin(self) -> None:
        """Follow from here on, and take in what was decided while this worker was not there."""
        with suppress(EngineAwayError):
            await self.follow()

    async def follow(self) -> None:
        """Take in the rules that have changed, of the domains that are known here."""
        if self._storage is None or self._aliases is None:
            return
        if not self._log_at:  # the log may not reach back so far: all that has rules here is read
            start = await self._notes.last_change()
            await self._read_again(await asyncio.to_thread(_ruled, self._storage))
            self._log_at = start
        more = True
        while more:
            self._log_at, domains, more = await self._notes.changed(self._log_at)
            await self._read_again(
                [domain for domain in domains if domain in self._domains or self._storage.tallies(domain)]
            )

    async def _read_again(self, domains: Sequence[str]) -> None:
        for some in _slices(domains):
            found = await self._notes.read({domain: [ALIASES + domain] for domain in some})
            now = asyncio.get_running_loop().time()
            for domain in some:
                self._bring(domain, found[ALIASES + domain], now)

    # Telling

    async def run(self, every_s: float) -> None:
        """Follow and tell, until cancelled; what is under way then is waited for by `finish`."""
        while True:
            await asyncio.sleep(every_s)
            self._round = asyncio.create_task(self._follow_and_tell(), name="learned")
            with suppress(EngineAwayError):
                await asyncio.shield(self._round)

    async def _follow_and_tell(self) -> None:
        await self.follow()
        await self.tell()

    async def tell(self, *, everything: bool = False) -> None:
        """Tell what was learned: notes, rules that have changed, and now and then all evidence."""
        for table in self._tables:
            await self._tell_table(table)
        if self._storage is None or self._aliases is None:
            return
        now = asyncio.get_running_loop().time()
        everything = everything or now - self._told_at >= self._tell_s
        if everything:
            self._told_at = now
        await self._tell_findings(self._storage, self._storage.take_findings(urgent=not everything))
        await asyncio.to_thread(self._storage.persist)
        while self._unsaid:
            said = next(iter(self._unsaid))
            await self._notes.tell_changed([said])
            self._unsaid.discard(said)

    async def finish(self) -> None:
        """Tell all there is, of a worker that leaves. What goes wrong is no matter now: it was told of before."""
        with suppress(NephilaError, TimeoutError):
            async with asyncio.timeout(FINISH_S):
                if self._round is not None and not self._round.done():
                    await asyncio.shield(self._round)
                if self._aliases is not None:
                    await asyncio.to_thread(self._aliases.flush)
                await self.tell(everything=True)

    async def _tell_table(self, table: SharedTable) -> None:
        notes, told = table.untold()
        for hosts in _slices(list(notes)):
            fields: dict[str, dict[str, bytes]] = {}
            for host in hosts:
                fields.setdefault(registrable_domain(host), {})[table.letter + host] = notes[host]
            await self._notes.write(fields)
        told()

    async def _tell_findings(self, storage: TravellingAliasStorage, findings: dict[str, Findings]) -> None:
        """Apply evidence to what the servers have; what could not be told is given back."""
        self._telling.update(findings)
        try:
            for domains in _slices(list(findings)):
                left = domains
                for _ in range(TRIES):
                    await self._exchange(storage, {domain: findings[domain] for domain in left}, findings)
                    left = [domain for domain in left if domain in findings]
                    if not left:
                        break
        finally:
            self._telling.clear()
            storage.give_back(findings)

    async def _exchange(
        self, storage: TravellingAliasStorage, some: dict[str, Findings], left: dict[str, Findings]
    ) -> None:
        """One try; what was told is taken out of what is left."""
        there = await self._notes.tallies(some)
        changes: list[Exchange] = []
        for domain, found in some.items():
            version, tallies = there[domain]
            alone = not version and (found.whole or domain not in self._domains)
            known = storage.tallies(domain) if alone else None
            after = found.onto(domain, tallies, storage.votes) if known is None else known
            changes.append(Exchange(domain, version, after))
        done = await self._notes.exchange(changes)
        for domain, before, after in changes:
            if domain not in done:
                continue
            del left[domain]
            self._telling.discard(domain)
            if standing(after) != standing(there[domain].tallies):
                self._unsaid.add(domain)
            others = before != self._versions.get(domain, b"")
            _remember(self._versions, domain, done[domain])
            if others and self._aliases is not None:
                storage.bring(domain, after)
                self._aliases.take_in(domain)


def _remember(known: OrderedDict[str, T], name: str, value: T) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > REMEMBERED:
        known.popitem(last=False)


def _slices(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE]


def _ruled(storage: TravellingAliasStorage) -> list[str]:
    """The domains that have rules here."""
    return [domain for domain, tallies in storage.domains() if standing(tallies)]

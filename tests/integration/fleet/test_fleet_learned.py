"""What one worker has learned of a site, another knows: on a real server (N3)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from gate import Gate, gate
from valkey_servers import ValkeySingle

from nephila.dedup import (
    LearnedAliases,
    LearnedEnvironment,
    LearningRules,
    LmdbAbsences,
    LmdbAliasStorage,
    LmdbListings,
    LmdbRenderings,
    SharedLearning,
)
from nephila.dedup.alias_tally import SHAPES
from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.interfaces.shared import Argument, SharedState
from nephila.model.alias import AliasRule, AliasState
from nephila.model.errors import EngineAwayError
from nephila.model.listing import SiteTrust
from nephila.model.missing import Absence, HostAbsence
from nephila.model.rendering import Record, SiteRendering
from nephila.model.settings import FleetSettings, Settings
from nephila.node.clock import SystemClock
from nephila.node.fleet.learned import aliases_of_fleet, decide
from nephila.testing.contracts.aliases import DOMAIN, ORIGIN, Hand, identify, resolved, see, teach

RULES = LearningRules(verify_every=0)
LINK = f"{ORIGIN}/item/77?id=3&ref=zz"
STAND_IN = f"{ORIGIN}/item/77?id=3"
SOFT = HostAbsence(Absence.SOFT, 1, b"text....", b"shape...", home=b"home....", home_shape=b"home....")
NEEDED = SiteRendering(signed=Record(tried=5, gained=5))
TRUST = SiteTrust(right=3, false=1, sampled=20, evidence=("/a changed, and said so",))


class Counted:
    """The server, with the commands that were sent to it."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self.commands: list[str] = []
        self.away = False
        self.slow_s = 0.0

    async def call(self, command: str, key: str, *arguments: Argument) -> Any:
        await self._count(command)
        return await self._state.call(command, key, *arguments)

    async def run(self, script: str, keys: Any, arguments: Any = ()) -> Any:
        await self._count("EVAL")
        return await self._state.run(script, keys, arguments)

    async def _count(self, command: str) -> None:
        self.commands.append(command)
        await asyncio.sleep(self.slow_s)
        if self.away:
            raise EngineAwayError("nobody there")


class Learner:
    """What a worker has that learns."""

    def __init__(self, folder: Path, state: SharedState, crawl: str, refresh_s: float, *, learns: bool = True) -> None:
        self.hand = Hand()
        self.server = Counted(state)
        self.folder = folder
        self.environment = LearnedEnvironment(folder, sync=False)
        self.shared = SharedLearning(self.server, crawl, refresh_s=refresh_s)
        storage = self.shared.over(LmdbAliasStorage(self.environment, RULES.votes), RULES.votes)
        rules = replace(RULES, enabled=learns)
        self.aliases = LearnedAliases(storage, rules, identify, self.hand.now, self.hand.now)
        self.absences = LmdbAbsences(self.environment)
        self.listings = LmdbListings(self.environment)
        self.renderings = LmdbRenderings(self.environment)
        tables = [self.absences.travelling(), self.listings.travelling(), self.renderings.travelling()]
        self.shared.attach(self.aliases if learns else None, tables)

    def flush(self) -> None:
        """As the books do every second."""
        for part in (self.aliases, self.absences, self.listings, self.renderings):
            part.flush()

    async def tell(self, *, everything: bool = False) -> None:
        self.flush()
        await self.shared.tell(everything=everything)

    async def claims(self, *hosts: str) -> None:
        await self.shared.ask(hosts)

    def acts(self, link: str = LINK) -> str:
        """What a link is admitted as; empty where it is let through."""
        found = resolved(self.aliases, link)
        return found.url if found is not None else ""

    def end(self) -> None:
        """As a kill ends it: nothing more is told."""
        self.environment.close()


class Company:
    """Workers of one crawl, and the server."""

    def __init__(self, folder: Path, state: ValkeyState) -> None:
        self.folder = folder
        self.state = state
        self.crawl = f"t{uuid4().hex[:12]}"
        self.refresh_s = 300.0
        self._learners: list[Learner] = []

    def worker(self, name: str, *, learns: bool = True) -> Learner:
        made = Learner(self.folder / name, self.state, self.crawl, self.refresh_s, learns=learns)
        self._learners.append(made)
        return made

    def lose(self, worker: Learner) -> None:
        """Killed, and its disk is gone."""
        worker.end()
        self._learners.remove(worker)
        shutil.rmtree(worker.folder)

    @property
    def settings(self) -> Settings:
        return Settings(fleet=FleetSettings(crawl=self.crawl))

    async def decide(self, act: Callable[[LearnedAliases], Any], domain: str = DOMAIN) -> Any:
        return await decide(self.state, self.settings, SystemClock(), act, domain)

    async def rules(self, domain: str = "") -> list[AliasRule]:
        found: list[AliasRule] = await self.decide(lambda aliases: aliases.rules(domain), domain)
        return found

    def close(self) -> None:
        for learner in self._learners:
            learner.end()


@asynccontextmanager
async def company(folder: Path, names: list[str]) -> AsyncIterator[Company]:
    state = await ValkeyState.open(servers_of(names, {}))
    made = Company(folder, state)
    try:
        yield made
    finally:
        made.close()
        await state.close()


Scene = Callable[[Company], Awaitable[None]]


@pytest.fixture
def play(valkey: ValkeySingle, tmp_path: Path) -> Callable[[Scene], None]:
    """Runs a scene among workers of a crawl of its own."""

    def run(scene: Scene) -> None:
        async def go() -> None:
            async with company(tmp_path, list(valkey.names)) as made:
                await scene(made)

        asyncio.run(go())

    return run


@pytest.fixture
def door(valkey: ValkeySingle) -> Iterator[Gate]:
    """A way to the server that can be shut."""
    with gate(int(valkey.names[0].rpartition(":")[2])) as made:
        yield made


def test_what_one_worker_learned_of_a_site_another_acts_on(play: Callable[[Scene], None]) -> None:
    """N3, D4, T4, J1, X3: also when the first is gone with its disk; nothing is learned a second time."""

    async def scene(fleet: Company) -> None:
        first = fleet.worker("first")
        await first.claims(DOMAIN)
        teach(first.aliases, first.hand)
        first.absences.keep(DOMAIN, SOFT)
        first.renderings.keep(DOMAIN, NEEDED)
        first.listings.keep(DOMAIN, TRUST)
        await first.tell()
        second = fleet.worker("second")
        assert second.acts() == ""
        fleet.lose(first)
        await second.claims(f"www.{DOMAIN}")
        assert second.acts() == STAND_IN, "rules are a domain's"
        assert second.absences.of(DOMAIN) is None, "notes are a host's, and it was not claimed"
        await second.claims(DOMAIN)
        assert second.absences.of(DOMAIN) == SOFT
        assert second.renderings.of(DOMAIN) == NEEDED
        assert second.listings.site(DOMAIN) == replace(TRUST, sampled=0), "it chooses pages of its own to compare"
        second.flush()
        await second.tell(everything=True)
        assert "HSET" not in second.server.commands, "it has nothing new to tell of hosts"
        fleet.close()
        fleet._learners.clear()
        again = fleet.worker("second")
        assert again.acts() == STAND_IN, "it is on its disk, for when servers are away"
        assert again.absences.of(DOMAIN) == SOFT

    play(scene)


def test_a_page_costs_no_question(play: Callable[[Scene], None]) -> None:
    """N3, N5: one question for all hosts of a claim that belong together, none again for minutes; batches are told."""

    async def scene(fleet: Company) -> None:
        worker = fleet.worker("one")
        hosts = [f"h{number}.{DOMAIN}" for number in range(50)]
        await worker.claims(*hosts)
        assert worker.server.commands == ["HMGET"]
        for _ in range(100):
            await worker.claims(*hosts[:3])
        assert worker.server.commands == ["HMGET"]
        for host in hosts:
            for _ in range(20):
                worker.absences.keep(host, SOFT)
        await worker.tell()
        await worker.tell()
        assert worker.server.commands == ["HMGET", "HSET"]
        deaf = fleet.worker("deaf", learns=False)
        await deaf.claims(*hosts)
        assert deaf.absences.of(hosts[7]) == SOFT
        await deaf.tell()
        assert deaf.server.commands == ["HMGET"], "aliases are not learned there, and not asked for"

    play(scene)


def test_evidence_of_several_workers_adds_up(play: Callable[[Scene], None]) -> None:
    """D4, N2: hosts of one domain with two workers at once; whoever is later applies its evidence to the other's."""

    async def scene(fleet: Company) -> None:
        one, two = fleet.worker("one"), fleet.worker("two")
        for worker in (one, two):
            await worker.shared.begin()
            await worker.claims(DOMAIN)
        for number, worker in enumerate([one, two]):
            for page in range(2):
                for query in ("", "?ref=a", "?ref=b"):
                    see(worker.aliases, worker.hand, f"/item/{number}{page}{query}", f"text {number}{page}")
        assert one.acts() == two.acts() == ""
        for worker in (one, two):
            worker.flush()
            worker.server.slow_s = 0.01
        await asyncio.gather(one.shared.tell(everything=True), two.shared.tell(everything=True))
        (rule,) = [found for found in await fleet.rules() if found.state is AliasState.IN_FORCE]
        assert (rule.agreed, rule.places) == (6, 4), "neither had enough"
        for worker in (one, two):
            await worker.shared.follow()
            assert worker.acts() == STAND_IN
        caught = [worker.acts(f"{ORIGIN}/item/{number}?ref=q") for number in range(30) for worker in (one, two)]
        assert len(caught) == 60
        for worker in (one, two, one):
            await worker.tell(everything=True)
        (rule,) = [found for found in await fleet.rules(DOMAIN) if found.state is AliasState.IN_FORCE]
        assert rule.caught == 62
        assert rule.agreed == 6, "evidence is told once"

    play(scene)


def test_a_rule_that_is_undone_is_out_of_force_everywhere(play: Callable[[Scene], None]) -> None:
    """D4, T8: with the next look at the log, also where its domain is not claimed; no worker can take that back."""

    async def scene(fleet: Company) -> None:
        one, two = fleet.worker("one"), fleet.worker("two")
        for worker in (one, two):
            await worker.shared.begin()
        teach(one.aliases, one.hand)
        await one.tell()
        await two.claims(DOMAIN)
        assert one.acts() == two.acts() == STAND_IN
        assert await fleet.rules("elsewhere.example") == []
        (rule,) = await fleet.rules(DOMAIN)
        assert [found.id for found in await fleet.rules()] == [rule.id]
        undone = await fleet.decide(lambda aliases: aliases.undo(rule.id))
        assert undone.state is AliasState.UNDONE
        teach(one.aliases, one.hand, pages=40)  # before it has heard of it
        await one.tell(everything=True)
        await two.shared.follow()
        assert one.acts() == two.acts() == ""
        teach(two.aliases, two.hand, pages=40)
        await two.tell(everything=True)
        assert [found.state for found in await fleet.rules()] == [AliasState.UNDONE]
        late = fleet.worker("late")
        await late.claims(DOMAIN)
        assert late.acts() == ""
        assert await fleet.decide(lambda aliases: aliases.undo("no such")) is None
        await fleet.decide(lambda aliases: aliases.redo(rule.id))
        for worker in (one, two, late):
            await worker.shared.follow()
            await worker.claims(DOMAIN)
        assert [one.acts(), two.acts()] == [STAND_IN, STAND_IN]
        looked = await aliases_of_fleet(fleet.state, fleet.settings, SystemClock(), DOMAIN)
        assert looked.in_force() is not None

    play(scene)


def test_a_worker_that_comes_back_asks_what_was_decided_meanwhile(play: Callable[[Scene], None]) -> None:
    """D4, N3: a rule on its disk that was undone while it was away is out of force before its domain is claimed."""

    async def scene(fleet: Company) -> None:
        one = fleet.worker("one")
        teach(one.aliases, one.hand)
        await one.tell()
        one.end()
        fleet._learners.clear()
        (rule,) = await fleet.rules()
        await fleet.decide(lambda aliases: aliases.undo(rule.id))
        back = fleet.worker("one")
        assert back.acts() == STAND_IN
        await back.shared.begin()
        assert back.acts() == ""

    play(scene)


def test_an_undo_and_a_worker_that_tells_at_once_lose_nothing(play: Callable[[Scene], None]) -> None:
    """D4, N2: whoever is second reads again what the first has written."""

    async def scene(fleet: Company) -> None:
        one = fleet.worker("one")
        teach(one.aliases, one.hand)
        await one.tell()
        (rule,) = await fleet.rules()
        for number in range(10):
            see(one.aliases, one.hand, f"/item/{number}?ref=again{number}", f"text {number}")
        one.flush()
        one.server.slow_s = 0.02
        state = Counted(fleet.state)
        state.slow_s = 0.013
        await asyncio.gather(
            one.shared.tell(everything=True),
            decide(state, fleet.settings, SystemClock(), lambda aliases: aliases.undo(rule.id), DOMAIN),
        )
        (after,) = await fleet.rules()
        assert after.state is AliasState.UNDONE
        assert after.agreed > rule.agreed

    play(scene)


def test_a_claim_while_evidence_is_on_its_way_loses_none_of_it(play: Callable[[Scene], None]) -> None:
    """D4, N2: what is told is not overwritten here by what the servers had before."""

    async def scene(fleet: Company) -> None:
        fleet.refresh_s = 0.0
        one, two = fleet.worker("one"), fleet.worker("two")
        for worker, number in ((one, 1), (two, 2)):
            await worker.claims(DOMAIN)
            for query in ("", "?ref=a", "?ref=b"):
                see(worker.aliases, worker.hand, f"/item/{number}{query}", f"text {number}")
            await worker.tell(everything=True)
        teach(one.aliases, one.hand)
        one.flush()
        one.server.slow_s = 0.05
        telling = asyncio.create_task(one.shared.tell(everything=True))
        await asyncio.sleep(0.02)
        await one.claims(DOMAIN)
        assert one.acts() == STAND_IN
        await telling
        one.flush()
        await one.tell(everything=True)
        assert one.acts() == STAND_IN
        (here,), (there,) = one.aliases.rules(), await fleet.rules()
        assert replace(here, caught=0) == replace(there, caught=0)

    play(scene)


def test_servers_that_are_away_cost_nothing_but_time(valkey: ValkeySingle, door: Gate, tmp_path: Path) -> None:
    """N3, N4: what is learned meanwhile is kept, and told when they are back; nobody waits for them again and again."""

    async def run() -> None:
        async with company(tmp_path, list(valkey.names)) as fleet:
            state = await ValkeyState.open(servers_of([f"127.0.0.1:{door.port}"], {}))
            cut = Learner(tmp_path / "cut", state, fleet.crawl, 300.0)
            await cut.claims("www.example")
            door.shut()
            loop = asyncio.get_running_loop()
            begun = loop.time()
            for number in range(20):
                await cut.claims(f"h{number}.example")
            assert loop.time() - begun < 3
            teach(cut.aliases, cut.hand)
            cut.absences.keep(DOMAIN, SOFT)
            cut.flush()
            assert cut.acts() == STAND_IN, "what it learned holds for itself"
            cut.server.away = True
            for _ in range(3):
                with pytest.raises(EngineAwayError):
                    await cut.shared.tell(everything=True)
            cut.server.away = False
            see(cut.aliases, cut.hand, "/item/1?ref=later", "text 1")
            door.open()
            await cut.tell(everything=True)
            other = fleet.worker("other")
            await other.claims(DOMAIN)
            assert other.acts() == STAND_IN
            assert other.absences.of(DOMAIN) == SOFT
            (here,), (there,) = cut.aliases.rules(), await fleet.rules()
            assert there == here, "all evidence, once"
            cut.end()
            await state.close()

    asyncio.run(run())


def test_notes_are_asked_for_again_and_what_was_not_told_is_not_overwritten(play: Callable[[Scene], None]) -> None:
    """N3, T4: what a host shows elsewhere meanwhile is known after some minutes; the last to write holds."""

    async def scene(fleet: Company) -> None:
        fleet.refresh_s = 0.0
        one, two = fleet.worker("one"), fleet.worker("two")
        one.absences.keep(DOMAIN, SOFT)
        one.absences.keep("home.example", HostAbsence(home=b"home...."))
        await one.tell()
        await two.claims(DOMAIN, "home.example")
        assert two.absences.of(DOMAIN) == SOFT
        assert two.absences.of("home.example") is None, "that says nothing yet"
        honest = HostAbsence(Absence.HONEST, 2)
        two.absences.keep(DOMAIN, honest)
        await two.claims(DOMAIN)
        assert two.absences.of(DOMAIN) == honest
        await two.tell()
        await one.claims(DOMAIN)
        assert one.absences.of(DOMAIN) == honest

    play(scene)


def test_what_lay_on_disks_before_it_was_shared_is_told(play: Callable[[Scene], None]) -> None:
    """N3, N5: of a worker that an earlier version ran, or of servers that have lost it."""

    async def scene(fleet: Company) -> None:
        one = fleet.worker("one")
        teach(one.aliases, one.hand)
        one.absences.keep(DOMAIN, SOFT)
        one.flush()
        one.end()
        fleet._learners.clear()
        later, other = fleet.worker("one"), fleet.worker("two")
        await later.claims(DOMAIN)
        await later.tell(everything=True)
        await other.claims(DOMAIN)
        assert other.acts() == STAND_IN
        assert other.absences.of(DOMAIN) == SOFT

    play(scene)


def test_a_worker_tells_beside_its_work_and_at_its_end(play: Callable[[Scene], None]) -> None:
    """N3, D4: a rule with the next round, evidence within a minute, and all of it when the worker leaves."""

    async def scene(fleet: Company) -> None:
        one = fleet.worker("one")
        working = asyncio.create_task(one.shared.run(0.01))
        teach(one.aliases, one.hand)
        one.flush()
        for _ in range(1_000):
            if await fleet.rules():
                break
            await asyncio.sleep(0.01)
        for shape in range(SHAPES + 1):
            see(one.aliases, one.hand, f"/other{shape}/1?ref=x", "some text")
        see(one.aliases, one.hand, "/item/2?ref=y", "text 2")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await one.shared.finish()
        (here,), (there,) = one.aliases.rules(), await fleet.rules()
        assert there == here
        one.server.away = True
        see(one.aliases, one.hand, "/item/3?ref=y", "text 3")
        await one.shared.finish()

    play(scene)

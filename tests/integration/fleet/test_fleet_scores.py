"""R3: whatever brings URLs to a fleet's crawl, or puts them back, scores them by the ranks that are published."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from link_graphs import write_some_grades
from seaweed import BUCKET, Seaweed
from valkey_servers import ValkeySingle
from waiting import wait_until

from nephila.cli.main import run
from nephila.config import Configured, load
from nephila.frontier.redis import RedisFrontier
from nephila.model.outcome import Dead, Release, Settlement
from nephila.model.settings import Settings
from nephila.model.task import Candidate, Pace
from nephila.node.addressing import identifier_of
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.fleet.regions import regional
from nephila.node.fleet.repute import RegionalRanks, publish
from nephila.node.fleet.servers import open_frontier
from nephila.node.fleet.visiting import Visits
from nephila.node.importance.grades import LOOK_MS
from nephila.store import ArchivePlace
from nephila.urls import Address

FLEET = """
[fleet]
crawl = "{crawl}"
servers = ["redis://{server}"]
shards = 2
regions = ["eu=site.de,seite.de"]
[catalogue]
url = "postgresql://nobody@127.0.0.1:1/none"
[archive]
url = "s3://{bucket}/{crawl}"
[s3]
endpoint = "{endpoint}"
[scope]
mode = "all"
[robots]
obey = false
"""
NAMES = {"": ("best.test", "least.test"), "eu": ("site.de", "seite.de")}
POINTS = 5
"""What the best of all domains has before one that nobody links to."""


class Clock(SystemClock):
    """One that is put forward."""

    ahead_ms = 0

    def steady_ms(self) -> int:
        return super().steady_ms() + self.ahead_ms


class Ranked:
    """A crawl with a region, each with ranks of its own."""

    def __init__(self, configured: Configured, file: Path, folder: Path) -> None:
        self.settings, self.file, self.folder = configured.settings, file, folder

    def of(self, group: str) -> Settings:
        return regional(self.settings, group)

    def begin(self) -> None:
        """Both crawls are there, and what is said of two domains of each is published."""
        assert run(["seed", "begin.test", "begin.site.de", "--config", str(self.file)]) == 0
        for group, (best, least) in NAMES.items():
            asyncio.run(self._publish(self.of(group), {best: 64, least: 0}))

    async def _publish(self, settings: Settings, grades: dict[str, int]) -> None:
        async with AsyncExitStack() as stack:
            _, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
            objects = object_store(settings, SystemClock())
            stack.push_async_callback(objects.close)
            path = write_some_grades(self.folder / "made", identity_of(frontier.secret), grades)
            assert await publish(objects, ArchivePlace.parse(settings.archive.url), path)

    def end_cycle(self, path: str) -> None:
        """A page of each of these domains has ended, and another cycle has begun."""
        for group, names in NAMES.items():
            asyncio.run(kill(self.of(group), [f"https://{name}/{path}" for name in names]))
            flags = ["--group", group] if group else []
            assert run(["fleet", "cycle", "--config", str(self.file), *flags]) == 0

    def ahead(self, group: str, path: str) -> int:
        """By how many points the one domain's URL is before the other's."""

        async def look() -> int:
            async with AsyncExitStack() as stack:
                settings = self.of(group)
                _, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
                best, least = [await step_of(frontier, settings, f"https://{name}/{path}") for name in NAMES[group]]
                return least - best

        return asyncio.run(look())


def address_of(frontier: RedisFrontier, settings: Settings, url: str) -> Address:
    address = identifier_of(settings, frontier.secret).identify(url)
    assert isinstance(address, Address)
    return address


async def step_of(frontier: RedisFrontier, settings: Settings, url: str) -> int:
    address = address_of(frontier, settings, url)
    story = await asyncio.to_thread(frontier.story, address.host, address.fingerprint)
    assert story is not None
    assert story.state == "queued"
    return story.step


@pytest.fixture
def ranked(valkey: ValkeySingle, object_server: Seaweed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ranked:
    for name, value in object_server.environ.items():
        monkeypatch.setenv(name, value)
    crawl, file = f"scores-{tmp_path.name[-20:].replace('_', '-')}", tmp_path / "fleet.toml"
    told = {"crawl": crawl, "server": valkey.server.name, "bucket": BUCKET, "endpoint": object_server.endpoint}
    file.write_text(FLEET.format(**told))
    made = Ranked(load(file=file), file, tmp_path)
    made.begin()
    return made


@pytest.mark.parametrize("more", [0, 200], ids=["few", "many"])
def test_seeds_by_command_that_come_back_are_scored_by_rank_in_every_region(ranked: Ranked, more: int) -> None:
    """R3, F2, N6: for few the store is asked, for many all ranks are brought. A new seed has its class."""
    ranked.end_cycle("seeded")
    urls = [f"https://{name}/seeded" for names in NAMES.values() for name in names]
    seeds = ranked.folder / "seeds.txt"
    seeds.write_text("\n".join([*(f"https://other{number}.test/" for number in range(more)), *urls]))
    assert run(["seed", "--seeds", str(seeds), "--config", str(ranked.file)]) == 0
    assert {group: ranked.ahead(group, "seeded") for group in NAMES} == {"": POINTS, "eu": POINTS}


def test_seeds_go_by_the_count_where_there_is_no_way_into_the_store(
    ranked: Ranked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3, C4: seeds need no credentials."""
    ranked.end_cycle("seeded")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert run(["seed", *(f"https://{name}/seeded" for name in NAMES[""]), "--config", str(ranked.file)]) == 0
    assert ranked.ahead("", "seeded") == 0


def test_dead_letters_are_put_back_by_rank(ranked: Ranked) -> None:
    """R3, F9: `dead --retry-all`, of a region as well."""
    for group, names in NAMES.items():
        urls = [f"https://{name}/dead" for name in names]
        asyncio.run(kill(ranked.of(group), urls))
        flags = ["--group", group] if group else []
        assert run(["dead", "--retry-all", "--config", str(ranked.file), *flags]) == 0
        assert ranked.ahead(group, "dead") == POINTS


async def kill(settings: Settings, urls: list[str]) -> None:
    """These were found, and were given up."""
    async with AsyncExitStack() as stack:
        _, frontier = await open_frontier(settings, SystemClock(), "worker", stack)
        await frontier.admit([Candidate(address_of(frontier, settings, url), 1, None) for url in urls])
        left = set(urls)
        while left:
            for lease in await frontier.claim(10, 60):
                dead = [Settlement(task, Dead("dns")) for task in lease.tasks]
                await frontier.settle(lease.token, dead, Release(0, Pace(0)))
                left -= {task.url for task in lease.tasks}


def test_links_into_another_region_are_scored_by_its_ranks(ranked: Ranked) -> None:
    """R3, N6: by those of the region, as soon as they are here; a worker's disk has them."""
    clock, told = Clock(), list[str]()

    async def hand_over(path: str) -> None:
        async with AsyncExitStack() as stack:
            objects = object_store(ranked.settings, clock)
            stack.push_async_callback(objects.close)
            folder = ranked.folder / "rank"
            ranks = RegionalRanks(folder, objects, clock, lambda _, sentence: told.append(sentence))
            visits = Visits(ranked.settings, clock, stack, ranks)
            border = visits.border("")
            assert border is not None
            here = (await visits("eu")).identifier
            await asyncio.to_thread(wait_until, lambda: any(folder.rglob("*.grades")), "no ranks come")
            clock.ahead_ms += LOOK_MS
            links = [here.identify(f"https://{name}/{path}") for name in NAMES["eu"]]
            await border.admit([Candidate(link, 1, None) for link in links if isinstance(link, Address)])

    asyncio.run(hand_over("linked"))
    assert ranked.ahead("eu", "linked") == POINTS
    assert told == []

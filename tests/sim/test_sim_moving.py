"""A crawl that moves from one engine to another and back, half done, and ends as if it had stayed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from crashes import World
from simulation import PATIENT
from three_books import check_whole, contents
from valkey_servers import ValkeyCluster, ValkeySingle

from nephila.engines.valkey_servers import servers_of
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.frontier.embedded import importing as embedded_importing
from nephila.frontier.embedded.exporting import LmdbExport
from nephila.frontier.moving import KINDS, AskedFor, UrlRow, UrlState, check_stream, read_stream, write_stream
from nephila.frontier.moving.rows import HostRow
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis import importing as redis_importing
from nephila.frontier.redis.exporting import RedisExport
from nephila.frontier.redis.opening import Opening
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of
from nephila.node.engines import policy_of
from nephila.testing.recount import check_tables
from nephila.testing.web import Calendar, SessionMaze, SimulatedWeb, WebSpec
from nephila.urls import Address, Fingerprint

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
_CRAWLS = count()


@pytest.fixture(scope="module")
def single() -> Iterator[list[str]]:
    with ValkeySingle() as valkey:
        yield valkey.names


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[str]]:
    with ValkeyCluster() as valkey:
        yield valkey.names


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of a crawl that stayed."""
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"))
    world.crawl()
    return set(contents(world).pages)


Told = dict[tuple[str, bytes], dict[str, Any]]


def identify(settings: Settings, secret: int) -> Any:
    identifier = identifier_of(settings, secret)

    def one(url: str) -> Address | None:
        address = identifier.identify(url)
        return address if isinstance(address, Address) else None

    return one


def keys_in(path: Path) -> list[tuple[str, Fingerprint]]:
    """Every URL that an export names, by host and fingerprint."""
    found, host = [], ""
    for row in read_stream(path):
        if isinstance(row, HostRow):
            host = row.name
        elif isinstance(row, UrlRow):
            found.append((host, Fingerprint(bytes.fromhex(row.fp))))
        elif type(row).__name__ == "RefusedRow":
            found.append((row.host, Fingerprint(bytes.fromhex(row.fp))))  # type: ignore[union-attr]
    return found


def told(story: UrlStory | None, step: int) -> dict[str, Any]:
    """A story without what moving changes: the rest of the host, and the timeline that steps are counted on."""
    assert story is not None
    said = asdict(story)
    said.pop("host_wait_ms")
    said["step"] = said["step"] - step if said["step"] >= 0 else None
    said["state"] = "queued" if said["state"] == "in_progress" else said["state"]
    return said


def counted(snapshot: FrontierSnapshot) -> dict[str, Any]:
    """Counters without what moving changes: that every host rests."""
    said = asdict(snapshot)
    for name in ("now", "next_in_ms", "hosts_ready", "hosts_waiting", "hosts_leased"):
        said.pop(name)
    said["due_again"] = {level: number for level, number in said["due_again"].items() if number}
    said["states"] = dict(said["states"])
    return said


class Mover:
    """Moves the frontier of a simulated crawl."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.policy = policy_of(world.settings)
        self.crawl = f"moving-{next(_CRAWLS)}"

    def out_of_directory(self, name: str) -> Path:
        frontier = LmdbFrontier(self.world.out / "frontier", self.world.clock, self.policy, threaded=False)
        path = self.folder / name
        export = LmdbExport(frontier.view, self.policy, identify(self.world.settings, frontier.secret), AskedFor({}))
        write_stream(path, export.rows())
        asyncio.run(frontier.close())
        return path

    def stories_in_directory(self, path: Path) -> tuple[Told, dict[str, Any]]:
        frontier = LmdbFrontier(self.world.out / "frontier", self.world.clock, self.policy, threaded=False)
        check_tables(frontier)
        head = check_stream(path)[0]
        found = {key: told(frontier.story(*key), head.step) for key in keys_in(path)}
        counters = counted(frontier.snapshot())
        asyncio.run(frontier.close())
        return found, counters

    def into_directory(self, path: Path) -> None:
        shutil.rmtree(self.world.out / "frontier")
        head = check_stream(path)[0]
        known = identify(self.world.settings, int(head.secret, 16))
        embedded_importing.import_into(
            self.world.out / "frontier", head, read_stream(path), self.policy, self.world.clock, known
        )

    def into_servers(self, path: Path, names: list[str], options: Opening) -> None:
        head = check_stream(path)[0]
        asyncio.run(
            redis_importing.import_into(
                servers_of(names), self.crawl, head, read_stream(path), self.policy, self.world.clock, options
            )
        )

    def stories_on_servers(self, path: Path, names: list[str], options: Opening) -> tuple[Told, dict[str, Any]]:
        async def look() -> tuple[Told, dict[str, Any]]:
            frontier = await RedisFrontier.open(
                names, self.crawl, self.policy, worker="w", clock=self.world.clock, options=options
            )
            step = frontier.timeline.now() // step_ms
            found = {key: told(frontier.story(*key), step) for key in keys_in(path)}
            counters = counted(await frontier.look())
            await frontier.close()
            return found, counters

        step_ms = check_stream(path)[0].step_ms
        return asyncio.run(look())

    def out_of_servers(self, names: list[str], name: str) -> Path:
        export = RedisExport(servers_of(names), self.crawl, self.policy, self.world.clock, AskedFor({}))
        path = self.folder / name
        write_stream(path, export.rows())
        export.close()
        return path


def move_around(world: World, folder: Path, names: list[str], shards: int) -> None:
    """From the directory to the servers and back, everything held against what it was."""
    options = Opening(shards=shards, virtual=True)
    mover = Mover(world, folder)
    first = mover.out_of_directory("first")
    stories, counters = mover.stories_in_directory(first)
    assert len(stories) == len(keys_in(first)) > 10
    mover.into_servers(first, names, options)
    there, counted_there = mover.stories_on_servers(first, names, options)
    assert there == stories
    assert counted_there == counters
    second = mover.out_of_servers(names, "second")
    assert sorted(keys_in(second)) == sorted(keys_in(first))
    mover.into_directory(second)
    back, counted_back = mover.stories_in_directory(second)
    assert back == stories
    assert counted_back == counters


@pytest.mark.parametrize("step", [60, 200, 350])
def test_a_half_done_crawl_moves_to_a_server_and_back_and_ends_whole(
    tmp_path: Path, single: list[str], wanted: set[str], step: int
) -> None:
    """N2, N7, F10, P2, P5: killed at a step, moved twice, finished: every page stored once, no violation."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    assert world.crawl(step) is None
    move_around(world, tmp_path, single, shards=1)
    assert world.crawl() is not None
    check_whole(world, wanted)


def test_a_crawl_moves_into_the_shards_of_a_cluster(tmp_path: Path, cluster: list[str], wanted: set[str]) -> None:
    """N1, N2, F10: the same with seven shards on three primaries."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    assert world.crawl(150) is None
    move_around(world, tmp_path, cluster, shards=7)
    assert world.crawl() is not None
    check_whole(world, wanted)


TRAPPED = replace(SMALL, traps=(Calendar(), SessionMaze()))
CROWDED = replace(
    PATIENT,
    budget=replace(PATIENT.budget, first_urls=12, queued_per_prefix=10),
    traps=replace(PATIENT.traps, slow_after=4, stop_after=8),
    recrawl=replace(PATIENT.recrawl, enabled=True),
    archive=replace(PATIENT.archive, sync_ms=10_000.0),
)
"""Small budgets, impatient traps and a lazy disk, so that there is something on shelves, in tallies and pending."""


def test_everything_that_a_frontier_knows_moves(tmp_path: Path, single: list[str]) -> None:
    """N2, F5, T2, T7, R2, R4, F9: shelves, traps, dead letters, planned visits, policies, blocks, pending pages."""
    world = World(SimulatedWeb(TRAPPED), tmp_path, CROWDED)
    seeds = world.web.seeds() + world.web.trap_seeds()
    assert world.crawl(1200, seeds=seeds) is None
    mover = Mover(world, tmp_path)
    frontier = LmdbFrontier(world.out / "frontier", world.clock, mover.policy, threaded=False)

    async def order() -> None:
        await frontier.set_policy("site1.test", DomainPolicy(delay_s=5.0, hours=((0, 23),), quality=2.0))
        await frontier.block(Block("site2.test", "they asked us", 7))
        await frontier.disown(SegmentId("lost.warc.gz"), 17)
        await frontier.confirm(SegmentId("lost.warc.gz"), 20)
        await frontier.close()

    asyncio.run(order())
    move_around(world, tmp_path, single, shards=3)
    kinds = check_stream(tmp_path / "first")[1].rows
    assert set(kinds) == set(KINDS.values()) - {"scope"} - ({"robots"} - set(kinds))
    urls = [row for row in read_stream(tmp_path / "first") if isinstance(row, UrlRow)]
    states, shelves = {row.state for row in urls}, {row.shelf for row in urls}
    assert states >= {UrlState.QUEUED, UrlState.PARKED, UrlState.DONE, UrlState.DROPPED, UrlState.DELAYED}
    assert shelves == {"", "over_budget", "trap"}
    assert any(row.capture and row.capture.pending for row in urls)
    assert any(row.due_reason == "due" for row in urls)
    assert kinds == check_stream(tmp_path / "second")[1].rows
    view = LmdbFrontierView.open(world.out / "frontier", world.clock, 1 << 30)
    assert view.policies() == {"site1.test": DomainPolicy(delay_s=5.0, hours=((0, 23),), quality=2.0)}
    assert view.blocks() == [Block("site2.test", "they asked us", 7)]
    assert view.orphans(SegmentId("lost.warc.gz")) == {17}
    view.close()

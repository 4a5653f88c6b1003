"""`nephila rank` for a fleet on real engines: read beside its workers, kept here, right by another reader (R3)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_engines import Engines, Fleet
from leashed import leashed
from link_graphs import write_some_grades
from second_ranks import reread
from served import nephila, run, served_articles
from waiting import wait_until

from nephila.config import Configured, load
from nephila.model.task import Candidate
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.fleet.opening import joined
from nephila.node.fleet.repute import publish
from nephila.node.fleet.servers import open_frontier, open_servers
from nephila.node.ground import Ground
from nephila.store import ArchivePlace
from nephila.urls import Address

DELAY_S = 0.1
HOSTS, PAGES = 8, 200
ALL = "100000"
UNKNOWN = ("quiet.test", "other.test")
POINTS = 5
"""What the best of all domains has before one that nobody links to: 0.12 of 40, rounded."""


@pytest.fixture
def fleet(tmp_path: Path, engines: Engines) -> Iterator[Fleet]:
    with begun(tmp_path, engines, DELAY_S) as made:
        yield made


@contextmanager
def begun(tmp_path: Path, engines: Engines, delay_s: float, wanted: str = "") -> Iterator[Fleet]:
    """One that has its seeds, and no worker yet."""
    more = f'\n[rank]\ndirectory = "{tmp_path / "ranks"}"\n{wanted}'
    with (
        served_articles(tmp_path / "web", 47, hosts=HOSTS, pages=PAGES, delay_s=delay_s, latency_ms=10) as web,
        Fleet(tmp_path / "fleet", engines, web, delay_s, more=more) as made,
    ):
        made.seed()
        yield made


@contextmanager
def configured(fleet: Fleet) -> Iterator[Configured]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in fleet.environ.items():
            patch.setenv(name, value)
        yield load(file=fleet.settings)


def ranked(fleet: Fleet, *more: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fleet.say("rank", "--json", "--top", ALL, *more))
    return found


def in_another_way(fleet: Fleet, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """The ranks of pages and domains by somebody who copies the archive and reads it with other tools."""

    async def bring(settings: Any) -> int:
        async with AsyncExitStack() as stack:
            objects, place = object_store(settings, SystemClock()), ArchivePlace.parse(settings.archive.url)
            stack.push_async_callback(objects.close)
            for name, key in place.names(await objects.keys(place.key(""))).items():
                if name.endswith(".warc.gz"):
                    (folder / "warc").mkdir(parents=True, exist_ok=True)
                    (folder / "warc" / name).write_bytes(await asyncio.to_thread(objects.read, key, 0, 1 << 30))
            _, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
            return frontier.secret

    with configured(fleet) as known:
        return reread(folder, known.settings, asyncio.run(bring(known.settings)))


def test_the_ranks_of_a_fleet_are_those_of_its_archive(fleet: Fleet, tmp_path: Path) -> None:
    """R3: computed while workers run, from what is new each time, and exact in the end."""
    workers = [fleet.start(name, "--forever") for name in ("first", "second")]
    wait_until(lambda: fleet.pages >= 30 and sum(fleet.stored().values()) >= 30, "they do not work")
    during = ranked(fleet)
    assert during["count"] >= 30
    assert not during["missing"]
    assert len(fleet.workers()) == 2
    wait_until(lambda: sum(fleet.stored().values()) >= PAGES, "they do not finish", 120)
    for worker in workers:
        fleet.say("fleet", "drain", worker.name)
    for worker in workers:
        worker.end()
    after = ranked(fleet)
    assert 0 < after["read"]["captures"] < sum(fleet.stored().values()), "what was read is not read again"
    assert ranked(fleet)["read"]["captures"] == 0
    pages, domains = in_another_way(fleet, tmp_path / "copy")
    assert after["count"] == len(pages) > 100
    assert sorted(one["rank"] for one in after["pages"]) == pytest.approx(sorted(pages.values()), abs=1e-7)
    found = ranked(fleet, "--domains")["domains"]
    assert {one["domain"]: one["rank"] for one in found} == pytest.approx(domains, abs=1e-7)
    assert {path.name for path in (tmp_path / "ranks").iterdir()} == {fleet.crawl}
    anew = ranked(fleet, "--anew", "--work", tmp_path / "elsewhere")
    again, before = ({page["url"]: page["rank"] for page in found["pages"]} for found in (anew, after))
    assert again == pytest.approx(before), "in another order sums differ in their last bits"
    assert anew["read"]["captures"] == during["read"]["captures"] + after["read"]["captures"]
    assert json.loads(fleet.say("audit", "--json"))["clean"]


def test_workers_score_by_what_was_published(fleet: Fleet, tmp_path: Path) -> None:
    """R3: one that comes has the ranks, and its frontier scores by them what is admitted; `why` knows them, too."""
    fleet.start("first").end()
    assert not ranked(fleet, "--no-publish")["published"]
    assert ranked(fleet)["published"]
    assert not ranked(fleet)["published"], "they are there already"
    assert asyncio.run(scored(fleet, tmp_path / "second", "before")) == 0, "nobody knows these domains"
    with configured(fleet) as known:
        asyncio.run(publish_others(known, tmp_path / "others"))
    assert asyncio.run(scored(fleet, tmp_path / "second", "after")) == POINTS
    best, other = (json.loads(fleet.say("why", f"http://{host}/after", "--json"))["score"] for host in UNKNOWN)
    assert best["rank"] - other["rank"] == best["points"] - other["points"] == POINTS


async def publish_others(known: Configured, path: Path) -> None:
    """Say that one of two domains that nobody links to is the best of all."""
    settings = known.settings
    async with AsyncExitStack() as stack:
        _, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
        objects = object_store(settings, SystemClock())
        stack.push_async_callback(objects.close)
        write_some_grades(path, identity_of(frontier.secret), {UNKNOWN[0]: 64, UNKNOWN[1]: 0})
        assert await publish(objects, ArchivePlace.parse(settings.archive.url), path)


async def scored(fleet: Fleet, folder: Path, path: str) -> int:
    """By how many points a worker puts a new URL of the one domain before one of the other."""
    with configured(fleet) as known:
        place = replace(known.settings.fleet, directory=str(folder))
        own = replace(known, settings=replace(known.settings, fleet=place))
        async with joined(own, Ground(SystemClock()), open_servers) as worker:
            await worker._post.ranks.look()
            machinery, steps = worker.machinery, list[int]()
            addresses = [machinery.identifier.identify(f"http://{host}/{path}") for host in UNKNOWN]
            found = [address for address in addresses if isinstance(address, Address)]
            await machinery.frontier.admit([Candidate(address, 1, None) for address in found])
            for address in found:
                story = await asyncio.to_thread(machinery.frontier.story, address.host, address.fingerprint)
                assert story is not None
                steps.append(story.step)
            return steps[1] - steps[0]


def test_a_job_computes_again_and_again_while_workers_run(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """R3: recomputed while crawling; nothing is stopped for it, and it is ended as any job is."""
    fleet = hold.enter_context(begun(tmp_path, engines, 4 * DELAY_S))
    worker = fleet.start("first", "--forever")
    wait_until(lambda: fleet.pages >= 10 and sum(fleet.stored().values()) >= 10, "it does not work")
    command = nephila("rank", "--config", fleet.settings, "--every", "1", "--json")
    log = fleet.folder / "rank.jsonl"
    with log.open("wb") as told:
        job = subprocess.Popen(leashed(command), stdout=told, env={**os.environ, **fleet.environ})
    try:
        wait_until(lambda: sum(one["published"] for one in told_in(log)) >= 3, "it does not go on")
    finally:
        job.terminate()
        job.wait(20)
    counts = [one["computed"]["count"] for one in told_in(log)]
    assert counts == sorted(counts)
    assert len(fleet.workers()) == 1
    assert counts[-1] > counts[0]
    fleet.say("fleet", "drain", worker.name)
    worker.end()
    assert json.loads(fleet.say("audit", "--json"))["clean"]


def told_in(log: Path) -> list[dict[str, Any]]:
    """What a job has printed so far."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_what_a_fleet_took_down_has_no_rank(fleet: Fleet, tmp_path: Path) -> None:
    """R3, K2: neither the page nor its links count after the next computation, as if it had never been read."""
    fleet.start("worker").end()
    before = ranked(fleet)
    gone = before["pages"][0]["url"]
    fleet.say("purge", gone, "--reason", "they asked us")
    after = ranked(fleet)
    assert gone not in {page["url"] for page in after["pages"]}
    anew = ranked(fleet, "--work", tmp_path / "elsewhere")
    assert after["pages"] == anew["pages"]


def test_whoever_names_no_crawl_is_told_so(fleet: Fleet, tmp_path: Path) -> None:
    """C4: one sentence, and no traceback: no crawl, two crawls, a folder that cannot be made, nothing stored yet."""
    place, config = tmp_path / "crawl", ("--config", fleet.settings)
    (tmp_path / "file").write_text("")
    for arguments, code, said in (
        ((), 2, "Name one crawl"),
        ((place, *config), 2, "Name one crawl"),
        ((place, "--work", tmp_path), 2, "--work is for a fleet"),
        ((*config, "--work", tmp_path / "file"), 1, "cannot be written"),
        (config, 1, "there is no catalogue in the schema"),
    ):
        found = run("rank", *arguments, code=None, env=fleet.environ)
        assert (found.returncode, said in found.stderr, "Traceback" in found.stderr) == (code, True, False), found


def test_the_most_important_pages_of_a_fleet_are_made_due(tmp_path: Path, engines: Engines) -> None:
    """R2: by whoever computes the ranks, unless he only looks; a worker then asks for just these once more."""
    with begun(tmp_path, engines, DELAY_S, "\n[recrawl]\ntarget_pages = 4\ntarget_age_s = 3\n") as fleet:
        fleet.start("first").end()
        assert ranked(fleet, "--no-publish")["made_due"] == 0
        told = ranked(fleet)
        assert told["made_due"] == 4
        assert ranked(fleet)["made_due"] == 0, "they wait already"
        fleet.start("second").end()
        query = "SELECT url FROM captures WHERE NOT robots GROUP BY url HAVING count(*) > 1"
        again = {url for (url,) in fleet.engines.database.query(query, f'"crawl_{fleet.crawl}"')}
    assert again == {page["url"] for page in told["pages"][:4]}

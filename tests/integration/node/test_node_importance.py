"""`nephila rank` on real crawl directories: what is read of the archive, and that nothing else is touched."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from click.testing import CliRunner, Result
from control import controlled
from crashes import World
from second_ranks import reread
from simulation import PATIENT, simulate

from nephila.cli.main import cli, run
from nephila.config import write_stored
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.model.outcome import Dead, Release, Settlement
from nephila.model.task import Candidate, PageTask
from nephila.node.addressing import identifier_of
from nephila.node.clock import SystemClock
from nephila.node.desk import desk_beside
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import embedded_engines, policy_of
from nephila.node.frontiers import embedded_of
from nephila.node.ground import Ground
from nephila.node.importance.premises import importance_of
from nephila.node.importance.renewing import Importance
from nephila.node.inspect import open_view
from nephila.ranking import DOMAINS, PAGES
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.objects import SimulatedObjectStore, Weather
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.urls import Address

SETTINGS = replace(
    PATIENT,
    archive=replace(PATIENT.archive, max_bytes=60_000),
    limits=replace(PATIENT.limits, max_wait_s=250.0),
    aliases=replace(PATIENT.aliases, learn=False),
)
WEB = replace(WebSpec.standard(11), hosts=12, pages=150, page_bytes=600)
ALL = 100_000


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ranked") / "crawl"
    simulate(SimulatedWeb(WEB), out, SETTINGS)
    write_stored(out, SETTINGS)
    return out


@pytest.fixture
def out(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "crawl", ignore=shutil.ignore_patterns("lock.mdb"))
    return tmp_path / "crawl"


def ranks(out: Path, **asked: bool) -> Importance:
    found = importance_of(out, pages=ALL, domains=ALL, **asked)
    assert found is not None
    return found


def by_url(found: Importance) -> dict[str, float]:
    return {page.url: page.rank for page in found.top_pages}


def by_domain(found: Importance) -> dict[str, float]:
    return {one.domain: one.rank for one in found.top_domains}


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def test_ranks_are_those_that_another_reader_of_the_archive_finds(out: Path) -> None:
    """R3: pages and domains of a web with redirects, duplicates, canonical links, nofollow, lists and missing pages."""
    pages, domains = reread(out, SETTINGS)
    found = ranks(out)
    assert found.pages is not None
    assert found.pages.count == len(pages) > 60
    assert sorted(by_url(found).values()) == pytest.approx(sorted(pages.values()), abs=1e-7)
    assert by_domain(found) == pytest.approx(domains, abs=1e-7)


def test_what_was_read_is_not_read_again(out: Path) -> None:
    """R3: the second time nothing is, and nothing is computed."""
    first = ranks(out)
    assert first.read.captures > 60
    written = {path: path.stat().st_mtime_ns for path in (out / "rank").iterdir()}
    again = ranks(out)
    assert (again.read.captures, again.pages, again.top_domains) == (0, first.pages, first.top_domains)
    assert {path: path.stat().st_mtime_ns for path in (out / "rank").iterdir()} == written


def test_a_crawl_that_goes_on_is_read_on(tmp_path: Path) -> None:
    """R3: what was added, and what has changed, as if all were read at once."""
    web, out, clock = SimulatedWeb(WEB), tmp_path / "crawl", VirtualClock()
    limited = replace(SETTINGS, limits=replace(SETTINGS.limits, max_pages=40))
    simulate(web, out, limited, clock=clock)
    write_stored(out, SETTINGS)
    before = ranks(out)
    simulate(web, out, SETTINGS, clock=clock)
    grown = ranks(out)
    assert before.pages is not None
    assert grown.pages is not None
    assert grown.pages.count > before.pages.count
    simulate(web, out, SETTINGS, clock=clock, new_cycle=True)
    again = ranks(out)
    assert again.read.captures > 0
    anew = ranks(out, anew=True)
    assert anew.read.captures == before.read.captures + grown.read.captures + again.read.captures
    assert by_url(anew) == pytest.approx(by_url(again), abs=1e-12)
    assert by_domain(anew) == pytest.approx(by_domain(again), abs=1e-12)


def test_nothing_but_its_own_folder_is_written_beside_a_running_crawl(out: Path) -> None:
    """R3: whoever holds the directory is not asked."""

    def others() -> dict[Path, bytes]:
        own = {"lock.mdb", "catalogue.sqlite-shm", "catalogue.sqlite-wal"}
        files = (path for path in out.rglob("*") if path.is_file() and path.name not in own)
        return {path: path.read_bytes() for path in files if path.parent != out / "rank"}

    before = others()
    with CrawlDirectory(out).held():
        assert ranks(out).top_pages
    assert others() == before


def test_what_is_purged_is_left_out(out: Path) -> None:
    """R3, K2: as soon as the archive does not have it."""
    url = ranks(out).top_pages[0].url
    assert invoke("purge", out, url, "--reason", "they asked us").exit_code == 0
    found = ranks(out)
    assert url not in by_url(found)
    assert by_url(ranks(out, anew=True)) == pytest.approx(by_url(found), abs=1e-12)


def test_a_lost_file_of_the_archive_is_told_and_left_out(out: Path) -> None:
    """R3, C4: and so is a damaged one, from the damage on."""
    first, second, *_ = sorted((out / "warc").glob("*.warc.gz"))
    first.unlink()
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 0xFF
    second.write_bytes(data)
    result = invoke("rank", out, "--top", "1")
    assert result.exit_code == 0
    assert f"Without 1 file that the archive does not have: {first.name}" in result.stderr
    assert f"{second.name} is damaged at byte" in result.stderr
    told = json.loads(invoke("rank", out, "--json").stdout)
    assert told["missing"] == [first.name]


def test_an_archive_in_a_store_is_read_from_there(tmp_path: Path) -> None:
    """R3, W2: what was uploaded, and what waits in the spool."""
    elsewhere = replace(
        SETTINGS,
        archive=replace(SETTINGS.archive, url="s3://crawls/spiders"),
        spool=replace(SETTINGS.spool, segment_bytes=30_000, segment_age_s=20.0),
    )
    objects = SimulatedObjectStore()
    world = World(SimulatedWeb(WEB), tmp_path, elsewhere, objects=objects)
    world.crawl()
    write_stored(world.out, elsewhere)
    calm = SimulatedObjectStore(weather=Weather(latency_s=0.0), objects=objects.objects)
    found = importance_of(world.out, pages=ALL, objects=calm)
    assert found is not None
    assert not found.read.missing
    assert len(found.top_pages) > 60


def test_the_files_of_ranks_can_be_deleted_and_damaged(out: Path) -> None:
    """R3: they are made anew from what was read."""
    found = ranks(out)
    (out / "rank" / PAGES).unlink()
    (out / "rank" / DOMAINS).write_bytes(b"nothing")
    again = ranks(out)
    assert again.read.captures == 0
    assert by_url(again) == by_url(found)
    shutil.rmtree(out / "rank")
    assert by_url(ranks(out)) == pytest.approx(by_url(found))


def test_another_damping_is_another_computation(out: Path) -> None:
    before = by_url(ranks(out))
    write_stored(out, replace(SETTINGS, rank=replace(SETTINGS.rank, damping=0.5)))
    after = by_url(ranks(out))
    assert max(after.values()) < max(before.values())


def test_the_command_lists_pages_and_domains(out: Path) -> None:
    """R3, C4: the highest first, for people and for scripts."""
    found = ranks(out)
    result = invoke("rank", out, "--top", "3")
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.stdout.splitlines()] == [page.url for page in found.top_pages[:3]]
    assert "1.00 is the mean" in result.stderr
    shown = invoke("rank", out, "--top", "2", "--domains").stdout.splitlines()
    assert shown[0].split() == ["rank", "pages", "referring", "domain"]
    assert [line.split()[-1] for line in shown[1:]] == [one.domain for one in found.top_domains[:2]]
    told = json.loads(invoke("rank", out, "--top", "2", "--domains", "--json").stdout)
    assert [one["domain"] for one in told["domains"]] == [one.domain for one in found.top_domains[:2]]
    assert told["computed"]["damping"] == 0.85


def test_the_share_of_important_pages_that_are_fresh_is_told(out: Path) -> None:
    """R2: of the pages of highest rank, those whose last answer is not older than asked for; errors do not count."""
    pages = [page.url for page in ranks(out).top_pages[:9]]
    now = time.time_ns() // 1_000_000
    with closing(sqlite3.connect(out / "catalogue.sqlite")) as catalogue, catalogue:
        catalogue.executemany("UPDATE captures SET at = ? WHERE url = ?", [(now, url) for url in pages[:5]])
        catalogue.execute("UPDATE captures SET at = ?, status = 503 WHERE url = ?", (now, pages[5]))
    write_stored(out, replace(SETTINGS, recrawl=replace(SETTINGS.recrawl, target_pages=9)))
    told = json.loads(invoke("rank", out, "--json").stdout)["freshness"]
    assert told == {"pages": 9, "fresh": 5, "age_s": 86_400.0}
    assert "Of the 9 pages of highest rank 56% were visited in the last 1 d.\n" in invoke("rank", out).stderr


def test_a_crawl_without_a_page_has_no_ranks(tmp_path: Path) -> None:
    """R3, C4: one sentence."""
    out = tmp_path / "crawl"
    simulate(SimulatedWeb(WEB), out, SETTINGS, seeds=["http://nobody.invalid/"])
    write_stored(out, SETTINGS)
    result = invoke("rank", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No page is stored yet" in result.stderr
    told = json.loads(invoke("rank", out, "--json").stdout)
    assert (told["pages"], told["computed"], told["freshness"]) == ([], None, None)


def test_a_place_that_cannot_be_written_is_told(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C4: one sentence, and what to do."""
    (out / "rank").write_text("a file")
    assert run(["rank", str(out)]) == 1
    assert "rank cannot be written: file exists" in capsys.readouterr().err


def test_what_is_no_crawl_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C4: one sentence."""
    assert run(["rank", str(tmp_path / "nothing")]) == 1
    assert "there is no crawl at" in capsys.readouterr().err


def test_why_tells_the_rank_of_a_page_and_of_its_domain(out: Path) -> None:
    """R3, T8: as it was computed last; nothing where it was not."""
    url = next(iter(open_view(out).pages(status=200, limit=1))).url
    assert "PageRank" not in invoke("why", out, url).stdout
    first = ranks(out).top_pages[0]
    told = invoke("why", out, first.url).stdout
    assert f"{first.times_mean:,.2f} times the mean of" in told
    assert "of which link to it" in told
    data = json.loads(invoke("why", out, first.url, "--json").stdout)
    assert data["pagerank"]["rank"] == first.rank
    domain = next(one for one in ranks(out).top_domains if one.domain == data["domain_pagerank"]["domain"])
    assert (data["domain_pagerank"]["rank"], data["domain_pagerank"]["grade"]) == (domain.rank, domain.grade)


def test_the_api_tells_it_too(out: Path) -> None:
    """R3, C1: `why` of the control API has the same data."""
    first = ranks(out).top_pages[0]
    with controlled(out) as api:
        told = api.ask("GET", f"/api/v1/why?url={quote(first.url, safe='')}").json()
    assert "PageRank" in json.dumps(told)


def test_a_crawl_that_goes_on_uses_the_ranks_of_its_directory(out: Path) -> None:
    """R3: the frontier is given the grades that were computed."""
    domain = ranks(out).top_domains[0]

    async def main() -> int | None:
        async with AsyncExitStack() as stack:
            ground = Ground(VirtualClock(), threaded=False)
            engines = embedded_engines(CrawlDirectory(out), SETTINGS, ground, stack, sharing=None, alone=True)
            repute = embedded_of(engines.frontier)._group.policy.repute
            assert repute is not None
            assert repute.look()
            return repute.grade_of(f"www.{domain.domain}")

    assert run_virtual(main) == domain.grade > 0


async def give_up_a_page_of_each(out: Path, domains: list[str]) -> None:
    """One that was linked to, and could not be had."""
    clock = VirtualClock()
    frontier = LmdbFrontier(out / "frontier", clock, replace(policy_of(SETTINGS), robots=False), threaded=False)
    try:
        identifier, left = identifier_of(SETTINGS, frontier.secret), set(domains)
        found = [identifier.identify(f"https://{domain}/gone") for domain in domains]
        await frontier.admit([Candidate(one, 1, None) for one in found if isinstance(one, Address)])
        while left:
            clock.advance(60)
            for lease in await frontier.claim(100, 60):
                dead = [Settlement(task, Dead("dns")) for task in lease.tasks if isinstance(task, PageTask)]
                await frontier.settle(lease.token, dead, Release(0, lease.pace))
                left -= {urlsplit(one.task.url).hostname or "" for one in dead if one.task.url.endswith("/gone")}
    finally:
        await frontier.close()


@pytest.mark.parametrize("by_desk", [False, True], ids=["dead --retry-all", "serve"])
def test_dead_letters_are_put_back_by_the_ranks_of_their_domains(out: Path, tmp_path: Path, by_desk: bool) -> None:
    """R3, F9: by a command, and by a server beside the directory; without ranks by who links to them."""

    async def at_desk(folder: Path) -> int:
        async with desk_beside(folder) as desk:
            return await desk.frontier.revive(desk.frontier.dead(ALL))

    def put_back(folder: Path) -> list[int]:
        view = open_view(folder)
        letters = view.dead(ALL)
        assert letters
        assert (asyncio.run(at_desk(folder)) if by_desk else view.revive(None)) == len(letters)
        with closing(LmdbFrontierView.open(folder / "frontier", SystemClock(), SETTINGS.frontier.map_bytes)) as known:
            stories = [known.story(letter.host, letter.fingerprint) for letter in letters]
        steps = [story.step for story in stories if story is not None]
        return [step - steps[0] for step in steps]  # by no clock

    asyncio.run(give_up_a_page_of_each(out, list(by_domain(ranks(out)))))
    shutil.rmtree(out / "rank")
    without = tmp_path / "without"
    shutil.copytree(out, without, ignore=shutil.ignore_patterns("lock.mdb"))
    ranks(out)
    assert put_back(out) != put_back(without)

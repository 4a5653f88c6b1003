"""Crawls that lose their frontier, and go on with one that was built anew from the archive."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from crashes import World
from postgres import running
from three_books import check_whole, contents

from nephila.cli.main import run
from nephila.config import write_stored
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import FrontierError
from nephila.model.record import SegmentId
from nephila.node.addressing import identifier_of, identify_with
from nephila.node.bookkeeper import Bookkeeper
from nephila.node.engines import policy_of
from nephila.node.rebuilding import Rebuilt, rebuild_directory
from nephila.node.takedown.record import Order, TakedownFolder
from nephila.store import SqliteCatalogue
from nephila.store.postgres import PostgresCatalogue
from nephila.testing.recount import check_tables
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.spec import HostMix, PageMix, RobotsKind

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of a crawl that lost nothing."""
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"))
    world.crawl()
    return set(contents(world).pages)


def lose_and_rebuild(world: World, *, catalogue: bool = True) -> Rebuilt:
    write_stored(world.out, world.settings)
    shutil.rmtree(world.out / "frontier")
    if not catalogue:
        for path in world.out.glob("catalogue.sqlite*"):
            path.unlink()
    return rebuild_directory(world.out, world.clock)


@pytest.mark.parametrize("catalogue", [True, False], ids=["catalogue", "archive alone"])
@pytest.mark.parametrize("step", [80, 200, 350])
def test_a_crawl_goes_on_with_a_frontier_from_its_archive(
    tmp_path: Path, wanted: set[str], step: int, catalogue: bool
) -> None:
    """N8, F10, P2, P5: every page that can be reached is stored, and none is asked for twice that was answered."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    assert world.crawl(step) is None
    rebuilt = lose_and_rebuild(world, catalogue=catalogue)
    assert rebuilt.captures > 0
    frontier = LmdbFrontier(world.out / "frontier", world.clock, policy_of(world.settings), threaded=False)
    check_tables(frontier)
    assert frontier.snapshot().pages == rebuilt.pages > 0
    assert sum(frontier.snapshot().queued.values()) > 0
    frontier._tables.close()
    assert world.crawl() is not None
    check_whole(world, wanted)


def test_what_was_known_of_pages_is_known_again(tmp_path: Path) -> None:
    """N8, P1, R2: depth, where it was found, validators, digests, robots.txt; hosts rest a full delay."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    world.crawl()
    urls = contents(world).pages
    before = LmdbFrontierView.open(world.out / "frontier", world.clock, 1 << 30)
    secret = before.secret

    def stories(view: LmdbFrontierView) -> dict[str, tuple[object, ...]]:
        identify = identify_with(identifier_of(world.settings, view.secret))
        told = {}
        for url in urls:
            address = identify(url)
            assert address is not None
            story = view.story(address.host, address.fingerprint)
            if story is not None:
                told[url] = (
                    story.url, story.state, story.depth, story.via, story.status, story.segment, story.offset,
                    story.digest, story.settled_at // 60_000,
                )  # fmt: skip
        return told

    known = stories(before)
    origins = {f"http://site{number}.test" for number in range(8)}
    rules = {origin: before.rules(origin) for origin in origins}
    before.close()
    lose_and_rebuild(world)
    after = LmdbFrontierView.open(world.out / "frontier", world.clock, 1 << 30)
    assert after.secret != secret
    again = stories(after)
    assert known.keys() == again.keys()
    differing = {url for url in known if known[url] != again[url]}
    assert not differing, {url: (known[url], again[url]) for url in differing}
    for origin, rule in rules.items():
        found = after.rules(origin)
        assert (rule is None) == (found is None)
        if rule is not None and found is not None:
            assert (found.kind, found.body, found.status) == (rule.kind, rule.body, rule.status)
    after.close()


def test_nothing_of_a_segment_stays_in_memory_when_it_is_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N8, Q5: an archive of millions of pages is gone through file by file."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    world.settings = replace(world.settings, archive=replace(world.settings.archive, max_bytes=50_000))
    world.crawl()
    adopt, kept = Bookkeeper.adopt, list[set[SegmentId]]()

    async def noted(self: Bookkeeper, segment: SegmentId, end: int, rows: Sequence[CaptureRow]) -> None:
        kept.append({place[0] for place in self._originals} | {row.segment for row in self._rows})
        await adopt(self, segment, end, rows)

    monkeypatch.setattr(Bookkeeper, "adopt", noted)
    lose_and_rebuild(world)
    assert len(kept) > 2
    assert all(len(segments) <= 1 for segments in kept)


def table(world: World, name: str) -> list[dict[str, Any]]:
    """All rows of a table of the catalogue, in an order that does not depend on the crawl's secret."""
    if name == "captures":
        name = 'captures c JOIN segments s ON s.id = c.segment ORDER BY s.name, c."offset"'
    else:
        name += " ORDER BY url" if name == "pages" else " ORDER BY domain"
    with closing(sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]  # noqa: S608 - our own names


TABLES = ("captures", "pages", "domains")
OF_LEASES = ("assigned_at", "timeout_at")


def visited_twice(path: Path, **dedup: bool) -> World:
    """A crawl with revisits of all kinds: the same content under another URL, unchanged pages, changed ones."""
    spec = replace(
        SMALL,
        page_mix=PageMix(duplicate=0.2, near=0.2),
        host_mix=HostMix(robots=(RobotsKind.DELAY, RobotsKind.SIGNAL, RobotsKind.OPEN), subhosts=0),
    )
    world = World(SimulatedWeb(spec), path)
    world.settings = replace(world.settings, dedup=replace(world.settings.dedup, **dedup))
    world.crawl()
    world.clock.advance(9 * 86_400)
    world.crawl(new_cycle=True)
    return world


@pytest.mark.parametrize("dedup", [{}, {"near_store": False}], ids=["bodies", "bodies left out"])
@pytest.mark.parametrize("lost", ["catalogue", "frontier", "both"])
def test_a_catalogue_that_is_written_anew_is_what_it_was(tmp_path: Path, lost: str, dedup: dict[str, bool]) -> None:
    """W3, N8: row by row. Hashes of URLs go with the secret of the frontier, and times of leases are in no archive."""
    world = visited_twice(tmp_path, **dedup)
    before = {name: table(world, name) for name in TABLES}
    kinds = {row["kind"] for row in before["captures"] if row["title"] and row["length"]}
    assert kinds == {"response", "revisit"}
    assert sum(row["next_crawl_at"] is not None for row in before["pages"]) > 20
    assert any(row["change_rate"] is not None for row in before["pages"])
    assert any(row["crawl_delay_ms"] for row in before["domains"])
    assert any(row["duplicate_of"] for row in before["captures"])
    assert any(row["signals"] for row in before["captures"])
    if lost == "catalogue":
        for file in world.out.glob("catalogue.sqlite*"):
            file.unlink()
        world.crawl()
    else:
        lose_and_rebuild(world, catalogue=lost == "frontier")
    left_out = {"segment", "id"} | ({"url_hash"} if lost != "catalogue" else set())
    left_out |= set(OF_LEASES) if lost != "frontier" else set()
    for name in TABLES:
        wanted = [{key: row[key] for key in row if key not in left_out} for row in before[name]]
        found = [{key: row[key] for key in row if key not in left_out} for row in table(world, name)]
        assert [row for row in found if row not in wanted] == []
        assert found == wanted


def test_a_catalogue_that_goes_into_another_engine_has_the_same_pages_and_domains(tmp_path: Path) -> None:
    """W3, N8: the plans of pages and the robots.txt of domains, which are kept with no capture, included."""
    world = visited_twice(tmp_path / "world")
    with (
        running() as server,
        closing(SqliteCatalogue(world.out / "catalogue.sqlite", read_only=True)) as here,
        closing(PostgresCatalogue(server.settings, "copy", server.environ)) as there,
    ):
        for segment in here.extent():
            there.record(list(here.whole_captures(segment)), [])
        pages = list(there.pages(limit=10_000))
        assert sorted(pages, key=attrgetter("url")) == sorted(here.pages(limit=10_000), key=attrgetter("url"))
        assert any(page.next_crawl_at for page in pages)
        names = [row["domain"] for row in table(world, "domains")]
        assert [there.domain(name) for name in names] == [here.domain(name) for name in names]


def test_a_frontier_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    """N8: nothing is overwritten, and nothing is left behind."""
    world = World(SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4)), tmp_path)
    world.crawl()
    with pytest.raises(FrontierError, match="has a frontier, which knows"):
        rebuild_directory(world.out, world.clock)
    lose_and_rebuild(world)
    assert not (world.out / "rebuild").exists()
    assert (world.out / "catalogue-before-rebuild.sqlite").exists()


def state_of(folder: Path) -> dict[str, bytes]:
    """Every file, but for those that readers of the catalogue share."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("left", ["everything", "archive alone", "catalogue alone", "chain alone", "no marker"])
def test_no_frontier_is_begun_over_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str], left: str) -> None:
    """F10, N8, C4: its pages would be fetched again; what to do is told, and nothing is touched."""
    world = World(SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4)), tmp_path)
    world.crawl()
    write_stored(world.out, world.settings)
    shutil.rmtree(world.out / "frontier")
    if left in {"archive alone", "chain alone"}:
        (world.out / "catalogue.sqlite").unlink()
    if left in {"catalogue alone", "archive alone"}:
        shutil.rmtree(world.out / "chain")
    if left in {"catalogue alone", "chain alone"}:  # as where the archive goes to a store
        shutil.rmtree(world.out / "warc")
    if left == "no marker":
        for path in world.out.iterdir():
            if path.name != "warc":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = state_of(world.out)
    asks = [["crawl", "http://site0.test/", "--out"], ["crawl", "http://site0.test/", "--processes", "2", "--out"]]
    if left != "no marker":
        asks += [["crawl", "--out"], ["status"]]
    for ask in asks:
        assert run([*ask, str(world.out)]) == 1
        told = capsys.readouterr().err
        assert "has an archive, but no frontier any more" in told
        assert f"nephila frontier rebuild {world.out}" in " ".join(told.split())
        assert state_of(world.out) == before


def test_a_lost_catalogue_is_told_from_a_crawl_that_has_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """F10, C4: going on writes it anew."""
    world = World(SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4)), tmp_path)
    world.crawl()
    write_stored(world.out, world.settings)
    (world.out / "catalogue.sqlite").unlink()
    for ask in (["status"], ["sql"], ["why"]):
        assert run([*ask, str(world.out), *(["http://site0.test/"] if ask == ["why"] else [])]) == 1
        told = capsys.readouterr().err
        assert "has no catalogue any more" in told
        assert f"nephila crawl --out {world.out}" in " ".join(told.split())
    world.crawl()
    assert run(["status", str(world.out)]) == 0


def test_what_was_taken_down_stays_blocked(tmp_path: Path) -> None:
    """N8, K2, T7: pages that link to it are still in the archive."""
    world = World(SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4)), tmp_path)
    world.crawl()
    folder = TakedownFolder(world.out / "takedowns")
    folder.add(Order(("http://site0.test/people",), ("site1.test",), "they asked us", "jane"), 7)
    lose_and_rebuild(world)
    view = LmdbFrontierView.open(world.out / "frontier", world.clock, 1 << 30)
    blocks = {block.pattern: block.reason for block in view.blocks()}
    view.close()
    assert blocks == {"http://site0.test/people$": "they asked us", "site1.test": "they asked us"}


def test_the_files_of_an_archive_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """N8, C4: as they come from a store of objects, with the settings of the fleet that wrote them."""
    world = World(SimulatedWeb(SMALL), tmp_path)
    assert world.crawl(200) is None
    shutil.copytree(world.out / "warc", tmp_path / "copy" / "warc", ignore=shutil.ignore_patterns("*.cdxj"))
    config = tmp_path / "fleet.toml"
    config.write_text(
        '[scope]\nmode = "all"\n[archive]\nurl = "s3://bucket/web"\n[catalogue]\nurl = "postgresql://a/b"\n'
    )
    assert run(["frontier", "rebuild", str(tmp_path / "copy"), "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pages"] > 5
    assert told["queued"] > 5
    assert told["lost"]
    assert run(["frontier", "export", str(tmp_path / "copy"), "--to", str(tmp_path / "file")]) == 0
    assert run(["frontier", "rebuild", str(tmp_path / "copy")]) == 1
    assert run(["frontier", "rebuild", str(tmp_path / "nothing")]) == 1
    assert "there is no archive in" in capsys.readouterr().err

"""Retention on whole simulated crawls: what need not be kept goes, all else is untouched, cut off anywhere."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from crashes import World
from simulation import PATIENT
from three_books import check_books, contents
from warc_checks import check_archives

from nephila.engines.disk import Disk, LocalDisk
from nephila.interfaces.retention import RetentionRule
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.audit import audit
from nephila.node.directory import CrawlDirectory
from nephila.node.retention import Retained, Retention
from nephila.node.retention.ordering import parts_of
from nephila.store import CrawlIdentity
from nephila.store.indexed import IndexedMarks
from nephila.store.moving import Elsewhere
from nephila.store.reader import WarcReader, WarcRecord
from nephila.store.tombstone import is_tombstone
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.spec import PageMix

SMALL = replace(
    WebSpec.standard(5), hosts=6, pages=40, page_bytes=1500, links_per_page=10, page_mix=PageMix(duplicate=0.3)
)
CHANGING = replace(
    SMALL,
    wire=replace(SMALL.wire, validators=0.6, lying=0.0, changing=0.5),
    timing=replace(SMALL.timing, change_s=3600.0),
)
ROLLING = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=30_000))
BY_PAGE = replace(PATIENT, archive=replace(PATIENT.archive, layout="key"))
ZSTD = replace(ROLLING, archive=replace(ROLLING.archive, compression="zstd"))
CYCLES = 5
HOURS_MS = 3_600_000

Row = tuple[Any, ...]


@dataclass
class Kept:
    """A world whose runs end with a retention, as `nephila retain` does it."""

    world: World
    done: list[Retained]

    def crawl_cycles(self, count: int = CYCLES) -> None:
        for number in range(count):
            assert self.world.crawl(new_cycle=number > 0) is not None
            self.world.clock.advance(3 * 3600)
            self.world.auditor.new_cycle()

    def retain(
        self, rule: RetentionRule, elsewhere: Path | None = None, crash_at: int = 0, *, stops_after: int = -1
    ) -> bool:
        """Whether it came to its end."""

        def prepare(crawl: Any, disk: Disk) -> None:
            place = Elsewhere(elsewhere, disk, CrawlIdentity(7)) if elsewhere is not None else None

            async def afterwards() -> None:
                told: list[int] = []
                async with parts_of(crawl.machinery, CrawlDirectory(self.world.out)) as parts:
                    retention = Retention(
                        parts, place, lambda done, _files: told.append(done), lambda: len(told) == stops_after
                    )
                    self.done.append(await retention.carry_out(rule))

            crawl.afterwards = afterwards

        self.world.prepare = prepare
        try:
            summary = self.world.crawl(crash_at, seeds=[])
        finally:
            self.world.prepare = None
        assert summary is None or summary.failure == ""
        return summary is not None

    def rows(self, query: str, *values: object) -> list[Row]:
        connection = sqlite3.connect(f"file:{self.world.out}/catalogue.sqlite?mode=ro", uri=True)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def records(self, folder: Path | None = None) -> Iterator[tuple[str, WarcRecord]]:
        disk = self.world.disk
        folder = folder or self.world.out / "warc"
        for name in disk.names(folder):
            if name.endswith((".warc.gz", ".warc.zst")):
                file = disk.open(folder / name)
                yield from ((name, record) for record in WarcReader(file, name))
                file.close()

    def places(self) -> dict[tuple[str, int], bytes]:
        return {(name, one.offset): one.block for name, one in self.records() if not is_tombstone(one)}

    def check(self) -> None:
        """Three books that agree, a trail that holds, and no revisit without its original."""
        check_books(contents(self.world))
        disk = self.world.disk if isinstance(self.world.disk, ForgetfulDisk) else LocalDisk()
        found = audit(self.world.out, disk=disk)
        assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])
        here = [one for _, one in self.records()]
        ids = {one.record_id for one in here}
        assert {one.get("warc-refers-to").strip("<>") for one in here if one.kind == "revisit"} - {""} <= ids
        assert self.rows("SELECT captures FROM totals") == self.rows("SELECT count(*) FROM captures")
        listed = self.rows("SELECT count(*) FROM pages")
        assert listed == self.rows("SELECT count(*) FROM page_states"), "every page stands on a capture"


def kept_world(folder: Path, settings: Settings = ROLLING, power: random.Random | None = None) -> Kept:
    return Kept(World(SimulatedWeb(CHANGING), folder, settings, power), [])


def most_of_a_page(kept: Kept) -> int:
    query = "SELECT count(*) FROM captures WHERE robots = 0 AND (status = 304 OR status / 100 = 2) GROUP BY url_hash"
    return max(count for (count,) in kept.rows(query))


@pytest.mark.parametrize("settings", [ROLLING, BY_PAGE, ZSTD], ids=["rolling", "by-key", "zstd"])
def test_the_newest_captures_of_a_page_stay_and_all_else_lies_where_it_lay(tmp_path: Path, settings: Settings) -> None:
    """W5: 2 of 5; what others refer to, robots.txt and pages stay; records that stay keep place and bytes."""
    kept = kept_world(tmp_path, settings)
    kept.crawl_cycles()
    before, pages = kept.places(), kept.rows("SELECT url, storage_key, crawl_count FROM pages ORDER BY url")
    robots = kept.rows("SELECT count(*) FROM captures WHERE robots = 1")
    captures = kept.rows("SELECT count(*) FROM captures")[0][0]
    newest = {
        url: [row[0] for row in kept.rows("SELECT at FROM captures WHERE url = ? ORDER BY at DESC LIMIT 1", url)]
        for url, *_ in pages
    }
    assert most_of_a_page(kept) >= CYCLES
    assert kept.retain(RetentionRule(2))
    done = kept.done[-1]
    assert done.captures == done.choice.captures > 20
    assert done.choice.pages_gone == 0
    assert kept.rows("SELECT count(*) FROM captures")[0][0] == captures - done.captures
    kept.check()
    if settings is not BY_PAGE:  # a process for every file
        check_archives(kept.world.out)
    assert kept.rows("SELECT url, storage_key, crawl_count FROM pages ORDER BY url") == pages
    assert kept.rows("SELECT count(*) FROM captures WHERE robots = 1") == robots
    for url, [at] in newest.items():
        assert kept.rows("SELECT 1 FROM captures WHERE url = ? AND at = ?", url, at)
    after = kept.places()
    assert after.items() <= before.items()
    more = kept.rows(
        "SELECT url_hash FROM captures WHERE robots = 0 AND (status = 304 OR status / 100 = 2)"
        " GROUP BY url_hash HAVING count(*) > 2"
    )
    stays = "SELECT payload_digest FROM captures WHERE kind = 'revisit'"
    for (fingerprint,) in more:  # only what something refers to, or what the page stands on
        extra = kept.rows(
            "SELECT 1 FROM captures c WHERE url_hash = ?1 AND kind = 'revisit' AND (status = 304 OR status / 100 = 2)"
            ' AND NOT EXISTS (SELECT 1 FROM page_states p WHERE p.segment = c.segment AND p."offset" = c."offset")'
            " AND (SELECT count(*) FROM captures n WHERE n.url_hash = ?1 AND n.at > c.at"
            "      AND (n.status = 304 OR n.status / 100 = 2)) >= 2",
            fingerprint,
        )
        assert extra == []
    assert kept.rows(stays)
    assert kept.retain(RetentionRule(2))
    assert kept.done[-1].choice.captures == 0, "done again, it finds nothing"
    kept.crawl_cycles(1)
    assert kept.world.crawl(new_cycle=True) is not None
    kept.check()


def test_what_goes_takes_no_room_any_more(tmp_path: Path) -> None:
    """W5: files stay as long as they were, with holes in them."""
    kept = kept_world(tmp_path)
    kept.world.web = SimulatedWeb(replace(CHANGING, page_bytes=30_000))
    kept.world.__post_init__()
    kept.crawl_cycles()
    files = sorted((kept.world.out / "warc").glob("*.warc.gz"))
    before = {path: path.stat() for path in files}
    assert kept.retain(RetentionRule(1))
    assert [path.stat().st_size for path in files] == [before[path].st_size for path in files]
    freed = sum(before[path].st_blocks - path.stat().st_blocks for path in files) * 512
    assert freed > kept.done[-1].choice.bytes * 0.25 > 100_000, "of pages of a few KB; of larger ones most"
    kept.check()


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
@pytest.mark.parametrize("moves", [False, True], ids=["deleted", "moved"])
def test_cut_off_anywhere_it_ends_the_same(tmp_path: Path, power: bool, moves: bool) -> None:
    """W5, F10, Q4: at any write, sync or commit; what is moved is there once, and nothing is in neither place."""
    kept = kept_world(tmp_path, power=random.Random(5) if power else None)
    kept.crawl_cycles(3)
    everything = {one.record_id for _, one in kept.records() if one.kind in {"response", "revisit"}}
    target = Path(tmp_path / "elsewhere") if moves else None
    step, crashes, left = 40, 0, kept.rows("SELECT count(*) FROM captures")[0][0]
    while not kept.retain(RetentionRule(1), target, step):
        crashes += 1
        if isinstance(kept.world.disk, ForgetfulDisk) and target is not None:
            _carry_over(kept.world, target)
        step = 5 + (step * 13 + crashes * 7) % 70 if crashes < 18 else 0
    assert crashes >= 5
    kept.check()
    assert kept.rows("SELECT count(*) FROM captures")[0][0] < left
    here = [one.record_id for _, one in kept.records() if one.kind in {"response", "revisit"}]
    if target is not None:
        there = [one.record_id for _, one in kept.records(target) if one.kind in {"response", "revisit"}]
        assert len(there) == len(set(there)), "moved once"
        assert not set(here) & set(there)
        assert {*here, *there} == everything


def _carry_over(world: World, target: Path) -> None:
    """What of another directory outlived a power loss: `World` keeps the crawl's own alone."""
    for name in world.survived.names(target):
        world.disk.overwrite(target / name, world.survived.contents(target / name))


def test_broken_off_between_files_it_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: Ctrl-C ends it after the files that are under way; what is left is done by the next."""
    monkeypatch.setattr("nephila.node.retention.carrying_out.BATCH_FILES", 1)
    kept = kept_world(tmp_path)
    kept.crawl_cycles(3)
    assert kept.retain(RetentionRule(1), stops_after=2)
    first = kept.done[-1]
    assert not first.is_finished
    assert 0 < first.captures < first.choice.captures
    kept.check()
    assert kept.retain(RetentionRule(1))
    assert kept.done[-1].is_finished
    assert kept.done[-1].captures == first.choice.captures - first.captures
    kept.check()


def test_what_is_moved_is_an_archive_of_its_own(tmp_path: Path) -> None:
    """W5, W1: every checker reads it, its index leads to its records, and a second time makes second files."""
    kept = kept_world(tmp_path)
    kept.crawl_cycles(3)
    before = {one.record_id: one.block for _, one in kept.records()}
    target = tmp_path / "old"
    assert kept.retain(RetentionRule(2), target / "warc")
    first = kept.done[-1].moved
    kept.crawl_cycles(2)
    before |= {one.record_id: one.block for _, one in kept.records() if not is_tombstone(one)}
    assert kept.retain(RetentionRule(1), target / "warc")
    assert kept.done[-1].moved == kept.done[-1].captures
    check_archives(target)
    found = list(kept.records(target / "warc"))
    answers = [one for _, one in found if one.kind in {"response", "revisit"}]
    assert len(answers) == first + kept.done[-1].moved
    assert all(before[one.record_id] == one.block for _, one in found if one.kind != "warcinfo")
    assert any(name.endswith(".2.warc.gz") for name, _ in found)
    offsets = {(name, one.offset): one for name, one in found}
    lines = [line for path in (target / "warc").glob("*.cdxj") for line in path.read_text().splitlines()]
    assert lines
    for line in lines:
        fields = json.loads(line.split(" ", 2)[2])
        assert offsets[fields["filename"], int(fields["offset"])].target == fields["url"]
    kept.check()


def test_an_age_limit_spares_what_is_marked_as_indexed(tmp_path: Path) -> None:
    """W5, W7: marked by storage key; pages of which all goes are asked for in full the next time."""
    kept = kept_world(tmp_path)
    kept.crawl_cycles(2)
    now = kept.world.clock.wall_ms()
    keys = [row[0] for row in kept.rows("SELECT storage_key FROM pages WHERE status = 200 ORDER BY url")]
    marked = {(SegmentId(key.rpartition("#")[0]), int(key.rpartition("#")[2])) for key in keys[::2]}
    assert IndexedMarks(kept.world.out / "indexed.sqlite").add(marked) == (len(marked), len(marked))
    assert kept.retain(RetentionRule(0, now - 100 * 24 * HOURS_MS))
    assert kept.done[-1].captures == 0, "nothing is so old"
    assert kept.retain(RetentionRule(0, now + 1))
    kept.check()
    left = {row[0] for row in kept.rows("SELECT storage_key FROM pages")}
    assert set(keys[::2]) <= left
    gone = set(keys[1::2]) - left
    assert gone
    assert kept.done[-1].choice.pages_gone >= len(gone)
    pages = set(contents(kept.world).pages)
    known = len(kept.world.recorder.events)
    assert kept.world.crawl(new_cycle=True) is not None
    assert any(event.status == 304 for event in kept.world.recorder.events[known:]), "what stayed may be unchanged"
    kept.check()
    assert set(contents(kept.world).pages) > pages, "what had gone was fetched in full"

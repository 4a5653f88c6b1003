"""Crawls whose archive is laid out by a key: many small files in folders, through all that other layouts go through."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import cut_takedowns
import pytest
from crashes import World
from simulation import PATIENT
from three_books import check_books, check_whole, contents

from nephila.engines.disk import LocalDisk
from nephila.model.settings import Settings
from nephila.node.audit import audit
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.objects import STORMY, SimulatedObjectStore
from nephila.testing.web import SimulatedWeb, WebSpec

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
TINY = WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4)
BY_PAGE = replace(PATIENT, archive=replace(PATIENT.archive, layout="key"))
BY_HOST = replace(PATIENT, archive=replace(PATIENT.archive, layout="key", key="{domain}/{host}/{date}.warc.gz"))
STEPS = 900
"""An undisturbed crawl takes more: every page has syncs of its own."""


def in_a_store(settings: Settings) -> Settings:
    return replace(settings, archive=replace(settings.archive, url="s3://crawls/spiders"))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of an undisturbed crawl in the usual layout."""
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"), PATIENT)
    assert world.crawl() is not None
    return set(contents(world).pages)


def test_every_answer_has_a_file_under_its_key(tmp_path: Path, wanted: set[str]) -> None:
    """W1, W3: day, domain and page are in the name, which catalogue and index have; each file has one answer."""
    world = World(SimulatedWeb(SMALL), tmp_path, BY_PAGE)
    assert world.crawl() is not None
    check_whole(world, wanted)
    names = [name for name in world.archive() if name.endswith(".warc.gz")]
    assert set(Counter(name for name, _ in contents(world).answers).values()) == {1}
    connection = sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)
    keys = connection.execute("SELECT lower(hex(url_hash)), storage_key FROM pages").fetchall()
    connection.close()
    assert len(keys) >= len(wanted)
    assert all(storage_key.split("/")[2].startswith(f"{url_hash}-") for url_hash, storage_key in keys)
    days, domains = ({name.split("/")[part] for name in names} for part in (0, 1))
    assert all(len(day) == len("2026-01-31") for day in days)
    hosts = {url.split("/")[2].partition(":")[0] for url in wanted}
    hashed = {sha256(".".join(host.split(".")[-2:]).encode()).hexdigest()[:16] for host in hosts}
    assert hashed <= domains
    assert audit(world.out).is_clean


@pytest.mark.parametrize("settings", [BY_PAGE, BY_HOST], ids=["a-file-an-answer", "by-host"])
@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_steps_it_ends_with_the_same_pages(
    tmp_path: Path, seed: int, power: bool, settings: Settings, wanted: set[str]
) -> None:
    """W1, F10, Q4, W3: folders whose names were not synced are gone with all that is in them."""
    draw = random.Random(seed)
    world = World(SimulatedWeb(SMALL), tmp_path, settings, power=draw if power else None)
    for moment in [draw.randint(1, STEPS // 2) for _ in range(4)]:
        world.crawl(moment)
    assert world.crawl() is not None
    check_whole(world, wanted)
    disk = world.disk if isinstance(world.disk, ForgetfulDisk) else LocalDisk()
    found = audit(world.out, disk=disk)
    assert found.is_clean, (found.findings[:3], found.trail.breaches[:3])


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("remote", [False, True], ids=["directory", "store"])
def test_whatever_step_it_dies_at(tmp_path: Path, power: bool, remote: bool) -> None:
    """W1, W2, F10, Q4: a tiny crawl that dies once, at every third of its steps in turn."""
    web, settings = SimulatedWeb(TINY), in_a_store(BY_PAGE) if remote else BY_PAGE
    step = 1 + power
    while True:
        draw = random.Random(step) if power else None
        objects = SimulatedObjectStore() if remote else None
        world = World(web, tmp_path / f"at-{step}", settings, power=draw, objects=objects)
        if world.crawl(step) is not None:
            break
        assert world.crawl() is not None
        found = contents(world)
        check_whole(world, set(found.pages))
        assert len(found.pages) == 6
        step += 3
    assert step > 60


@pytest.mark.parametrize("seed", range(2))
def test_in_a_store_every_answer_is_an_object_once(tmp_path: Path, seed: int, wanted: set[str]) -> None:
    """W1, W2: killed and in a storm; the spool is left without a file, and without a folder."""
    draw, objects = random.Random(seed), SimulatedObjectStore(seed)
    world = World(SimulatedWeb(SMALL), tmp_path, in_a_store(BY_PAGE), objects=objects)
    for moment in [draw.randint(1, STEPS // 2) for _ in range(3)]:
        world.crawl(moment)
        objects.weather = STORMY
    summary = world.crawl()
    assert summary is not None
    assert summary.failure == ""
    check_whole(world, wanted)
    assert list((world.out / "spool").iterdir()) == []


def test_the_layout_may_change_between_runs(tmp_path: Path, wanted: set[str]) -> None:
    """W1: files of all layouts lie beside each other, and no name is used twice."""
    world = World(SimulatedWeb(SMALL), tmp_path, PATIENT)
    for settings in (PATIENT, BY_PAGE, replace(PATIENT, archive=replace(PATIENT.archive, layout="domain-hour"))):
        world.settings = settings
        world.crawl(120)
    world.settings = BY_HOST
    assert world.crawl() is not None
    check_whole(world, wanted)
    names = [name for name in world.archive() if name.endswith(".warc.gz")]
    assert {name.count("/") for name in names} == {0, 2}
    serials = [name.rpartition("/")[2].split("-w0")[0].rpartition("-")[2] for name in names]
    assert len(set(serials)) == len(serials)


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_a_takedown_that_is_cut_off_anywhere_ends_the_same(tmp_path: Path, power: bool) -> None:
    """W5, K2, W1: captures are taken out of files in folders, under receipts; what is left agrees."""
    world, host = cut_takedowns.crawled(SMALL, tmp_path, BY_PAGE, power=power)
    done = cut_takedowns.carried_out(world, domains=(host,))
    assert all(file.file.count("/") == 3 for file in done.files if file.file.startswith("warc/"))
    found = contents(world)
    check_books(found)
    assert host not in {url.split("/")[2] for url in found.pages}


@pytest.mark.parametrize("how", ["changed", "removed", "added"])
def test_tampering_in_a_folder_is_noticed(tmp_path: Path, how: str) -> None:
    """K1, W1: a file that is deep in folders is sealed as any other."""
    world = World(SimulatedWeb(TINY), tmp_path, BY_PAGE)
    assert world.crawl() is not None
    path = sorted((world.out / "warc").glob("*/*/*.warc.gz"))[2]
    if how == "changed":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif how == "removed":
        path.unlink()
    else:
        other = path.with_name("00-20260101000000-99999-w0.warc.gz")
        other.write_bytes(path.read_bytes())
    found = audit(world.out)
    assert not found.is_clean
    assert [one for one in found.trail.breaches if one.file.startswith("warc/") and one.file.count("/") == 3]

"""Crawls whose archive is compressed by Zstandard: through all that gzip goes through, and beside it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cut_takedowns
import pytest
from crashes import World
from simulation import PATIENT
from three_books import check_books, check_whole, contents

from nephila.engines.disk import LocalDisk
from nephila.node.audit import audit
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.objects import SimulatedObjectStore
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.spec import PageMix

SMALL = replace(
    WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10, page_mix=PageMix(duplicate=0.2)
)
ZSTD = replace(PATIENT, archive=replace(PATIENT.archive, compression="zstd", max_bytes=30_000))
GZIP = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=30_000))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"), GZIP)
    assert world.crawl() is not None
    return set(contents(world).pages)


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("remote", [False, True], ids=["directory", "store"])
def test_killed_at_random_steps_it_ends_with_the_same_pages(
    tmp_path: Path, power: bool, remote: bool, wanted: set[str]
) -> None:
    """W1, W2, F10, Q4: torn tails are cut, captures settled from the archive."""
    draw = random.Random(7)
    settings = replace(ZSTD, archive=replace(ZSTD.archive, url="s3://crawls/spiders")) if remote else ZSTD
    objects = SimulatedObjectStore() if remote else None
    world = World(SimulatedWeb(SMALL), tmp_path, settings, power=draw if power else None, objects=objects)
    for moment in [draw.randint(1, 250) for _ in range(4)]:
        world.crawl(moment)
    assert world.crawl() is not None
    check_whole(world, wanted)
    assert all(name.endswith((".warc.zst", ".cdxj")) for name in world.archive())
    if not remote:
        disk = world.disk if isinstance(world.disk, ForgetfulDisk) else LocalDisk()
        assert audit(world.out, disk=disk).is_clean


def test_gzip_and_zstandard_lie_in_one_archive(tmp_path: Path, wanted: set[str]) -> None:
    """W1, W3: the setting may change between runs; a catalogue that is lost is built from both."""
    world = World(SimulatedWeb(SMALL), tmp_path, GZIP)
    for settings in (GZIP, ZSTD, GZIP):
        world.settings = settings
        world.crawl(120)
    world.settings = ZSTD
    assert world.crawl() is not None
    check_whole(world, wanted)
    kinds = Counter(name.rpartition(".")[2] for name in world.archive())
    assert kinds["gz"] > 1
    assert kinds["zst"] > 1
    for log in world.out.glob("catalogue.sqlite*"):
        log.unlink()
    assert world.crawl() is not None
    check_whole(world, wanted)
    assert audit(world.out).is_clean


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_a_takedown_that_is_cut_off_anywhere_ends_the_same(tmp_path: Path, power: bool) -> None:
    """W5, K2, W1: frames are replaced by frames; copies lose the mention of what they were copies of."""
    world, host = cut_takedowns.crawled(SMALL, tmp_path, ZSTD, power=power)
    cut_takedowns.carried_out(world, domains=(host,))
    check_books(contents(world))

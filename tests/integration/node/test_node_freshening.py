"""The most important pages are kept fresh: which are made due, when, and which are left alone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from simulation import PATIENT, simulate

from nephila.config import write_stored
from nephila.frontier.embedded import LmdbFrontier
from nephila.model.errors import StorageError
from nephila.model.policy import Block, DomainPolicy
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of
from nephila.node.cataloguing import identity_of, read_catalogue
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import embedded_engines
from nephila.node.frontiers import embedded_of
from nephila.node.ground import Ground
from nephila.node.importance.freshening import Freshening
from nephila.node.importance.premises import importance_of
from nephila.ranking import read_foremost
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.urls import Address, registrable_domain

TOP = 7
HOUR_S = 3600.0
SETTINGS = replace(
    PATIENT,
    limits=replace(PATIENT.limits, max_wait_s=250.0),
    recrawl=replace(PATIENT.recrawl, target_pages=TOP),
)


@dataclass
class Crawled:
    """A crawl that has ended, opened again at the moment of its end."""

    out: Path
    clock: VirtualClock
    frontier: LmdbFrontier
    settings: Settings = SETTINGS

    @property
    def foremost(self) -> list[Address]:
        """The pages of highest rank."""
        directory = CrawlDirectory(self.out)
        identifier = identifier_of(self.settings, self.frontier.secret)
        with read_catalogue(directory, self.settings) as catalogue:
            names = read_foremost(directory.rank, identity_of(self.frontier.secret))
            found = [identifier.identify(catalogue.captures_of(name)[0].url) for name in names]
        return [one for one in found if isinstance(one, Address)]

    def freshening(self) -> Freshening:
        directory = CrawlDirectory(self.out)
        return Freshening(
            directory.rank,
            identity_of(self.frontier.secret),
            self.settings.recrawl,
            self.frontier,
            identifier_of(self.settings, self.frontier.secret),
            partial(read_catalogue, directory, self.settings),
            self.clock.wall_ms,
        )

    def queued(self) -> set[str]:
        """Which of them wait to be fetched."""
        stories = [self.frontier.view.story(one.host, one.fingerprint) for one in self.foremost]
        return {story.url for story in stories if story is not None and story.state == "queued"}


def afterwards(out: Path, act: Callable[[Crawled], Awaitable[None]], settings: Settings = SETTINGS) -> None:
    """Crawl a web to its end, compute its ranks, and then do something."""
    clock = VirtualClock()
    simulate(SimulatedWeb(WebSpec(5, 8, 60)), out, settings, clock=clock)
    write_stored(out, settings)
    assert importance_of(out) is not None

    async def main() -> None:
        async with AsyncExitStack() as stack:
            ground = Ground(clock, threaded=False)
            engines = embedded_engines(CrawlDirectory(out), settings, ground, stack, sharing=None, alone=True)
            await act(Crawled(out, clock, embedded_of(engines.frontier), settings))

    run_virtual(main, clock)


def test_the_most_important_pages_are_due_before_they_are_a_day_old(tmp_path: Path) -> None:
    """R2: just these, once, some time before; all others keep the week that was planned for them."""

    async def act(crawl: Crawled) -> None:
        before = crawl.frontier.snapshot()
        freshening = crawl.freshening()
        assert await freshening.look() == 0
        await asyncio.sleep(21 * HOUR_S)
        assert await freshening.look() == 0
        await asyncio.sleep(1.5 * HOUR_S)
        assert await freshening.look() == TOP == len(crawl.queued())
        assert sum(crawl.frontier.snapshot().queued.values()) == sum(before.queued.values()) + TOP
        assert await freshening.look() == 0, "they wait already"

    afterwards(tmp_path / "crawl", act)


def test_it_looks_by_itself_and_has_the_crawl_look(tmp_path: Path) -> None:
    """R2: once an hour."""

    async def act(crawl: Crawled) -> None:
        nudged: list[float] = []
        task = asyncio.create_task(
            crawl.freshening().run(lambda: nudged.append(crawl.clock.elapsed_s()), lambda *_: None)
        )
        begun = crawl.clock.elapsed_s()
        await asyncio.sleep(30 * HOUR_S)
        task.cancel()
        assert [round((at - begun) / HOUR_S) for at in nudged] == [22]
        assert len(crawl.queued()) == TOP

    afterwards(tmp_path / "crawl", act)


def test_what_people_decided_holds(tmp_path: Path) -> None:
    """R4, T7: a fixed interval, and a block."""

    async def act(crawl: Crawled) -> None:
        first, *others = crawl.foremost
        domain = registrable_domain(first.host)
        other = next(one for one in others if registrable_domain(one.host) != domain)
        await crawl.frontier.set_policy(domain, DomainPolicy(recrawl_s=30 * 24 * HOUR_S))
        await crawl.frontier.block(Block(other.url, "they asked us", crawl.clock.wall_ms()))
        await asyncio.sleep(25 * HOUR_S)
        left = {one.url for one in crawl.foremost if registrable_domain(one.host) != domain and one != other}
        assert await crawl.freshening().look() == len(left)
        assert crawl.queued() == left

    afterwards(tmp_path / "crawl", act)


def test_what_was_purged_is_not_asked_for(tmp_path: Path) -> None:
    """K2: it is in the list until that is made anew, and in nothing else."""

    async def act(crawl: Crawled) -> None:
        gone = crawl.foremost[0]
        with closing(sqlite3.connect(crawl.out / "catalogue.sqlite")) as catalogue, catalogue:
            catalogue.execute("DELETE FROM captures WHERE url_hash = ?", (gone.fingerprint,))
        await asyncio.sleep(25 * HOUR_S)
        assert await crawl.freshening().look() == TOP - 1
        story = crawl.frontier.view.story(gone.host, gone.fingerprint)
        assert story is not None
        assert story.state != "queued"

    afterwards(tmp_path / "crawl", act)


@pytest.mark.parametrize(
    "recrawl",
    [replace(SETTINGS.recrawl, target_pages=0), replace(SETTINGS.recrawl, enabled=False)],
    ids=["no target", "no second visits"],
)
def test_it_can_be_switched_off(tmp_path: Path, recrawl: object) -> None:
    """R2: with the target, and with all visits."""

    async def act(crawl: Crawled) -> None:
        await crawl.freshening().run(lambda: None, lambda *_: None)  # comes to its end

    afterwards(tmp_path / "crawl", act, replace(SETTINGS, recrawl=recrawl))


def test_a_failure_is_told_once_and_the_next_look_is_taken(tmp_path: Path) -> None:
    """R2, Q5: the crawl goes on meanwhile."""

    async def act(crawl: Crawled) -> None:
        told: list[str] = []
        freshening, looks = crawl.freshening(), 0

        async def look() -> int:
            nonlocal looks
            looks += 1
            raise StorageError("the catalogue cannot be read")

        freshening.look = look  # type: ignore[method-assign]
        task = asyncio.create_task(freshening.run(lambda: None, lambda _, detail: told.append(detail)))
        await asyncio.sleep(5.5 * HOUR_S)
        task.cancel()
        assert looks == 5
        assert told == [
            "the most important pages could not be looked at, and are visited as planned: the catalogue cannot be read"
        ]

    afterwards(tmp_path / "crawl", act)


def test_a_list_of_another_crawl_or_a_damaged_one_is_as_none(tmp_path: Path) -> None:
    """R2: it is derived, and made anew with the ranks."""

    async def act(crawl: Crawled) -> None:
        folder, identity = CrawlDirectory(crawl.out).rank, identity_of(crawl.frontier.secret)
        assert len(read_foremost(folder, identity)) == TOP
        assert read_foremost(folder, identity[::-1]) == []
        path = folder / "foremost.ranks"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        assert read_foremost(folder, identity) == []
        await asyncio.sleep(25 * HOUR_S)
        assert await crawl.freshening().look() == 0

    afterwards(tmp_path / "crawl", act)

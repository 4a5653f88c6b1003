"""Faults of our own and of the ground under us: they cost what they must, and no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, simulate

from nephila.frontier.embedded import LmdbFrontier
from nephila.model.events import EventKind
from nephila.model.exchange import Fetched
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.page import Page
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import PageTask
from nephila.node import wiring
from nephila.node.engines import policy_of
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import Auditor, SimulatedWeb, WebSpec

WEB = SimulatedWeb(WebSpec.plain(31, hosts=6, pages=90))


def test_a_bug_costs_one_page_and_hurries_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P2, F9, Q5: what we break on is given up and told; the host rests, the crawl goes on."""
    make_reader = wiring.page_reader
    broken: set[str] = set()

    def breaking(settings: object, others: object) -> object:
        read = make_reader(settings, others)  # type: ignore[arg-type]

        def reads(fetched: Fetched) -> Page | None:
            if not broken and fetched.url.count("/") > 3:
                broken.add(fetched.url)
            if fetched.url in broken:
                raise RuntimeError("a bug of ours")
            return read(fetched)

        return reads

    monkeypatch.setattr(wiring, "page_reader", breaking)
    crawled = simulate(WEB, tmp_path / "crawl")
    assert crawled.summary.pages >= 80
    assert not crawled.audit.violations
    assert crawled.recorder.urls(EventKind.WARNING) == list(broken)
    assert crawled.summary.dead == 1


def test_an_unfinished_cycle_goes_on_when_it_is_asked_for_again(tmp_path: Path) -> None:
    """F10, F2: the same command goes on; a page is fetched once a cycle."""
    clock, out = VirtualClock(), tmp_path / "crawl"
    auditor = Auditor(WEB)
    everything = simulate(WEB, out, clock=clock, auditor=auditor)
    auditor.new_cycle()
    few = replace(PATIENT, limits=replace(PATIENT.limits, max_pages=30))
    first = simulate(WEB, out, few, new_cycle=True, clock=clock, auditor=auditor)
    second = simulate(WEB, out, new_cycle=True, clock=clock, auditor=auditor)
    assert first.summary.pages == 30
    assert first.summary.pages + second.summary.pages == everything.summary.pages
    assert not second.audit.violations
    third = simulate(WEB, out, new_cycle=True, clock=clock, auditor=Auditor(WEB))
    assert third.summary.pages == everything.summary.pages


def test_pages_of_a_file_that_vanished_are_fetched_again(tmp_path: Path) -> None:
    """F10, W2: a WARC file whose name was not durable takes no page with it for good."""
    clock, out = VirtualClock(), tmp_path / "crawl"
    simulate(WEB, out, replace(PATIENT, limits=replace(PATIENT.limits, max_pages=10)), clock=clock)
    clock.advance(60)

    async def settle_one_on_a_lost_file() -> str:
        frontier = LmdbFrontier(out / "frontier", clock, policy_of(PATIENT), threaded=False)
        leases = await frontier.claim(10, 300)
        lease = next(one for one in leases if isinstance(one.tasks[0], PageTask))
        done = Done(RecordRef(SegmentId("never-durable.warc.gz"), 0, 100, 100), 200)
        for one in leases:
            settlements = [Settlement(one.tasks[0], done)] if one is lease else []
            await frontier.settle(one.token, settlements, Release(0, one.pace))
        await frontier.close()
        return lease.tasks[0].url

    url = run_virtual(settle_one_on_a_lost_file, clock)
    rest = simulate(WEB, out, clock=clock)
    assert url in rest.recorder.urls(EventKind.FETCH_OK)
    assert rest.summary.total_pages == 90

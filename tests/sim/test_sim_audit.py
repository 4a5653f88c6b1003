"""The audit of whole simulated crawls: clean where the servers saw nothing wrong, else of one mind with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crashes import World
from simulation import PATIENT, Simulated, simulate, standard_web

from nephila.model.events import EventKind
from nephila.model.outcome import Release
from nephila.model.settings import RecrawlSettings, Settings
from nephila.model.terms import Terms
from nephila.node import wiring
from nephila.node.audit import Audit, FindingKind, audit
from nephila.politeness import StandardPoliteness, conduct
from nephila.testing.clock import VirtualClock
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.web import Auditor, SimulatedWeb, ViolationKind, WebSpec

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
MIXED = replace(WebSpec.standard(5), hosts=24, pages=240, page_bytes=1500, links_per_page=10)
"""Every kind of robots.txt."""
ROLLING = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=30_000))
JUMPS_S = (-400 * 86_400.0, -3600.0, -1.0, 3600.0, 3 * 86_400.0)


def audited(world: World) -> Audit:
    """The audit of what a world has on its disk."""
    return audit(world.out, disk=world.disk if isinstance(world.disk, ForgetfulDisk) else None)


def check_clean(found: Audit) -> None:
    assert found.is_clean, (found.counts, found.findings[:3], found.trail.breaches[:3])


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return simulate(standard_web(1), tmp_path_factory.mktemp("standard") / "crawl")


def test_a_polite_crawl_is_clean_and_every_request_is_on_record(crawled: Simulated, say: Callable[[str], None]) -> None:
    """K1, P5: as many requests to as many hosts as the servers saw, answered or not, all sealed."""
    found = audit(crawled.out)
    check_clean(found)
    assert found.requests == crawled.audit.requests > 1500
    assert found.hosts == len(crawled.audit.hosts)
    assert found.unanswered > 50
    assert found.judged == found.pages
    assert (found.untold, found.lost, found.unjudged) == (0, 0, 0)
    assert found.shortest_gap_ms is not None
    assert found.shortest_gap_ms >= 1000
    assert found.trail.ended
    assert found.trail.unsealed_bytes == 0
    say(f"{found.requests} requests, {found.unanswered} without an answer, {found.rules} robots.txt texts")


def test_of_one_host_only_what_concerns_it_is_told(crawled: Simulated) -> None:
    """K1: `--host` is for showing a site its own."""
    host, figures = max(crawled.audit.hosts.items(), key=lambda item: item[1].requests)
    found = audit(crawled.out, host=host)
    check_clean(found)
    assert found.hosts <= 2, "itself, and the host that its robots.txt redirects to"
    assert found.requests >= figures.requests
    assert audit(crawled.out, host="nobody.test").requests == 0


def test_requests_that_a_stop_cut_off_are_on_record(tmp_path: Path) -> None:
    """K1: whatever may have left is told, also when nobody waited for the answer."""
    slow = replace(SMALL, timing=replace(SMALL.timing, latency_ms=9000.0))
    settings = replace(PATIENT, limits=replace(PATIENT.limits, max_time_s=30.0))
    crawled = simulate(SimulatedWeb(slow), tmp_path / "crawl", settings)
    cut_off = crawled.recorder.urls(EventKind.BROKEN_OFF)
    found = audit(crawled.out)
    check_clean(found)
    assert cut_off
    assert found.requests == crawled.audit.requests


def test_a_bug_of_ours_leaves_the_request_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: what we broke on was sent all the same."""

    def breaking(_settings: object, _others: object) -> object:
        def reads(fetched: Any) -> None:
            if fetched.url.endswith("-3.html"):
                raise RuntimeError("a bug of ours")

        return reads

    monkeypatch.setattr(wiring, "page_reader", breaking)
    crawled = simulate(SimulatedWeb(SMALL), tmp_path / "crawl")
    found = audit(crawled.out)
    check_clean(found)
    assert found.requests == crawled.audit.requests


# Crashes


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20))])
def test_after_any_crash_the_trail_is_whole_and_clean(
    tmp_path: Path, seed: int, power: bool, say: Callable[[str], None]
) -> None:
    """K1, P5, Q4: kills, power losses, reboots, a wall clock that jumps: no violation, no sign of tampering."""
    draw = random.Random(f"{seed}{power}")
    sync_ms = draw.choice([100.0, 3000.0, 10_000.0]) if power else 100.0
    settings = replace(ROLLING, archive=replace(ROLLING.archive, sync_ms=sync_ms))
    world = World(SimulatedWeb(SMALL), tmp_path, settings, power=draw if power else None)
    for _ in range(4):
        if world.crawl(draw.randint(1, 225)) is not None:
            break
        if draw.random() < 0.5:
            world.clock.jump_wall(draw.choice(JUMPS_S))
        if draw.random() < 0.5:
            world.clock.reboot()
        check_clean(audited(world))
    assert world.crawl() is not None
    found = audited(world)
    check_clean(found)
    assert found.trail.ended
    assert found.trail.unsealed_bytes == 0
    say(
        f"{world.runs} crashes: {found.requests} of {world.auditor.report().requests} requests on record, "
        f"{found.untold} untold, {found.lost} lost, {found.unjudged} without rules, {found.unmeasured} not measured"
    )


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
def test_whatever_step_it_dies_at(tmp_path: Path, power: bool, stride: int) -> None:
    """K1, Q4: a tiny crawl that dies once, at steps all over its life in turn, writes of the chain included."""
    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    step = 1 + power
    while True:
        world = World(web, tmp_path / f"at-{step}", power=random.Random(step) if power else None)
        if world.crawl(step) is not None:
            break
        check_clean(audited(world))
        assert world.crawl() is not None
        found = audited(world)
        check_clean(found)
        assert found.trail.ended
        assert found.trail.unsealed_bytes == 0
        step += stride
    assert step > 70


def test_a_wall_clock_that_jumps_while_it_crawls_is_no_violation(tmp_path: Path) -> None:
    """K1, P5: gaps are measured on the clock that does not jump."""
    world = World(SimulatedWeb(SMALL), tmp_path, PATIENT)
    draw = random.Random(1)

    class Jumper:
        """Sets the clock back and forth with every tenth event."""

        def emit(self, _event: object) -> None:
            if draw.random() < 0.1:
                world.clock.jump_wall(draw.choice((-30.0, 30.0)))

        def flush(self) -> None: ...

        def close(self) -> None: ...

    crawled = simulate(world.web, tmp_path / "crawl", listeners=[Jumper()], clock=world.clock)
    check_clean(audit(crawled.out))
    assert not crawled.audit.violations


def test_rules_that_are_a_day_old_are_asked_for_again_and_then_hold(tmp_path: Path) -> None:
    """K1, P1: each page is held against the version of its time."""
    clock, web = VirtualClock(), SimulatedWeb(SMALL)
    auditor = Auditor(web)
    once = replace(PATIENT, recrawl=RecrawlSettings(enabled=False))
    simulate(web, tmp_path / "crawl", once, clock=clock, auditor=auditor)
    before = audit(tmp_path / "crawl")
    clock.advance(30 * 3600)
    auditor.new_cycle()
    simulate(web, tmp_path / "crawl", once, clock=clock, auditor=auditor, new_cycle=True)
    found = audit(tmp_path / "crawl")
    check_clean(found)
    assert found.robots >= 2 * before.robots - 4
    assert before.trail.head in _hashes(tmp_path / "crawl")


def _hashes(out: Path) -> str:
    return (out / "chain" / "w0.jsonl").read_text()


# Crawlers that misbehave: the audit and the servers are of one mind


def misbehave(tmp_path: Path, settings: Settings = PATIENT, web: SimulatedWeb | None = None) -> tuple[Audit, Simulated]:
    crawled = simulate(web or SimulatedWeb(MIXED), tmp_path / "crawl", settings)
    found = audit(crawled.out)
    assert not found.trail.breaches
    assert not found.is_clean
    return found, crawled


def test_a_crawler_without_patience_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P2: every short gap that the servers count is found, with its URL and length."""
    release = StandardPoliteness.release

    def hasty(self: StandardPoliteness, *arguments: Any) -> Release:
        return replace(release(self, *arguments), wait_ms=100)

    monkeypatch.setattr(StandardPoliteness, "release", hasty)
    found, crawled = misbehave(tmp_path)
    seen = crawled.audit.by_kind
    # Gaps are a round trip longer for a server: one that it takes for long enough may be short for us.
    assert seen[ViolationKind.HURRY] <= found.counts[FindingKind.HURRY] <= seen[ViolationKind.HURRY] + 3
    assert seen[ViolationKind.HURRY] > 100
    assert found.counts[FindingKind.RETRY_AFTER] == seen.get(ViolationKind.RETRY_AFTER, 0)
    first = found.findings[0]
    assert "ms were promised" in first.detail
    assert first.url.startswith("http://")


def test_a_crawler_that_hears_no_crawl_delay_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P2: the delay that a robots.txt asks for is the one that counts."""
    monkeypatch.setattr(conduct, "with_crawl_delay", lambda pace, _seconds: pace)
    found, crawled = misbehave(tmp_path)
    assert set(found.counts) == {FindingKind.HURRY}
    assert found.counts[FindingKind.HURRY] == crawled.audit.by_kind[ViolationKind.HURRY] > 0
    assert "its robots.txt asks for" in found.findings[0].detail


def test_a_crawler_that_ignores_rules_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P1: as many forbidden pages as the servers count, each with the line that forbids it."""
    permits = StandardPoliteness.permits
    monkeypatch.setattr(StandardPoliteness, "permits", lambda self, _rules, url, agent="": permits(self, None, url))
    found, crawled = misbehave(tmp_path)
    seen = crawled.audit.by_kind
    assert found.counts[FindingKind.FORBIDDEN] == seen[ViolationKind.FORBIDDEN] > 0
    assert found.counts[FindingKind.NO_RULES] == seen.get(ViolationKind.NO_RULES, 0)
    assert any("Disallow: /private/" in finding.detail for finding in found.findings)


def test_a_crawler_that_never_asks_for_rules_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P1: nobody had asked for the rules of any of these pages."""
    off = replace(PATIENT, robots=replace(PATIENT.robots, obey=False))
    of = Terms.of
    monkeypatch.setattr(Terms, "of", lambda settings: replace(of(settings), obey_robots=True))
    found, crawled = misbehave(tmp_path, off)
    assert found.counts[FindingKind.NO_RULES] == crawled.audit.by_kind[ViolationKind.NO_RULES] == found.pages


def test_a_run_that_was_told_to_ignore_robots_txt_says_so(tmp_path: Path) -> None:
    """K1, P1: the switch is on record, and whoever is shown the audit sees it."""
    off = replace(PATIENT, robots=replace(PATIENT.robots, obey=False))
    found, _ = misbehave(tmp_path, off)
    assert found.counts[FindingKind.ROBOTS_OFF] == found.pages > 0


def test_a_crawler_that_comes_back_too_soon_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P3: Retry-After is read from the answers on record."""
    asking = replace(
        SMALL, page_mix=replace(SMALL.page_mix, failing=0.5), timing=replace(SMALL.timing, retry_after_s=40.0)
    )
    monkeypatch.setattr(conduct, "retry_after_ms", lambda _value, _wall: None)
    found, crawled = misbehave(tmp_path, web=SimulatedWeb(asking))
    assert found.counts[FindingKind.RETRY_AFTER] == crawled.audit.by_kind[ViolationKind.RETRY_AFTER] > 0


def test_a_crawler_that_crowds_an_address_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, P5, P2: many hosts on one server, asked all at once."""
    spec = WebSpec.plain(11, hosts=60, pages=120, page_bytes=400, links_per_page=6)
    web = SimulatedWeb(replace(spec, host_mix=replace(spec.host_mix, max_addresses=1, shared_addresses=1.0)))
    monkeypatch.setattr(wiring, "address_ledger", lambda *_: None)
    auditor = Auditor(web, per_address=4, address_rate=10)
    crawled = simulate(web, tmp_path / "crawl", auditor=auditor)
    found = audit(crawled.out)
    assert set(found.counts) == {FindingKind.CROWD}
    assert crawled.audit.by_kind[ViolationKind.CROWD] > 20
    assert found.counts[FindingKind.CROWD] > 20


def test_addresses_that_nobody_opened_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, H6: the simulated web is on loopback; without the opening on record every request is one too many."""
    of = Terms.of
    monkeypatch.setattr(Terms, "of", lambda settings: replace(of(settings), allow_addresses=()))
    found, _ = misbehave(tmp_path)
    assert set(found.counts) == {FindingKind.ADDRESS}
    assert "is loopback" in found.findings[0].detail

"""Plugins in whole crawls under virtual time: what they keep out stays out, also after a crash; hooks lift no rule."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World, die_before_settling
from sample_plugins import Bodies, Favours, Hook, KeepsOut, Lengths, Seeds
from simulation import PATIENT, Recorder, Simulated

from nephila.interfaces.extensions import Extensions
from nephila.model.events import EventKind
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.wiring import build
from nephila.pipeline.parts import Stages
from nephila.seeds import ArgumentSeeds
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import Auditor, SimulatedNetwork, SimulatedWeb, WebSpec
from nephila.testing.web.truth import Expect

SMALL = replace(WebSpec.standard(5), hosts=8, pages=160, page_bytes=1500, links_per_page=10)


def crawled(tmp_path: Path, plugins: Sequence[object], *, seeds: bool = True) -> Simulated:
    """A crawl of a small web with plugins."""
    web, clock, recorder = SimulatedWeb(SMALL), VirtualClock(), Recorder()
    auditor, sent = Auditor(web, base_delay_ms=1000), []

    async def run() -> object:
        network = SimulatedNetwork(web, clock, auditor, log=sent)
        ground = Ground(clock, network, network, None, threaded=False, plugins=plugins)
        directory = CrawlDirectory(tmp_path / "crawl")
        with directory.held():
            async with AsyncExitStack() as stack:
                crawl = await build(directory, PATIENT, ground, stack, listeners=[recorder])
                return await crawl.run([ArgumentSeeds(web.seeds())] if seeds else [])

    summary = run_virtual(run, clock)
    return Simulated(web, summary, auditor.report(), recorder, sent, tmp_path / "crawl", {})  # type: ignore[arg-type]


def pages(done: Simulated) -> set[str | None]:
    return {done.web.identify(event.url) for event in done.recorder.events if event.is_page()}


def test_what_a_filter_keeps_out_is_never_asked_for(tmp_path: Path) -> None:
    """E1, S2, T8: neither as a link nor as the target of a redirect; all else is, and each refusal is told."""
    done = crawled(tmp_path, [KeepsOut("-3")])
    asked = [f"http://{one.host}{one.target}" for one in done.sent if one.target != "/robots.txt"]
    assert asked
    assert not any("-3" in url for url in asked if url not in done.web.seeds())
    refused = [event for event in done.recorder.events if event.reason == "plugin"]
    assert refused
    assert all(event.detail == "keeps-out: has -3" for event in refused)
    assert not done.audit.violations


def test_a_hook_lifts_no_rule(tmp_path: Path) -> None:
    """E1, P1, P2, P5: robots.txt is asked for without it and before it; what it vetoes is not sent."""
    hook = Hook([("X-Purpose", "test"), ("User-Agent", "Other/1"), ("Cookie", "a=b")], veto="-5")
    done = crawled(tmp_path, [hook])
    truth = done.web.truth("Nephila")
    assert not done.audit.violations
    assert not {done.web.identify(url) for url in hook.asked} & truth.forbidden()
    assert not any(url.endswith("/robots.txt") for url in hook.asked)
    asked = {f"http://{one.host}{one.target}" for one in done.sent}
    assert not any("-5" in url for url in asked)
    assert {answer.status for answer in hook.answers} >= {0, 200, 404}
    assert all(answer.wire_bytes > 0 for answer in hook.answers if answer.status)
    assert {answer.error for answer in hook.answers if not answer.status} <= {"timeout", "reset", "connect", "dns"}
    dropped = [event for event in done.recorder.events if event.reason == "plugin" and "not this one" in event.detail]
    assert dropped
    assert "plugin" not in done.summary.errors


def test_an_extractor_of_html_adds_links_and_fields(tmp_path: Path) -> None:
    """E1, X5: its links are asked for as any others are, and what it found stands in the archive."""
    done = crawled(tmp_path, [Lengths()])
    asked = {one.target for one in done.sent}
    assert any(target.endswith("/found") for target in asked)
    text = b"".join(path.read_bytes() for path in (done.out / "warc").glob("*.warc.gz"))
    assert text
    assert not [one for one in done.audit.violations if one.kind != "repeat"]


def test_sinks_get_bodies_where_they_want_them(tmp_path: Path) -> None:
    """E1, Q5: every page once; what nobody wants is not held."""
    with_bodies, without = Bodies(wants=True), Bodies(wants=False)
    done = crawled(tmp_path, [with_bodies, without])
    told = {event.url for event in done.recorder.events if event.is_page()}
    assert told <= set(with_bodies.sizes) == set(without.sizes)
    assert all(with_bodies.sizes.values())
    assert not any(without.sizes.values())


def test_a_plugin_may_bring_all_seeds(tmp_path: Path) -> None:
    """E1, S1: batch by batch, reported like others."""
    web = SimulatedWeb(SMALL)
    done = crawled(tmp_path, [Seeds(web.seeds(), ["not a url at all"], web.seeds())], seeds=False)
    truth = done.web.truth("Nephila")
    assert truth.urls(Expect.PAGE, Expect.RECOVERS) <= pages(done)


def test_a_scorer_changes_the_order_and_nothing_else(tmp_path: Path) -> None:
    """E1, R1, F6: the same pages, those with points earlier."""
    plain, favoured = crawled(tmp_path / "a", []), crawled(tmp_path / "b", [Favours("guide", 100)])
    assert pages(plain) == pages(favoured)

    def places(done: Simulated) -> float:
        told = [event.url for event in done.recorder.events if event.kind is EventKind.FETCH_OK]
        found = [at for at, url in enumerate(told) if "/guide/" in url]
        return sum(found) / len(found)

    assert places(favoured) < places(plain)


@pytest.mark.parametrize("seed", range(2))
def test_after_crashes_a_filter_still_holds(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1, F10: what is settled from the archive goes through it again."""
    real = Ground

    def with_filter(*arguments: object, **more: object) -> Ground:
        return real(*arguments, **more, plugins=[KeepsOut("-3")])  # type: ignore[arg-type]

    monkeypatch.setattr("crashes.Ground", with_filter)
    world = World(SimulatedWeb(replace(SMALL, pages=80)), tmp_path)
    died: list[str] = []
    die_before_settling(monkeypatch, lambda url: len(url) % 2 == seed, died)
    for _ in range(4):
        assert world.crawl(1 << 30) is None
    die_before_settling(monkeypatch, lambda _: False, died)
    assert world.crawl() is not None
    assert sum(recovered.settled for recovered in world.recovered) >= 4
    fetched = [event.url for event in world.recorder.events if event.kind is EventKind.FETCH_OK]
    assert len(fetched) > 20
    assert not any("-3" in url for url in fetched if url not in world.web.seeds())


def test_a_crawl_without_plugins_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1, Q1: no object, no call: the sentence sees None."""
    seen: list[Extensions | None] = []
    made = Stages.__init__

    def remember(self: Stages, *arguments: object, **more: object) -> None:
        made(self, *arguments, **more)  # type: ignore[arg-type]
        seen.append(self.extensions)

    monkeypatch.setattr(Stages, "__init__", remember)
    called: list[str] = []
    for name in ("sentence.advice_on", "showing.extracts_of", "showing.sifted_by", "concluding.hand_on"):
        monkeypatch.setattr(f"nephila.pipeline.{name}", lambda *_a, _n=name, **_m: called.append(_n))
    done = crawled(tmp_path, [])
    assert done.summary.pages > 50
    assert seen == [None]
    assert called == []
    assert not (done.out / "plugins").exists()

"""A second look at stored pages: they are asked for conditionally, and a sample shows whether that can be trusted."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from served import records
from simulation import PATIENT, Simulated, simulate

from nephila.model.events import EventKind
from nephila.model.settings import Settings
from nephila.pipeline.judgement import Judge
from nephila.testing.clock import VirtualClock
from nephila.testing.web import Auditor, SimulatedWeb, WebSpec

DAY_S = 86_400.0
HOSTS, PAGES = 25, 800
PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


@dataclass
class Recrawled:
    """A web that is crawled cycle after cycle, some days apart, into one directory."""

    web: SimulatedWeb
    out: Path
    settings: Settings = PATIENT

    def __post_init__(self) -> None:
        self._clock = VirtualClock()
        self._auditor = Auditor(self.web)
        self.cycles: list[Simulated] = []

    def cycle(self) -> Simulated:
        """One more cycle."""
        if self.cycles:
            self._clock.advance(2 * DAY_S)
            self._auditor.new_cycle()
        again = bool(self.cycles)
        crawled = simulate(self.web, self.out, self.settings, new_cycle=again, clock=self._clock, auditor=self._auditor)
        assert not crawled.audit.violations
        self.cycles.append(crawled)
        return crawled


def web_of(seed: int, *, hosts: int, pages: int, page_bytes: int, lying: float, changing: float) -> SimulatedWeb:
    """A web of articles that all have validators."""
    spec = WebSpec.plain(seed, hosts=hosts, pages=pages, page_bytes=page_bytes)
    wire = replace(spec.wire, validators=1.0, lying=lying, changing=changing, compressed=0.3, odd_framing=0.3)
    return SimulatedWeb(replace(spec, wire=wire))


# Pages that do not change


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Recrawled:
    """Two cycles over pages that never change."""
    web = web_of(2, hosts=HOSTS, pages=PAGES, page_bytes=20_000, lying=0, changing=0)
    crawled = Recrawled(web, tmp_path_factory.mktemp("unchanged") / "crawl")
    crawled.cycle()
    crawled.cycle()
    return crawled


def test_a_second_cycle_moves_less_than_a_twentieth_of_the_bytes(
    unchanged: Recrawled, say: Callable[[str], None]
) -> None:
    """H3: although one page in 32 is asked for in full to see whether its server tells the truth."""
    first, second = (cycle.summary for cycle in unchanged.cycles)
    share = second.bytes / first.bytes
    say(f"{first.bytes:,} bytes, then {second.bytes:,} ({share:.1%}); {dict(second.statuses)} in the second cycle")
    assert second.pages == first.pages == PAGES
    assert second.statuses[304] + second.statuses[200] == PAGES + HOSTS, "robots.txt is a day old"
    assert PAGES / 64 < second.statuses[200] - HOSTS < PAGES / 16
    assert share < 0.05


def test_every_304_is_a_revisit_that_leads_to_the_page(unchanged: Recrawled) -> None:
    """H3, W1: WARC-Refers-To names a response of this archive that has the body which the page has now."""
    responses = {}
    revisits = []
    for _, record, block in records(unchanged.out):
        if record.rec_type == "response":
            responses[record.rec_headers["WARC-Record-ID"]] = (record.rec_headers, block)
        elif record.rec_type == "revisit" and record.rec_headers["WARC-Profile"] == PROFILE:
            revisits.append((record.rec_headers, block))
    assert len(revisits) == unchanged.cycles[1].summary.statuses[304]
    for headers, block in revisits:
        assert block.startswith(b"HTTP/1.1 304 ")
        original, answer = responses[headers["WARC-Refers-To"]]
        assert original["WARC-Target-URI"] == headers["WARC-Refers-To-Target-URI"] == headers["WARC-Target-URI"]
        assert original["WARC-Date"] == headers["WARC-Refers-To-Date"] < headers["WARC-Date"]
        payload = answer.partition(b"\r\n\r\n")[2]
        digest = "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()  # noqa: S324 - as WARC has it
        assert headers["WARC-Payload-Digest"] == original["WARC-Payload-Digest"] == digest


def test_nothing_is_asked_for_conditionally_when_its_body_is_not_known_to_be_stored(tmp_path: Path) -> None:
    """H3, D2: an index of bodies that was lost makes the next cycle store them again, not point at nothing."""
    crawled = Recrawled(web_of(4, hosts=4, pages=40, page_bytes=3000, lying=0, changing=0), tmp_path / "crawl")
    crawled.cycle()
    for path in (tmp_path / "crawl" / "duplicates").iterdir():
        path.unlink()
    second = crawled.cycle().summary
    assert (second.pages, second.statuses.get(304, 0)) == (40, 0)
    assert crawled.cycle().summary.statuses[304] > 30


def test_a_304_without_an_original_is_listed_again_as_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H3, W3: it is stored as a response where the index was lost on the way, and has changed nothing all the same."""
    out = tmp_path / "crawl"
    crawled = Recrawled(web_of(4, hosts=2, pages=20, page_bytes=2000, lying=0, changing=0), out)
    crawled.cycle()
    unchanged = Judge._unchanged
    monkeypatch.setattr(Judge, "_unchanged", lambda *given: replace(unchanged(*given), original=None))
    crawled.cycle()
    monkeypatch.undo()
    listed = told_of_304(out)
    assert len(listed) > 10
    assert {(kind, changed) for _, kind, changed, _ in listed} == {("response", 0)}
    (out / "catalogue.sqlite").unlink()
    simulate(crawled.web, out, crawled.settings, clock=crawled._clock)
    assert told_of_304(out) == listed


def told_of_304(out: Path) -> list[tuple[str, str, int, bytes]]:
    """What the catalogue says of answers that a page has not changed."""
    with closing(sqlite3.connect(out / "catalogue.sqlite")) as books:
        asked = (
            "SELECT url, kind, changed, content_hash FROM captures WHERE status = 304 AND NOT robots ORDER BY url, at"
        )
        return books.execute(asked).fetchall()


# Servers that lie


def stuck(web: SimulatedWeb) -> set[str]:
    """Pages whose content differs from cycle to cycle under validators that stay the same."""
    found = set()
    for page in web.truth().pages:
        located = web.atlas.locate_url(page)
        assert located is not None
        moments = [10**12 + int(day * DAY_S * 1000) for day in (0, 2)]
        versions = [web.version(located.spot, moment) for moment in moments]
        told = [web._validators(located.spot, *seen) for seen in zip(versions, moments, strict=True)]
        if versions[0] != versions[1] and told[0] == told[1]:
            found.add(page)
    return found


def noticed(crawled: Simulated) -> set[str]:
    """Pages that the crawl found to have changed under the same validators."""
    warnings = [event for event in crawled.recorder.events if event.kind is EventKind.WARNING]
    assert {event.reason for event in warnings} <= {"validators_lie"}
    return {event.url for event in warnings}


@pytest.mark.parametrize("every", [0, 1, 32])
def test_pages_that_changed_under_the_same_validators_are_noticed(
    tmp_path: Path, every: int, say: Callable[[str], None]
) -> None:
    """H3, R2: by a sample of each host's pages, and by all pages of a host that was caught."""
    web = web_of(8, hosts=12, pages=360, page_bytes=2000, lying=0.6, changing=0.5)
    settings = replace(PATIENT, fetch=replace(PATIENT.fetch, verify_unchanged_every=every))
    crawled = Recrawled(web, tmp_path / "crawl", settings)
    lies = stuck(web)
    assert len(lies) > 40
    crawled.cycle()
    found = [noticed(crawled.cycle()) for _ in range(3 if every > 1 else 1)]
    shares = [cycle.summary.bytes / crawled.cycles[0].summary.bytes for cycle in crawled.cycles[1:]]
    say(
        f"one in {every}: of {len(lies)} pages that lie, noticed in cycles 2 on: {[len(urls) for urls in found]}, "
        f"bytes {[f'{share:.0%}' for share in shares]} of the first cycle"
    )
    assert set().union(*found) <= lies
    match every:
        case 0:
            assert not any(found)
        case 1:
            assert found[0] == lies
        case _:
            assert found[0]
            hosts = {url.split("/")[2] for url in found[0]}
            # Who was caught once is asked in full from then on: nothing of it is missed in the next cycle.
            assert {url for url in lies if url.split("/")[2] in hosts} <= found[1]
            assert len(found[2]) >= len(found[1]) >= len(found[0])


def test_a_host_that_tells_the_truth_again_is_trusted_again(tmp_path: Path) -> None:
    """H3: a whole cycle in full without a lie ends it."""
    web = web_of(6, hosts=1, pages=30, page_bytes=2000, lying=1.0, changing=0.5)
    crawled = Recrawled(web, tmp_path / "crawl", replace(PATIENT, random_seed=2))
    crawled.cycle()
    assert noticed(crawled.cycle())
    honest = web_of(6, hosts=1, pages=30, page_bytes=2000, lying=0.0, changing=0.0)
    crawled.web = honest
    crawled._auditor = Auditor(honest)
    statuses = [Counter(crawled.cycle().summary.statuses) for _ in range(3)]
    assert [counts[304] for counts in statuses[:2]] == [0, 0]
    assert statuses[2][304] > 25

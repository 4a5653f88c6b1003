"""The report of a crawl, against what its events and its summary say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.model.errors import CrawlDirectoryError
from nephila.model.events import EventKind
from nephila.node.directory import CrawlDirectory
from nephila.node.reporting import report_on
from nephila.testing.web import SimulatedWeb, WebSpec


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    web = SimulatedWeb(replace(WebSpec.standard(11), hosts=20, pages=260, page_bytes=600))
    settings = replace(PATIENT, limits=replace(PATIENT.limits, max_wait_s=250.0))
    found = simulate(web, tmp_path_factory.mktemp("report") / "crawl", settings)
    write_stored(found.out, settings)
    return found


def test_the_report_agrees_with_events_and_summary(crawled: Simulated) -> None:
    """O3: counted from the catalogue, compared with what was told while it happened."""
    report, summary, events = report_on(crawled.out), crawled.summary, crawled.recorder.events
    answered = [event for event in events if event.kind is EventKind.FETCH_OK]
    assert summary.pages == sum(event.is_page() for event in answered)
    assert summary.pages - report.truncated <= report.pages <= summary.pages
    assert report.answers == len(answered)
    assert report.answers + report.robots == summary.responses
    assert report.bytes == summary.bytes
    assert report.statuses == dict(Counter(event.status for event in answered))
    failed = [event for event in events if event.kind is EventKind.ERROR]
    assert any(event.url.endswith("/robots.txt") for event in failed), "those of robots.txt are among them"
    assert report.errors == dict(Counter(event.reason for event in failed))
    assert sum(one.errors for one in report.error_hosts) <= sum(summary.errors.values())
    assert report.repetition.exact + report.repetition.near == summary.duplicates
    assert report.coverage.domains == summary.domains
    assert sum(one.pages for one in report.coverage.leading) <= report.pages
    assert report.queue.dead == summary.dead
    assert not report.running


def test_the_timeline_holds_every_whole_page(crawled: Simulated) -> None:
    """O3: from the first answer to the last."""
    report = report_on(crawled.out)
    moments = report.timeline.moments
    assert sum(moment.pages for moment in moments) == report.pages
    assert sum(moment.answers for moment in moments) == report.answers
    assert sum(moment.bytes for moment in moments) == report.bytes
    assert moments[0].bytes
    assert report.seconds > 100
    assert 0 < report.pages_per_s <= report.most_pages_per_s


def test_a_running_crawl_has_a_report(crawled: Simulated) -> None:
    """O3: also during a crawl."""
    with CrawlDirectory(crawled.out).held():
        assert report_on(crawled.out).running


def test_there_is_no_report_on_nothing(tmp_path: Path) -> None:
    """C4: one sentence."""
    with pytest.raises(CrawlDirectoryError):
        report_on(tmp_path / "nothing")

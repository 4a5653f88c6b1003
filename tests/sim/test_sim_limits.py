"""Limits under virtual time: each ends the crawl cleanly, says which it was, and the same command goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulation import PATIENT, Recorder, Simulated, simulate

from nephila.model.errors import StorageError
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.model.summary import StoppedBy
from nephila.testing.clock import VirtualClock
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.web import Auditor, SimulatedWeb, WebSpec
from nephila.testing.web.spec import RobotsKind

PLAIN = SimulatedWeb(WebSpec.plain(3, hosts=6, pages=60, page_bytes=400, links_per_page=8))


def limited(concurrency: int = 256, delay_s: float = 1.0, **limits: Any) -> Settings:
    """Patient settings with these limits."""
    return replace(
        PATIENT,
        limits=replace(PATIENT.limits, **limits),
        fetch=replace(PATIENT.fetch, concurrency=concurrency),
        politeness=replace(PATIENT.politeness, delay_s=delay_s),
    )


def pages_of(crawled: Simulated) -> list[str]:
    return [event.url for event in crawled.recorder.events if event.is_page()]


@pytest.mark.parametrize("concurrency", [1, 3, 256])
@pytest.mark.parametrize("delay_s", [0.0, 1.0], ids=["hasty", "polite"])
def test_max_pages_is_exact(tmp_path: Path, concurrency: int, delay_s: float) -> None:
    """S3: so many pages are stored, not one more, however many are asked for at once."""
    settings = limited(concurrency, delay_s, max_pages=17)
    crawled = simulate(PLAIN, tmp_path / "crawl", settings)
    assert crawled.summary.stopped_by is StoppedBy.MAX_PAGES
    assert crawled.summary.pages == crawled.summary.total_pages == len(pages_of(crawled)) == 17
    assert crawled.summary.remaining > 0


def test_max_pages_counts_earlier_runs_and_only_pages(tmp_path: Path) -> None:
    """S3, F10: the same command stops at once, a higher limit goes on; errors and redirects use nothing up."""
    web = SimulatedWeb(replace(WebSpec.standard(6), hosts=8, pages=80, page_bytes=800))
    auditor, clock = Auditor(web), VirtualClock()
    first = simulate(web, tmp_path / "crawl", limited(max_pages=20), auditor=auditor, clock=clock)
    again = simulate(web, tmp_path / "crawl", limited(max_pages=20), auditor=auditor, clock=clock)
    more = simulate(web, tmp_path / "crawl", limited(max_pages=33), auditor=auditor, clock=clock)
    assert [run.summary.pages for run in (first, again, more)] == [20, 0, 13]
    assert {run.summary.stopped_by for run in (first, again, more)} == {StoppedBy.MAX_PAGES}
    assert more.summary.total_pages == 33
    stored = Counter(web.identify(url) for run in (first, again, more) for url in pages_of(run))
    assert set(stored.values()) == {1}
    assert not more.audit.violations


def test_max_domains(tmp_path: Path) -> None:
    """S3: with one exchange at a time exactly so many registrable domains."""
    crawled = simulate(PLAIN, tmp_path / "crawl", limited(1, max_domains=4))
    assert crawled.summary.stopped_by is StoppedBy.MAX_DOMAINS
    assert crawled.summary.domains == 4


def test_max_total_bytes_counts_earlier_runs(tmp_path: Path) -> None:
    """S3: bytes on the wire in all."""
    first = simulate(PLAIN, tmp_path / "crawl", limited(4, max_total_bytes=15_000))
    assert first.summary.stopped_by is StoppedBy.MAX_BYTES
    assert 15_000 <= first.summary.bytes < 15_000 + 4 * 2_000
    again = simulate(PLAIN, tmp_path / "crawl", limited(4, max_total_bytes=15_000))
    assert (again.summary.stopped_by, again.summary.responses) == (StoppedBy.MAX_BYTES, 0)


def test_max_time(tmp_path: Path) -> None:
    """S3: seconds of wall time, also while nothing happens."""
    crawled = simulate(PLAIN, tmp_path / "crawl", limited(max_time_s=4.25))
    assert crawled.summary.stopped_by is StoppedBy.MAX_TIME
    assert 4.25 <= crawled.summary.seconds < 4.25 + 2.5
    assert 0 < crawled.summary.pages < 60
    slow = SimulatedWeb(replace(PLAIN.spec, timing=replace(PLAIN.spec.timing, latency_ms=20_000)))
    hanging = simulate(slow, tmp_path / "slow", limited(max_time_s=3.0))
    assert hanging.summary.stopped_by is StoppedBy.MAX_TIME
    assert hanging.summary.seconds < 6, "an answer that does not come is cut off"


def test_max_pages_per_host_leaves_the_rest_listed(tmp_path: Path) -> None:
    """S3: the crawl ends by itself, what a host has too many of stays queued, with its reason."""
    crawled = simulate(PLAIN, tmp_path / "crawl", limited(max_pages_per_host=3))
    hosts = Counter(event.host for event in crawled.recorder.events if event.is_page())
    assert set(hosts.values()) == {3}
    summary = crawled.summary
    assert summary.stopped_by is StoppedBy.DONE
    assert dict(summary.remaining_by_reason) == {"host_limit": summary.remaining}
    assert summary.remaining > 0


def test_max_wait_leaves_what_must_wait_with_its_reason(tmp_path: Path) -> None:
    """S3, P1: what cannot run within --max-wait stays queued and is listed; a longer patience goes on."""
    mix = replace(PLAIN.spec.host_mix, robots=(RobotsKind.OPEN, RobotsKind.BROKEN))
    web = SimulatedWeb(replace(PLAIN.spec, host_mix=mix))
    crawled = simulate(web, tmp_path / "crawl", limited(max_wait_s=120.0))
    summary = crawled.summary
    assert summary.stopped_by is StoppedBy.DONE
    assert dict(summary.remaining_by_reason) == {"robots_unavailable": summary.remaining}
    assert summary.remaining > 0
    assert summary.seconds < 120
    patient = simulate(web, tmp_path / "patient", limited(max_wait_s=700.0, max_time_s=2000.0))
    tries = Counter(event.host for event in patient.recorder.events if event.reason == "unavailable")
    assert min(tries.values()) > 1, "robots.txt is tried again later"


def test_nothing_left_is_done(tmp_path: Path) -> None:
    """S3: a crawl of a whole web ends by itself."""
    crawled = simulate(PLAIN, tmp_path / "crawl", limited())
    summary = crawled.summary
    assert (summary.stopped_by, summary.pages, summary.remaining) == (StoppedBy.DONE, 60, 0)
    assert dict(summary.remaining_by_reason) == {}
    assert not crawled.audit.violations


def test_a_full_disk_ends_the_crawl_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """W2, F10: cleanly, with the reason; nothing is lost and nothing stored twice when there is room again."""
    disk, auditor, clock = ForgetfulDisk(capacity=60_000), Auditor(PLAIN), VirtualClock()
    full = simulate(PLAIN, tmp_path / "crawl", limited(), disk=disk, auditor=auditor, clock=clock)
    assert full.summary.stopped_by is StoppedBy.STORAGE
    assert "could not be written" in full.summary.failure
    assert 0 < full.summary.pages < 60
    disk.capacity = None
    again = simulate(PLAIN, tmp_path / "crawl", limited(), disk=disk, auditor=auditor, clock=clock)
    assert again.summary.stopped_by is StoppedBy.DONE
    assert again.summary.total_pages == 60
    stored = Counter(url for run in (full, again) for url in pages_of(run))
    assert set(stored.values()) == {1}
    assert {violation.kind for violation in again.audit.violations} <= {"repeat"}, "what the disk did not take"


class Wear(Recorder):
    """Lets a disk fail once the first page is there."""

    def __init__(self, disk: ForgetfulDisk) -> None:
        super().__init__()
        self._disk = disk

    def emit(self, event: Event) -> None:
        self._disk.refuses_sync |= event.kind is EventKind.FETCH_OK


def test_a_disk_that_cannot_sync_ends_the_crawl(tmp_path: Path) -> None:
    """W2: nothing is acknowledged that may not be durable."""
    disk = ForgetfulDisk()
    broken = simulate(PLAIN, tmp_path / "crawl", limited(), disk=disk, listeners=[Wear(disk)])
    assert broken.summary.stopped_by is StoppedBy.STORAGE
    assert broken.summary.seconds < 10
    with pytest.raises(StorageError, match="could not be written"):
        simulate(PLAIN, tmp_path / "another", limited(), disk=disk)

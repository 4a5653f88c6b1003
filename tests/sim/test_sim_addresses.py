"""Many hosts behind two addresses, under virtual time: the second limit of P2 as the servers see it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.model.errors import UsageError
from nephila.model.events import EventKind
from nephila.model.outcome import DeferReason
from nephila.model.summary import StoppedBy
from nephila.testing.clock import VirtualClock
from nephila.testing.web import Auditor, SimulatedWeb, ViolationKind, WebSpec
from nephila.testing.web.truth import Expect

HOSTS, PAGES = 300, 600
CROWDED = replace(
    WebSpec.plain(11, hosts=HOSTS, pages=PAGES, page_bytes=400, links_per_page=6),
    host_mix=replace(WebSpec.plain(11, hosts=1, pages=1).host_mix, max_addresses=2),
)
"""Three hundred hosts, half of them on each of two servers; nothing ever fails there."""


def crowded(addresses: int = 2, **timing: float) -> SimulatedWeb:
    """The web on so many addresses, with other times."""
    mix = replace(CROWDED.host_mix, shared_addresses=0.5 if addresses == 2 else 1.0)
    return SimulatedWeb(replace(CROWDED, host_mix=mix, timing=replace(CROWDED.timing, **timing)))


def crawl(web: SimulatedWeb, out: Path, at_once: int = 4, a_second: int = 10, **politeness: object) -> Simulated:
    """A crawl with these settings, judged by the limits that a server has."""
    chosen = replace(PATIENT.politeness, **politeness)  # type: ignore[arg-type]
    settings = replace(PATIENT, politeness=chosen, sitemaps=replace(PATIENT.sitemaps, guess=False))
    auditor = Auditor(web, base_delay_ms=chosen.delay_s * 1000, per_address=at_once, address_rate=a_second)
    return simulate(web, out, settings, auditor=auditor)


def deferrals(crawled: Simulated) -> int:
    return sum(
        event.kind is EventKind.DEFERRED and event.reason == DeferReason.ADDRESS for event in crawled.recorder.events
    )


def kinds(crawled: Simulated) -> Counter[EventKind]:
    return Counter(event.kind for event in crawled.recorder.events)


@pytest.mark.parametrize("latency_ms", [20.0, 1500.0], ids=["fast", "slow"])
def test_hosts_that_share_two_addresses_are_asked_within_both_limits(
    tmp_path: Path, say: Callable[[str], None], latency_ms: float
) -> None:
    """P2, P5, F2: four at once and ten a second on each server; all is fetched, and waiting costs no retry."""
    web = crowded(latency_ms=latency_ms)
    assert len({host.address for host in web.hosts}) == 2
    crawled = crawl(web, tmp_path / "crawl")
    assert crawled.audit.violations == ()
    assert crawled.summary.stopped_by is StoppedBy.DONE
    assert (crawled.summary.pages, crawled.summary.remaining) == (PAGES, 0)
    assert crawled.audit.requests == PAGES + HOSTS
    assert not kinds(crawled).keys() & {EventKind.RETRY, EventKind.ERROR, EventKind.DEAD_LETTER, EventKind.WARNING}
    per_fetch = deferrals(crawled) / crawled.audit.requests
    say(
        f"{crawled.audit.requests} requests to 2 addresses in {crawled.summary.seconds:.0f} s, "
        f"{crawled.audit.requests / crawled.summary.seconds / 2:.2f} a second each; {per_fetch:.2f} deferrals a fetch"
    )
    assert 0 < per_fetch < 1.5


def test_a_crawl_that_does_not_ask_the_ledger_is_found_out(tmp_path: Path) -> None:
    """P2, P5: with limits that bind nobody the auditor has much to say, so its silence elsewhere means something."""
    crawled = crawl(crowded(latency_ms=200.0), tmp_path / "crawl", address_concurrency=10_000, address_rate=1e6)
    assert set(crawled.audit.by_kind) == {ViolationKind.CROWD}
    details = [violation.detail for violation in crawled.audit.violations]
    assert sum("other requests at" in detail for detail in details) > 100
    assert sum("within" in detail for detail in details) > 100
    assert deferrals(crawled) == 0


def test_without_a_delay_the_limit_is_lifted(tmp_path: Path) -> None:
    """P2: `--delay 0` is for one's own server, which may be asked as fast as it answers."""
    crawled = crawl(crowded(), tmp_path / "crawl", at_once=0, a_second=0, delay_s=0.0)
    assert (crawled.summary.pages, deferrals(crawled)) == (PAGES, 0)
    assert crawled.audit.violations == ()
    assert crawled.audit.requests / crawled.summary.seconds > 100


def test_a_range_may_have_another_limit(tmp_path: Path) -> None:
    """P2: one server may be asked twice as often, the other half as often; each keeps to its own."""
    web = crowded()
    fast, slow = sorted({host.address for host in web.hosts})
    ranges = ("127.0.0.0/8=1/1", f"{fast}/32=8/20", f"{slow}/32=2/5")
    crawled = crawl(web, tmp_path / "crawl", at_once=8, a_second=20, address_limits=ranges)
    assert crawled.audit.violations == ()
    assert crawled.summary.pages == PAGES
    busiest = dict.fromkeys((fast, slow), 0)
    for address in busiest:
        ended = sorted(sent.at_ms for sent in crawled.sent if web.address_of(sent.host) == address)
        busiest[address] = max(bisect_left(ended, at_ms + 980) - number for number, at_ms in enumerate(ended))
    assert 10 < busiest[fast] <= 20
    assert 3 <= busiest[slow] <= 5


def test_a_web_with_every_fault_keeps_the_limits_too(tmp_path: Path, say: Callable[[str], None]) -> None:
    """P2, P5, H5: resets, hangs, redirects and slow hosts on a few shared servers; only real failures cost retries."""
    spec = replace(WebSpec.standard(4), hosts=60, pages=900, page_bytes=800)
    mix = replace(spec.host_mix, shared_addresses=1.0, max_addresses=4)
    web = SimulatedWeb(replace(spec, host_mix=mix))
    crawled = crawl(web, tmp_path / "crawl")
    assert crawled.audit.violations == ()
    fetched = {web.identify(event.url) for event in crawled.recorder.events if event.is_page()}
    assert fetched >= web.truth().urls(Expect.PAGE, Expect.RECOVERS)
    per_fetch = deferrals(crawled) / crawled.audit.requests
    say(f"{crawled.audit.requests} requests in {crawled.summary.seconds:.0f} s; {per_fetch:.2f} deferrals a fetch")
    assert per_fetch < 1.5


def test_a_crawl_that_is_stopped_while_hosts_wait_for_their_turn_goes_on_later(tmp_path: Path) -> None:
    """P2, F10, S3: nothing is lost and nothing asked twice; the limits hold in both runs."""
    web, clock = crowded(), VirtualClock()
    auditor = Auditor(web, per_address=4, address_rate=10)
    short = replace(PATIENT, limits=replace(PATIENT.limits, max_time_s=20.0))
    first = simulate(web, tmp_path / "crawl", short, auditor=auditor, clock=clock)
    assert first.summary.stopped_by is StoppedBy.MAX_TIME
    assert first.summary.remaining > 0
    assert deferrals(first) > 0
    second = simulate(web, tmp_path / "crawl", auditor=auditor, clock=clock)
    assert first.summary.pages + second.summary.pages == PAGES
    assert second.audit.violations == ()


def test_a_range_that_cannot_be_read_stops_the_crawl_before_it_begins(tmp_path: Path) -> None:
    """P2, C4: named when the crawl is built."""
    with pytest.raises(UsageError, match=r"politeness\.address_limits: 'nonsense'"):
        crawl(crowded(), tmp_path / "crawl", address_limits=("nonsense",))

"""Endless sites in whole crawls: the real pipeline, frontier and store, judged by the servers' own count of waste.

The budget of a host is opened wide where a trap is met alone, so that nothing but its yield can stop it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from simulation import DEFAULTS, PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.frontier.embedded.coding import read_tally
from nephila.frontier.embedded.tables import SKELETON, open_tables
from nephila.frontier.traps import SkeletonTally
from nephila.interfaces.frontier import Trap
from nephila.model.settings import Settings
from nephila.model.summary import StoppedBy
from nephila.node.directory import CrawlDirectory
from nephila.node.inspect import CrawlView, WhyAnswer
from nephila.node.operating import CrawlOperator
from nephila.testing.web import (
    Calendar,
    EndlessPath,
    RandomLinks,
    SessionMaze,
    Shop,
    SimulatedWeb,
    SitePage,
    TrapFigures,
    TrapHost,
    TrapSite,
    WebSpec,
)
from nephila.testing.web.truth import Expect
from nephila.testing.web.words import SentenceBank

Say = Callable[[str], None]
ON_LOOPBACK = replace(DEFAULTS, fetch=PATIENT.fetch, frontier=PATIENT.frontier)
"""What a crawl is by default, but for the addresses of the simulated web and a store that is not synced."""
UNBUDGETED = replace(PATIENT, budget=replace(PATIENT.budget, first_urls=10**6))
WASTE = 200
"""What a trap may cost, by the issue that asked for this."""


@dataclass(frozen=True, slots=True)
class VaryingPath:
    """The half of an endless path whose segments are ever other ones."""

    site: EndlessPath = EndlessPath()
    label: str = "varying"

    @property
    def real_pages(self) -> int:
        return self.site.real_pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        page = self.site.page(target, bank)
        return page and page._replace(links=[link for link in page.links if not link.startswith("loop/")])


REPEATING = EndlessPath(branches=0, label="repeating")
TRAPS: tuple[TrapSite, ...] = (
    Calendar(),
    SessionMaze(),
    RandomLinks(),
    VaryingPath(),
    VaryingPath(EndlessPath(branches=12), label="wide"),
    EndlessPath(),
)


def crawl_of(folder: Path, settings: Settings, *sites: TrapSite) -> Simulated:
    """A crawl of these sites and nothing else, that can be looked into."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=sites))
    crawled = simulate(web, folder / "crawl", settings, seeds=web.trap_seeds())
    write_stored(crawled.out, settings)
    return crawled


@pytest.fixture(scope="module", params=TRAPS, ids=lambda site: site.label)
def trapped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A crawl of one trap, looked at by several tests."""
    return crawl_of(tmp_path_factory.mktemp("trap"), UNBUDGETED, request.param)


def told(figures: TrapFigures) -> str:
    return (
        f"{figures.requests} fetched, {figures.wasted} wasted, {figures.found} of {figures.real_pages} real pages found"
    )


def only_host(crawled: Simulated) -> TrapHost:
    (host,) = crawled.web.traps
    return host


def traps_of(crawled: Simulated) -> list[Trap]:
    return CrawlOperator(crawled.out).traps(100)[0]


def tallies_of(crawled: Simulated) -> list[SkeletonTally]:
    """All that was counted on the only host."""
    tables = open_tables(CrawlDirectory(crawled.out).frontier, map_bytes=UNBUDGETED.frontier.map_bytes, sync=False)
    try:
        prefix = tables.host_key(only_host(crawled).name) + SKELETON
        with tables.env.begin() as txn, txn.cursor(db=tables.web) as cursor:
            cursor.set_range(prefix)
            return [read_tally(value) for key, value in cursor.iternext() if key.startswith(prefix)]
    finally:
        tables.close()


def first_parked(crawled: Simulated) -> WhyAnswer:
    """The story of a URL that the crawl has met and left: the last pages that were served lead to some."""
    view, host = CrawlView(crawled.out), only_host(crawled)
    for sent in reversed(crawled.sent):
        page = crawled.web.traps.page(host, sent.target)
        for link in page.links if page else ():
            why = view.why(urljoin(f"http://{host.name}{sent.target}", link))
            if why.data["state"] == "parked":
                return why
    raise AssertionError("nothing is parked")


def test_a_trap_costs_less_than_200_fetches_and_nothing_real_is_missed(trapped: Simulated, say: Say) -> None:
    """T2, T5: by the server's own count."""
    figures = trapped.traps[only_host(trapped).name]
    say(told(figures))
    assert figures.wasted < WASTE
    assert figures.found == figures.real_pages


def test_a_crawl_of_a_trap_ends_by_itself_with_the_rest_parked(trapped: Simulated, say: Say) -> None:
    """T2, S3: nothing is queued any more and nothing was dropped; what is left lies on the shelves of the trap."""
    say(f"over after {trapped.summary.seconds:.0f} s of virtual time, parked {dict(trapped.summary.parked)}")
    assert trapped.summary.stopped_by is StoppedBy.DONE
    assert trapped.summary.remaining == 0
    assert set(trapped.summary.parked) == {"trap"}
    assert not trapped.audit.violations


def test_traps_lists_what_is_held_back_with_its_evidence(trapped: Simulated) -> None:
    """T2: the patterns, what they brought, and all that is parked under them."""
    found = traps_of(trapped)
    stopped = [trap for trap in found if trap.state == "quarantined"]
    assert {trap.host for trap in found} == {only_host(trapped).name}
    assert len(found) == trapped.summary.traps
    assert stopped
    assert sum(trap.parked for trap in found) == trapped.summary.parked["trap"]
    for trap in stopped:
        assert trap.barren >= UNBUDGETED.traps.stop_after
        assert trap.duplicates + trap.repeats + trap.errors >= trap.barren
        assert trap.example.startswith(f"http://{trap.host}/")
        assert trap.next_try_at - trap.since >= UNBUDGETED.traps.probe_s * 1000


def test_why_tells_what_is_held_against_a_parked_url(trapped: Simulated, say: Say) -> None:
    """T8, T2: the reason, the figures of the pattern that holds it, and when one of them is tried again."""
    why = first_parked(trapped)
    lines = dict(why.lines)
    say(f"{lines['URL']}: {lines['evidence']}")
    assert why.found
    assert why.data["reason"] == "trap"
    assert f"traps DIR {only_host(trapped).name}" in lines["because"]
    assert "brought nothing new in" in lines["evidence"]
    assert any(lines["evidence"] == trap.evidence for trap in traps_of(trapped))
    assert "next try" in lines


def test_a_path_that_repeats_itself_is_refused_before_it_is_asked_for(tmp_path: Path, say: Say) -> None:
    """T1, T8: the address alone gives it away; `why` names the rule."""
    crawled = crawl_of(tmp_path, UNBUDGETED, REPEATING)
    figures = crawled.traps[only_host(crawled).name]
    say(f"{told(figures)}, refused {dict(crawled.summary.refused)}")
    assert figures.wasted < WASTE
    assert figures.found == figures.real_pages
    assert crawled.summary.stopped_by is StoppedBy.DONE
    assert crawled.summary.remaining == 0
    assert not crawled.audit.violations
    assert crawled.summary.refused["repeated_segments"] > 0
    why = CrawlView(crawled.out).why(f"http://{only_host(crawled).name}/loop/part/part/part/")
    assert (why.data["state"], why.data["reason"]) == ("refused", "repeated_segments")


def test_a_shop_is_fetched_whole_and_never_slowed(tmp_path: Path, say: Say) -> None:
    """T2, T5, F5: all under one skeleton, with all defaults; its budget is earned as fast as it is used up."""
    crawled = crawl_of(tmp_path, ON_LOOPBACK, Shop(products=3000, per_list=300))  # ten lists: none is too deep
    figures = crawled.traps[only_host(crawled).name]
    tallies = tallies_of(crawled)
    say(f"{told(figures)} in {crawled.summary.cpu_s:.0f} s of CPU, {crawled.summary.seconds:.0f} s of virtual time")
    assert figures.found == figures.requests == figures.real_pages
    assert any(tally.pattern == "/product/{n}" and tally.fresh >= 2900 for tally in tallies)
    assert [tally for tally in tallies if tally.since_s] == [], "a pattern that has changed its state"
    assert (crawled.summary.traps, dict(crawled.summary.parked)) == (0, {})
    assert not crawled.audit.violations


def test_good_hosts_beside_traps_are_crawled_completely(tmp_path: Path, say: Say) -> None:
    """T2, F2, F5: every page of the web that can be had is stored once, and each trap stays within its bounds."""
    web = SimulatedWeb(replace(WebSpec.standard(2), hosts=25, pages=500, traps=(*TRAPS, REPEATING)))
    crawled = simulate(web, tmp_path / "crawl", PATIENT)
    done = Counter(web.identify(event.url) for event in crawled.recorder.events if event.is_page())
    wanted = web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    hosts = {url.split("/")[2] for url in wanted}
    say(f"{len(wanted)} pages of {len(hosts)} good hosts, {crawled.summary.pages} in all")
    assert len(wanted) > 200
    assert {url for url in wanted if done[url] != 1} == set()
    _within_bounds(crawled, say)


def test_with_all_defaults_good_hosts_and_a_shop_lose_nothing_to_the_traps(tmp_path: Path, say: Say) -> None:
    """T2, T5, F5: budgets, thresholds and waits as they come; every site is a seed."""
    traps = (*TRAPS, REPEATING, Shop(products=300))
    web = SimulatedWeb(replace(WebSpec.plain(3, hosts=10, pages=300, page_bytes=800), traps=traps))
    seeds = web.seeds(10)
    crawled = simulate(web, tmp_path / "crawl", ON_LOOPBACK, seeds=seeds + web.trap_seeds())
    done = {web.identify(event.url) for event in crawled.recorder.events if event.is_page()}
    wanted = web.truth("Nephila", seeds).urls(Expect.PAGE)
    shop = crawled.traps["shop-7.test"]
    say(f"{len(wanted)} pages of 10 good hosts; the shop: {told(shop)}; over after {crawled.summary.seconds:.0f} s")
    assert len(wanted) == 300
    assert wanted <= done
    assert shop.requests == shop.real_pages
    assert crawled.summary.stopped_by is StoppedBy.DONE
    _within_bounds(crawled, say)


def _within_bounds(crawled: Simulated, say: Say) -> None:
    for name, figures in crawled.traps.items():
        say(f"{name}: {told(figures)}")
        assert figures.wasted < WASTE, name
        assert figures.found == figures.real_pages, name
    assert not crawled.audit.violations

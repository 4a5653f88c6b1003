"""Many URLs for few pages, in whole crawls: what is learned, what it saves, and what must not be taken for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.model.alias import AliasKind, AliasRule, AliasState
from nephila.model.settings import Settings
from nephila.model.summary import StoppedBy
from nephila.node.inspect import CrawlView
from nephila.node.operating import CrawlOperator
from nephila.testing.web import Decorated, Meaningful, Moved, Referring, SessionMaze, SimulatedWeb, TrapSite, WebSpec
from nephila.testing.web.truth import Expect

Say = Callable[[str], None]
OPEN = replace(PATIENT, budget=replace(PATIENT.budget, first_urls=10**6))
"""Nothing but what is learned may keep a URL from being asked for, so traps do not count here."""
UNTRAPPED = replace(OPEN, traps=replace(OPEN.traps, slow_after=10**6, stop_after=10**6))
BLIND = replace(UNTRAPPED, aliases=replace(UNTRAPPED.aliases, learn=False))
SHOP = Decorated(items=150, per_list=30, related=5)
COSMETIC: tuple[TrapSite, ...] = (
    SHOP,
    replace(SHOP, bare=True, name="ref2", label="bare"),
    replace(SHOP, canonical=True, name="origin", label="canonical"),
)
MEANINGFUL: tuple[TrapSite, ...] = (Meaningful(), Meaningful(name="ref2", label="meaning2"))


def crawl_of(folder: Path, settings: Settings, *sites: TrapSite, seeds: int | None = None) -> Simulated:
    """A crawl of these sites and nothing else; of the first `seeds` of them are the seeds."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=sites))
    crawled = simulate(web, folder / "crawl", settings, seeds=web.trap_seeds()[:seeds])
    write_stored(crawled.out, settings)
    return crawled


def rules_of(crawled: Simulated) -> dict[tuple[str, str], AliasRule]:
    return {(rule.domain, rule.pattern): rule for rule in CrawlOperator(crawled.out).aliases()}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A crawl of all kinds, looked at by several tests."""
    return crawl_of(tmp_path_factory.mktemp("aliases"), UNTRAPPED, *COSMETIC, *MEANINGFUL)


def test_parameters_that_mean_nothing_are_found_and_those_of_the_same_name_that_do_are_not(
    learned: Simulated, say: Say
) -> None:
    """D4, T3: a rule for each decorated shop and for no other; the lists' own parameter is none."""
    found = rules_of(learned)
    for rule in found.values():
        votes = f"{rule.agreed} for, {rule.against} against"
        say(f"{rule.domain} {rule.pattern}: {rule.state}, {votes}, {rule.caught} caught")
    in_force = {key for key, rule in found.items() if rule.state is AliasState.IN_FORCE}
    assert in_force == {
        ("decorated-0.test", "/item/{n}?from"),
        ("bare-1.test", "/item/{n}?ref2"),
        ("canonical-2.test", "/item/{n}?origin"),
    }
    assert {rule.against for key, rule in found.items() if key in in_force} == {0}


def test_nothing_real_is_missed_because_of_an_alias(learned: Simulated) -> None:
    """D4: every page of every site was served, by the servers' own count, and politely."""
    for name, figures in learned.traps.items():
        assert figures.found == figures.real_pages, name
    assert learned.summary.stopped_by is StoppedBy.DONE
    assert not learned.audit.violations


def test_aliases_save_requests(learned: Simulated, tmp_path: Path, say: Say) -> None:
    """D4, T3: the same web with and without learning."""
    blind = crawl_of(tmp_path, BLIND, *COSMETIC, *MEANINGFUL)
    for name, figures in learned.traps.items():
        before = blind.traps[name]
        say(f"{name}: {before.requests} requests without, {figures.requests} with aliases, {figures.real_pages} pages")
        assert before.found == before.real_pages
    saved = 1 - learned.audit.requests / blind.audit.requests
    say(f"{blind.audit.requests} requests without, {learned.audit.requests} with: {saved:.0%} saved")
    assert saved > 0.3
    assert learned.traps["meaningful-3.test"].requests == blind.traps["meaningful-3.test"].requests


def test_why_tells_what_a_url_is_an_alias_of_and_how_that_is_known(learned: Simulated, say: Say) -> None:
    """T8, D4: the other URL, the parameter, and how many pages were alike."""
    refused = next(event for event in learned.recorder.events if event.reason == "alias")
    why = CrawlView(learned.out).why(refused.url)
    lines = dict(why.lines)
    say(f"{lines['URL']}: {lines['because']}")
    assert (why.data["state"], why.data["reason"]) == ("refused", "alias")
    shorter = refused.url.partition("?")[0]
    assert f"{shorter}: parameter" in lines["because"]
    assert "pages alike" in lines["because"]
    assert CrawlView(learned.out).why(shorter).data["state"] == "completed"
    never = CrawlView(learned.out).why(f"{shorter}?{refused.url.partition('?')[2]}never")
    assert (never.found, never.data["would_be_refused"]["reason"]) == (False, "alias")  # type: ignore[index]


def test_a_restart_keeps_the_rules_and_an_undone_one_is_not_learned_again(tmp_path: Path, say: Say) -> None:
    """D4, F10: a second cycle asks for what the first has learned to be one; after an undo for all of it."""
    site = replace(SHOP, items=90)
    first = crawl_of(tmp_path, UNTRAPPED, site)
    (rule,) = [one for one in rules_of(first).values() if one.state is AliasState.IN_FORCE]
    seeds = first.web.trap_seeds()
    kept = simulate(first.web, first.out, UNTRAPPED, seeds=seeds, new_cycle=True)
    (same,) = [one for one in rules_of(kept).values() if one.state is AliasState.IN_FORCE]
    assert (same.id, same.since) == (rule.id, rule.since)
    assert same.caught > rule.caught
    assert kept.traps["decorated-0.test"].found == site.real_pages
    assert kept.traps["decorated-0.test"].requests < 1.1 * site.real_pages
    undone = CrawlOperator(first.out).undo_alias(rule.pattern, rule.domain)
    assert (undone.id, undone.state) == (rule.id, AliasState.UNDONE)
    again = simulate(first.web, first.out, UNTRAPPED, seeds=seeds, new_cycle=True)
    host = "decorated-0.test"
    say(
        f"requests: {first.traps[host].requests}, in the next cycle {kept.traps[host].requests}, "
        f"and {again.traps[host].requests} after the rule was undone"
    )
    assert rules_of(again)[rule.domain, rule.pattern].state is AliasState.UNDONE
    assert again.traps[host].requests > first.traps[host].requests * 1.5
    redone = CrawlOperator(first.out).redo_alias(rule.id)
    assert redone.state is AliasState.IN_FORCE


def test_a_host_that_always_redirects_is_asked_no_more(tmp_path: Path, say: Say) -> None:
    """D4, H2: after some redirects its links are admitted as those of the host it leads to."""
    old, new = "http://www.shop-0.test", "http://shop-0.test"
    paths = tuple(f"/item/{n}" for n in range(1, 141))
    shop = replace(SHOP, items=140, label="shop")
    sites = (shop, Referring(old, paths, pages=14), Moved(new, label="www.shop-0.test"))
    crawled = crawl_of(tmp_path, UNTRAPPED, *sites, seeds=2)
    blind = crawl_of(tmp_path / "blind", BLIND, *sites, seeds=2)
    rule = rules_of(crawled)["shop-0.test", old]
    asked, before = crawled.traps["www.shop-0.test"].requests, blind.traps["www.shop-0.test"].requests
    say(f"{before} requests to the old host without, {asked} with aliases; {rule.caught} links caught")
    assert (rule.kind, rule.target, rule.state) == (AliasKind.HOST, new, AliasState.IN_FORCE)
    assert before == 140
    assert asked < before / 2
    assert crawled.traps["shop-0.test"].found == shop.real_pages
    assert not crawled.audit.violations


def test_a_maze_of_sessions_ends_without_being_a_trap(tmp_path: Path, say: Say) -> None:
    """T3, D4: what made its URLs endless is taken out of them, so that it is crawled whole and comes to an end."""
    crawled = crawl_of(tmp_path, UNTRAPPED, SessionMaze())
    figures = crawled.traps["maze-0.test"]
    say(f"{figures.requests} requests for {figures.real_pages} pages, over after {crawled.summary.seconds:.0f} s")
    assert crawled.summary.stopped_by is StoppedBy.DONE
    assert crawled.summary.remaining == 0
    assert figures.found == figures.real_pages
    assert ("maze-0.test", "*?visit") in rules_of(crawled)


def test_2000_honest_pages_teach_no_alias(tmp_path: Path, say: Say) -> None:
    """D4: no rule on a web in which parameters mean something, redirects lead elsewhere and canonicals lie."""
    web = SimulatedWeb(replace(WebSpec.standard(5), pages=3000))
    crawled = simulate(web, tmp_path / "crawl", PATIENT)
    write_stored(crawled.out, PATIENT)
    done = {web.identify(event.url) for event in crawled.recorder.events if event.is_page()}
    wanted = web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    say(f"{len(wanted)} pages wanted, {len(done)} stored, {len(rules_of(crawled))} rules")
    assert len(wanted) > 2000
    assert wanted <= done
    assert rules_of(crawled) == {}
    assert crawled.summary.refused.get("alias", 0) == 0

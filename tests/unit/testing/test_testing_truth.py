from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nephila.testing.demo import demo_spec
from nephila.testing.web import Expect, Fault, RobotsKind, Role, SimulatedWeb, Truth, WalkPolicy, WebSpec

SPECS = {
    "standard": WebSpec.standard(1),
    "another seed": WebSpec(20_261, hosts=25, pages=600),
    "another port": WebSpec(5, hosts=20, pages=500, port=8731),
    "many small hosts": WebSpec(3, hosts=200, pages=500),
    "few large hosts": WebSpec(4, hosts=3, pages=500),
    "demo": demo_spec(),
}
LAST_STATUS = {
    Expect.PAGE: {200},
    Expect.RECOVERS: {200},
    Expect.DOCUMENT: {200},
    Expect.NOT_FOUND: {404, 410},
    Expect.SERVER_ERROR: {500},
    Expect.REDIRECT: {301, 302, 303, 307, 308},
    Expect.LOOP: {301, 302, 303, 307, 308},
}


@pytest.fixture(scope="module")
def standard() -> SimulatedWeb:
    return SimulatedWeb(WebSpec.standard(1))


@pytest.fixture(scope="module")
def truth(standard: SimulatedWeb) -> Truth:
    return standard.truth()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_naive_crawler_finds_exactly_the_truth(spec: WebSpec, naive_crawler: Callable[..., Any]) -> None:
    web = SimulatedWeb(spec)
    truth, found = web.truth(), naive_crawler(web).crawl(web.seeds())
    assert set(found) == set(truth.pages)
    for url, page in truth.pages.items():
        if page.expect is Expect.NEVER:
            assert found[url].fault in (Fault.RESET, Fault.HANG)
        elif page.expect is Expect.CUT:
            assert found[url].fault is not None
        else:
            assert found[url].statuses[-1] in LAST_STATUS[page.expect], page
        assert (len(found[url].statuses) > 1) >= (page.expect is Expect.RECOVERS), page
        assert found[url].body == (web.expected_body(url) if found[url].body is not None else None)
        assert (web.expected_body(url) is None) == (found[url].body is None), page


def test_another_agent_finds_what_robots_gives_to_others(naive_crawler: Callable[..., Any]) -> None:
    web = SimulatedWeb(WebSpec(1, hosts=25, pages=400))
    truth, others = web.truth(), web.truth("SomebodyElse")
    assert set(naive_crawler(web, "SomebodyElse").crawl(web.seeds())) == set(others.pages)
    hosts = {host.name: host.robots for host in web.hosts}
    gained = {hosts[page.host] for url, page in others.pages.items() if url not in truth.pages}
    lost = {hosts[page.host] for url, page in truth.pages.items() if url not in others.pages}
    assert RobotsKind.BANNED in gained
    assert RobotsKind.OURS in lost


def test_duplicates_serve_one_body_and_nothing_else_does(standard: SimulatedWeb, truth: Truth) -> None:
    by_digest = defaultdict(set)
    for url in truth.urls(Expect.PAGE, Expect.RECOVERS):
        by_digest[hashlib.sha256(standard.expected_body(url) or b"").digest()].add(url)
    same = {frozenset(urls) for urls in by_digest.values() if len(urls) > 1}
    assert same == set(truth.duplicates())
    hosts = [{truth.pages[url].host for url in family} for family in same]
    assert any(len(names) == 1 for names in hosts)
    assert any(len(names) > 1 for names in hosts)


def test_the_standard_web_has_everything(standard: SimulatedWeb, truth: Truth) -> None:
    unmet = {Role.PDF, Role.PNG, Role.HIDDEN, Role.EXCLUDED, Role.NEAR}
    assert {page.role for page in truth.pages.values()} == set(Role) - unmet
    assert set(truth.refused.values()) == {
        *("robots", "robots_unavailable", "unreachable", "nofollow", "excluded", "extension", "hops")
    }
    assert {host.robots for host in standard.hosts} == set(RobotsKind)
    assert len(truth.pages) + len(truth.refused) > 1900
    failing = truth.urls(Expect.NOT_FOUND, Expect.SERVER_ERROR, Expect.RECOVERS, Expect.CUT, Expect.NEVER)
    assert 0.04 < len(failing) / len(truth.pages) < 0.065


def test_scope_keeps_the_walk_at_home(standard: SimulatedWeb) -> None:
    sub = next(host for host in standard.hosts if host.open and host.name == f"www.{host.domain}")
    seed = f"http://{sub.name}/"
    host = standard.truth(seeds=[seed], policy=WalkPolicy(scope="host"))
    domain = standard.truth(seeds=[seed], policy=WalkPolicy(scope="domain"))
    assert {page.host for page in host.pages.values()} == {sub.name}
    assert {page.host for page in domain.pages.values()} >= {sub.name, sub.domain}
    assert {page.host.endswith(sub.domain) for page in domain.pages.values()} == {True}


def test_each_rule_of_the_policy_opens_what_it_kept_closed() -> None:
    web = SimulatedWeb(WebSpec(1, hosts=25, pages=500))
    truth = web.truth()

    def gained(**changes: Any) -> set[str]:
        policy = replace(WalkPolicy(), **changes)
        more = web.truth(policy=policy)
        assert set(more.pages) >= set(truth.pages)
        return {truth.refused.get(url, "") for url in set(more.pages) - set(truth.pages)}

    assert "nofollow" in gained(obey_nofollow=False)
    assert gained(builtin_excludes=False) == {"excluded"}
    assert gained(skipped_extensions=()) == {"extension"}
    assert "hops" in gained(max_hops=20)
    assert {"robots", "robots_unavailable"} <= gained(obey_robots=False)


def test_who_does_not_wait_for_a_busy_robots_txt_misses_its_host(standard: SimulatedWeb, truth: Truth) -> None:
    hasty = standard.truth(policy=WalkPolicy(patient=False))
    missed = {page.host for url, page in truth.pages.items() if url not in hasty.pages}
    busy = {host.name for host in standard.hosts if host.robots is RobotsKind.BUSY}
    assert missed & busy
    assert not any(page.host in busy for page in hasty.pages.values())


def test_depth_counts_links_and_not_redirects() -> None:
    web = SimulatedWeb(WebSpec(9, hosts=4, pages=400))
    near = web.truth(policy=WalkPolicy(max_depth=1))
    assert {page.depth for page in near.pages.values()} == {0, 1}
    pages = web.truth().pages
    landed = [url for url in pages if "/landed/" in url]
    assert landed
    for url in landed:
        origin, _, number = url.removesuffix(".html").partition("/landed/")
        assert pages[url].depth == pages[f"{origin}/go/{number.rpartition('-')[2]}"].depth

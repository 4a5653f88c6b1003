"""Whole crawls of the simulated web under virtual time, held against what the web itself knows to be true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate, standard_web

from nephila.model.events import EventKind
from nephila.pipeline.notfound import PROBE_MARK
from nephila.testing.web.truth import Expect

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"web-{seed}")
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """One crawl of a standard web, looked at by several tests."""
    return simulate(standard_web(request.param), tmp_path_factory.mktemp("sim") / "crawl")


def asked_for(crawled: Simulated) -> Counter[str]:
    """How often each page was asked for, by its identity; robots.txt apart."""
    urls = (f"http://{sent.host}{sent.target}" for sent in crawled.sent if sent.target != "/robots.txt")
    return Counter(identity for identity in map(crawled.web.identify, urls) if identity is not None)


def test_every_reachable_allowed_url_is_asked_for_and_no_other(crawled: Simulated, say: Callable[[str], None]) -> None:
    """F2, S2, P1, X1, U1, H2: the crawl asks for exactly what is reachable and allowed."""
    truth = crawled.web.truth("Nephila")
    asked = set(asked_for(crawled))
    say(f"{len(asked)} pages asked for, {len(truth.pages)} true, {len(truth.refused)} refused")
    assert asked == truth.urls()


def test_every_page_that_can_be_had_is_stored_once(crawled: Simulated) -> None:
    """F2, D1, H5: pages that answer, at once or after some retries, are completed exactly once."""
    truth = crawled.web.truth("Nephila")
    done = Counter(crawled.web.identify(event.url) for event in crawled.recorder.events if event.is_page())
    wanted = truth.urls(Expect.PAGE, Expect.RECOVERS)
    assert {url for url in wanted if done[url] != 1} == set()
    others = {url for url in done if url not in wanted}
    assert others <= truth.urls(Expect.CUT)


def test_nothing_disallowed_is_requested(crawled: Simulated) -> None:
    """P1: what robots.txt forbids is never asked for."""
    forbidden = crawled.web.truth("Nephila").forbidden()
    assert forbidden, "this web forbids something"
    assert not forbidden & set(asked_for(crawled))


def test_the_auditor_on_the_servers_side_finds_nothing(crawled: Simulated, say: Callable[[str], None]) -> None:
    """P1, P2, P3, P6: no two requests at once or too close, robots.txt first, nothing twice, an honest agent."""
    say(f"{crawled.audit.requests} requests to {len(crawled.audit.hosts)} hosts audited")
    assert crawled.audit.requests > 1500
    assert not crawled.audit.violations


def test_redirect_loops_and_long_chains_end(crawled: Simulated, say: Callable[[str], None]) -> None:
    """T6, H2: loops are noticed on exact spellings, chains end after ten hops."""
    truth = crawled.web.truth("Nephila")
    reasons = Counter(event.reason for event in crawled.recorder.events if event.kind is EventKind.TRAP)
    say(str(dict(reasons)))
    assert truth.urls(Expect.LOOP)
    assert reasons["redirect_loop"] > 0


def test_failures_are_typed_and_given_up_after_three_retries(crawled: Simulated) -> None:
    """H5, F2, F9: what never answers ends as a dead letter, with its kind."""
    truth = crawled.web.truth("Nephila")
    letters = {crawled.web.identify(url) for url in crawled.recorder.urls(EventKind.DEAD_LETTER)}
    assert truth.urls(Expect.NEVER, Expect.SERVER_ERROR) <= letters
    asked = asked_for(crawled)
    assert {asked[url] for url in truth.urls(Expect.SERVER_ERROR)} == {4}


def test_duplicates_are_found(crawled: Simulated) -> None:
    """D2: the second copy of a content is known for one."""
    copies = sum(len(group) - 1 for group in crawled.web.truth("Nephila").duplicates())
    assert crawled.summary.duplicates >= copies > 0


def order_of(crawled: Simulated) -> list[tuple[str, str]]:
    """What was asked for in order; the name of a page that cannot exist is a secret of each crawl."""
    return [(sent.host, sent.target.partition(PROBE_MARK)[1] or sent.target) for sent in crawled.sent]


@pytest.mark.parametrize(
    "crawled",
    [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[1:])],
    indirect=True,
    ids=lambda seed: f"web-{seed}",
)
def test_the_same_web_is_crawled_in_the_same_order_twice(crawled: Simulated, tmp_path: Path) -> None:
    """F6: under virtual time the same input gives the same order."""
    again = simulate(standard_web(crawled.web.spec.seed), tmp_path / "again")
    assert order_of(again) == order_of(crawled)


def test_with_one_exchange_at_a_time_timing_cannot_change_the_order(tmp_path: Path) -> None:
    """F6: one exchange at a time gives the same order, however slow the answers are."""
    web = standard_web(4)
    single = replace(
        PATIENT, fetch=replace(PATIENT.fetch, concurrency=1), limits=replace(PATIENT.limits, max_pages=300)
    )
    slower = replace(web.spec, timing=replace(web.spec.timing, latency_ms=web.spec.timing.latency_ms + 40))
    first = simulate(web, tmp_path / "first", single)
    second = simulate(type(web)(slower), tmp_path / "second", single)
    assert first.summary.pages == second.summary.pages == 300
    assert order_of(first) == order_of(second)

"""T8: every refusal is explained: which rule, when, from which page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import PLAIN, SEGMENT, SETTINGS, Bench, bench, run, urls

from nephila.model.outcome import Dead, DeferReason, Deferred, Dropped, Release, Retry, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.settings import BudgetSettings
from nephila.model.task import Candidate, Pace, Refusal
from nephila.testing.clock import SIMULATION_START_MS
from nephila.testing.contracts.frontier import addresses

HOME, URL = "https://a.test/", "https://a.test/1"
SINGLE = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1))


async def refused_by_scope(one: Bench) -> None:
    (lease,) = await one.claim()
    refusal = Refusal(addresses(URL)[0], "excluded", "/login")
    ends = [Settlement(lease.tasks[0], one.done(), (), [refusal])]
    await one.frontier.settle(lease.token, ends, Release(0, Pace(0)))


async def link(one: Bench) -> None:
    assert await one.fetch(links=[URL]) == [HOME]


async def blocked(one: Bench) -> None:
    await one.frontier.block(Block("https://a.test/1", "asked us to"))
    await link(one)


async def blocked_later(one: Bench) -> None:
    await link(one)
    await one.frontier.block(Block("https://a.test/1", "asked us to"))
    assert await one.fetch() == []


async def too_deep(one: Bench) -> None:
    await one.frontier.set_policy("a.test", DomainPolicy(max_depth=0))
    await link(one)


async def paused(one: Bench) -> None:
    await link(one)
    await one.frontier.set_policy("a.test", DomainPolicy(paused=True))
    assert await one.fetch() == []


async def after_hours(one: Bench) -> None:
    await link(one)
    await one.frontier.set_policy("a.test", DomainPolicy(hours=((9, 17),)))
    assert await one.fetch() == []


async def host_blocked(one: Bench) -> None:
    await link(one)
    await one.frontier.block(Block("a.test", "asked us to"))
    assert await one.fetch() == []


async def over_budget(one: Bench) -> None:
    await link(one)


async def forbidden_by_robots(one: Bench) -> None:
    await link(one)
    assert await one.fetch(Dropped("robots", "Disallow: /1")) == [URL]


async def given_up(one: Bench) -> None:
    await link(one)
    assert await one.fetch(Dead("tls", "expired")) == [URL]


async def retried(one: Bench) -> None:
    await link(one)
    assert await one.fetch(Retry(5000, "timeout", "no answer")) == [URL]


async def deferred(one: Bench) -> None:
    await link(one)
    assert await one.fetch(Deferred(5000, DeferReason.ADDRESS)) == [URL]


KINDS: list[tuple[Callable[[Bench], Awaitable[None]], tuple[str, str, str]]] = [
    (refused_by_scope, ("refused", "excluded", "/login")),
    (blocked, ("refused", "blocked", "https://a.test/1: asked us to")),
    (blocked_later, ("dropped", "blocked", "https://a.test/1: asked us to")),
    (too_deep, ("refused", "policy_depth", "depth 1, the policy of a.test allows 0")),
    (paused, ("queued", "paused", "")),
    (after_hours, ("queued", "hours", "")),
    (host_blocked, ("queued", "blocked", "")),
    (over_budget, ("parked", "over_budget", "")),
    (forbidden_by_robots, ("dropped", "robots", "Disallow: /1")),
    (given_up, ("dead_letter", "tls", "expired")),
    (retried, ("delayed", "retry", "timeout: no answer")),
    (deferred, ("delayed", "address_busy", "")),
]


@pytest.mark.parametrize(("refuse", "wanted"), KINDS, ids=[kind.__name__ for kind, _ in KINDS])
def test_a_story_tells_the_rule_the_time_and_the_page(
    tmp_path: Path, refuse: Callable[[Bench], Awaitable[None]], wanted: tuple[str, str, str]
) -> None:
    """T8: of each kind of refusal; from a page that was fetched ten seconds after the crawl began."""
    policy = replace(SINGLE, budget=BudgetSettings(first_urls=1, urls_per_page=0)) if refuse is over_budget else SINGLE

    async def main() -> None:
        async with bench(tmp_path, policy) as one:
            await one.admit(HOME)
            one.clock.advance(10)
            await refuse(one)
            story = one.story(URL)
            assert (story.state, story.reason) == wanted[:2]
            if story.state != "parked":
                assert story.detail == wanted[2]
            assert story.via == HOME
            assert max(story.admitted_at, story.settled_at) >= SIMULATION_START_MS + 10_000

    run(main())


def test_a_url_that_moved_to_a_better_place_still_tells_where_it_was_found(tmp_path: Path) -> None:
    """T8, F6: found nearer to a seed it goes earlier; the page and the time of its discovery stay the first ones."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.admit(HOME)
            found = [Candidate(address, 5) for address in addresses(URL)]
            (lease,) = await one.claim()
            await one.settle(lease, [one.done()], 0, found)
            before = one.story(URL)
            one.clock.advance(20_000)
            await one.frontier.admit([found[0]._replace(depth=2)])
            story = one.story(URL)
            assert (before.depth, story.depth) == (5, 2)
            assert (story.via, story.admitted_at) == (HOME, before.admitted_at)
            (lease,) = await one.claim()
            assert lease.tasks[0].via == HOME  # type: ignore[union-attr]

    run(main())


def test_a_refused_url_that_is_admitted_later_tells_its_new_story(tmp_path: Path) -> None:
    """T8: a refusal is no life sentence; and what was never met has no story."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.frontier.admit([], [Refusal(address, "scope") for address in addresses(*urls(2))])
            await one.admit(urls(1)[0])
            assert [one.state(url) for url in urls(2)] == ["queued", "refused"]
            (stranger,) = addresses("https://a.test/never")
            assert one.frontier.story("a.test", stranger.fingerprint) is None
            await one.fetch()
            await one.frontier.confirm(SEGMENT, one.end)
            assert one.state(urls(1)[0]) == "completed"

    run(main())

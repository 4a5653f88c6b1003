"""R4, T7: what a person decides while a crawl runs takes effect at the next claim, wherever a host stands by then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import DAY_S, HOUR_S, PLAIN, Bench, bench, run, urls

from nephila.frontier.embedded.holding_off import opens_in
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.policy import Block, DomainPolicy, Tier
from nephila.model.settings import BudgetSettings, RecrawlSettings
from nephila.model.task import Candidate
from nephila.testing.contracts.frontier import addresses

A, B = "https://a.test/", "https://b.test/"
WHERE = ["before it is met", "waiting", "ready", "leased", "parked"]
PAUSE = DomainPolicy(paused=True)


async def bring(one: Bench, where: str) -> None:
    """Bring a.test into a place; b.test is there so that a claim has something else to do."""
    if where == "before it is met":
        return
    await one.admit(*urls(3))
    if where == "ready":
        assert await one.claim(0) == []
        assert one.frontier.snapshot().hosts_ready == 1
    elif where == "leased":
        (lease,) = await one.claim(1)
        assert lease.host == "a.test"
        one.leased = lease  # type: ignore[attr-defined]
    elif where == "parked":
        await one.frontier.set_policy("a.test", PAUSE)
        assert await one.claim() == []
        assert dict(one.frontier.snapshot().waiting_for) == {"paused": 3}


async def after(one: Bench, where: str) -> None:
    """What happens once the order was given: the page is met, or the lease ends."""
    if where == "before it is met":
        await one.admit(*urls(3))
    elif where == "leased":
        await one.settle(one.leased, [])  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", WHERE)
def test_a_paused_domain_is_not_claimed_until_it_is_resumed(tmp_path: Path, where: str) -> None:
    """R4, F2: pause and resume; nothing is lost, nothing else is held up, and `why` tells."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await bring(one, where)
            await one.frontier.set_policy("a.test", PAUSE)
            await after(one, where)
            await one.admit(B)
            assert await one.fetch() == [B]
            one.clock.advance(DAY_S)
            assert await one.fetch() == []
            assert one.told("https://a.test/0") == ("queued", "paused")
            await one.frontier.set_policy("a.test", None)
            assert sorted(await one.fetch()) == urls(3)

    run(main())


@pytest.mark.parametrize("where", WHERE)
def test_a_lower_depth_drops_what_is_deeper(tmp_path: Path, where: str) -> None:
    """R4, T8: what waits already is dropped when its turn comes, what comes later is refused; both with the rule."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await bring(one, where)
            deep = Candidate(addresses("https://a.test/deep")[0], 3)
            await one.frontier.admit([deep])
            await one.frontier.set_policy("a.test", DomainPolicy(max_depth=2))
            await after(one, where)
            assert sorted(await one.fetch_all()) == urls(3)
            assert one.told("https://a.test/deep") == ("dropped", "policy_depth")
            deeper = Candidate(addresses("https://a.test/deeper")[0], 3)
            assert (await one.frontier.admit([deeper])).added == 0
            story = one.story("https://a.test/deeper")
            assert (story.state, story.reason) == ("refused", "policy_depth")
            assert "allows 2" in story.detail

    run(main())


@pytest.mark.parametrize("where", WHERE)
def test_hours_of_the_day_are_kept_from_the_next_claim_on(tmp_path: Path, where: str) -> None:
    """R4: the clock of these tests begins at midnight UTC; 22 to 4 is over midnight, 6 to 8 is not yet."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await bring(one, where)
            await one.frontier.set_policy("a.test", DomainPolicy(hours=((6, 8),)))
            await after(one, where)
            assert await one.fetch() == []
            assert one.told("https://a.test/0") == ("queued", "hours")
            assert one.frontier.snapshot().next_in_ms == 6 * HOUR_S * 1000
            one.clock.advance(6 * HOUR_S - 1)
            assert await one.fetch() == []
            await one.frontier.set_policy("a.test", DomainPolicy(hours=((22, 6),)))
            assert len(await one.fetch()) == 3, "another order lifts the first at once"

    run(main())


@pytest.mark.parametrize("where", ["before it is met", "waiting", "ready", "leased"])
def test_the_rate_of_a_policy_binds_at_the_next_claim(tmp_path: Path, where: str) -> None:
    """R4, P2: raised, the host rests the longer delay from its last answer on; and the lease names the base delay."""

    async def main() -> None:
        polite = replace(PLAIN, base_delay_ms=1000)
        async with bench(tmp_path, polite) as one:
            await one.admit("https://a.test/first", "https://a.test/second")
            (lease,) = await one.claim()
            await one.settle(lease, [one.done()], 1000)
            one.clock.advance(1.1)
            if where == "ready":
                assert await one.claim(0) == []
            if where == "leased":
                (lease,) = await one.claim()
            await one.frontier.set_policy("a.test", DomainPolicy(delay_s=30.0))
            if where == "leased":
                await one.settle(lease, [])
                one.clock.advance(1)
            assert await one.claim() == [], "it was asked a second ago"
            one.clock.advance(30)
            (lease,) = await one.claim()
            assert lease.pace.base_ms == 30_000
            await one.frontier.set_policy("a.test", None)
            await one.settle(lease, [], 0)
            (lease,) = await one.claim()
            assert lease.pace.base_ms == -1

    run(main())


def test_user_agent_and_rate_are_told_with_the_lease(tmp_path: Path) -> None:
    """R4, P6: whoever asks knows as whom and how fast; of other domains nothing changes."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.admit(A, "https://www.a.test/", B)
            await one.frontier.set_policy("a.test", DomainPolicy(user_agent="Other/1.0", delay_s=2.5))
            leases = {lease.host: lease for lease in await one.claim()}
            for host in ("a.test", "www.a.test"):
                assert (leases[host].user_agent, leases[host].pace.base_ms) == ("Other/1.0", 2500)
            assert (leases["b.test"].user_agent, leases["b.test"].pace.base_ms) == ("", -1)

    run(main())


def test_a_tier_moves_urls_between_classes(tmp_path: Path) -> None:
    """R4, R1: what is met under the policy scores by it."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            for tier, domain in ((Tier.LOW, "a.test"), (Tier.HIGH, "b.test")):
                await one.frontier.set_policy(domain, DomainPolicy(tier=tier))
            await one.admit(A, B, "https://c.test/")
            levels = [one.story(url).level for url in (A, "https://c.test/", B)]
            assert levels == sorted(levels, reverse=True)
            assert levels[0] > levels[2]

    run(main())


def test_a_recrawl_interval_of_a_policy_holds_for_the_next_visit(tmp_path: Path) -> None:
    """R4, R2: a fixed interval instead of the learned one."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, recrawl=SimpleRecrawl(RecrawlSettings()))) as one:
            await one.admit(A)
            await one.frontier.set_policy("a.test", DomainPolicy(recrawl_s=120.0))
            assert await one.fetch() == [A]
            assert one.story(A).due_in_ms == 120_000
            one.clock.advance(121)
            assert await one.fetch() == [A]

    run(main())


def test_a_better_opinion_of_a_domain_lets_parked_urls_go(tmp_path: Path) -> None:
    """R4, F5: quality is a factor on what was earned, and counts although the host has nothing left to fetch."""

    async def main() -> None:
        budget = BudgetSettings(first_urls=2, urls_per_page=1)
        async with bench(tmp_path, replace(PLAIN, budget=budget)) as one:
            await one.frontier.set_policy("a.test", DomainPolicy(quality=0.0))
            await one.admit(*urls(8))
            assert len(await one.fetch_all()) == 1, "the least that a host may have"
            assert dict(one.frontier.snapshot().parked) == {"over_budget": 7}
            await one.frontier.set_policy("a.test", None)
            assert len(await one.fetch_all()) > 1

    run(main())


def test_policies_outlive_a_restart_and_can_be_listed(tmp_path: Path) -> None:
    """R4, F10: durable; None takes one back."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            policy = DomainPolicy(delay_s=2.0, hours=((1, 5), (20, 22)), tier=Tier.NEWS, paused=True, quality=0.5)
            await one.frontier.set_policy("a.test", policy)
            await one.admit(A)
            await one.reopen()
            assert one.frontier.view.policies() == {"a.test": policy}
            assert one.frontier.view.policy("a.test") == policy
            assert await one.fetch() == []
            await one.frontier.set_policy("a.test", None)
            await one.reopen()
            assert one.frontier.view.policies() == {}
            assert await one.fetch() == [A]

    run(main())


# Hours, purely

MIDNIGHT_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""


@pytest.mark.parametrize(
    ("hours", "at", "wanted_s"),
    [
        ((), 13 * 3600, 0),
        (((8, 18),), 8 * 3600, 0),
        (((8, 18),), 17 * 3600 + 3599, 0),
        (((8, 18),), 18 * 3600, 14 * 3600),
        (((8, 18),), 7 * 3600 + 1800, 1800),
        (((22, 4),), 23 * 3600, 0),
        (((22, 4),), 3 * 3600, 0),
        (((22, 4),), 4 * 3600 + 1, 18 * 3600 - 1),
        (((1, 2), (5, 6)), 2 * 3600, 3 * 3600),
        (((5, 5),), 12 * 3600, 0),
    ],
    ids=str,
)
def test_the_time_until_a_domain_opens(hours: tuple[tuple[int, int], ...], at: int, wanted_s: int) -> None:
    """R4: from the first hour up to, not including, the second, over midnight when that is smaller."""
    assert opens_in(DomainPolicy(hours=hours), MIDNIGHT_S + at) == wanted_s


# Blocks


@pytest.mark.parametrize("where", ["before it is met", "waiting", "ready", "leased"])
@pytest.mark.parametrize("pattern", ["a.test", "www.a.test", "https://www.a.test/private"])
def test_a_block_holds_until_it_is_taken_back(tmp_path: Path, where: str, pattern: str) -> None:
    """T7: a domain with all its hosts, one host, or URLs that begin so; with the reason that was given."""
    home, secret, other = "https://www.a.test/", "https://www.a.test/private/1", "https://a.test/"
    everything = [home, secret, other]
    gone = {"a.test": everything, "www.a.test": [home, secret], "https://www.a.test/private": [secret]}[pattern]
    left = [url for url in everything if url not in gone]

    async def main() -> None:
        async with bench(tmp_path) as one:
            leases = []
            if where != "before it is met":
                await one.admit(*everything)
            if where == "ready":
                assert await one.claim(0) == []
            if where == "leased":
                leases = await one.claim()
            await one.frontier.block(Block(pattern, "asked us to"))
            for lease in leases:
                await one.settle(lease, [])
            if where == "before it is met":
                await one.admit(*everything)
            assert sorted(await one.fetch_all()) == sorted(left)
            for url in gone:
                state, reason = one.told(url)
                assert (state, reason) == ({"before it is met": "refused"}.get(where, state), "blocked")
                if state != "queued":
                    assert one.story(url).detail == f"{pattern}: asked us to"
            assert [block.pattern for block in one.frontier.view.blocks()] == [pattern]
            assert await one.frontier.unblock(pattern)
            assert not await one.frontier.unblock(pattern)
            if where == "before it is met":
                await one.admit(*everything)
            back = [url for url in gone if where == "before it is met" or "private" not in pattern]
            assert sorted(await one.fetch_all()) == sorted(back)

    run(main())


def test_of_two_blocks_one_taken_back_leaves_the_other(tmp_path: Path) -> None:
    """T7, F10: and both outlive a restart."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.admit(A, B)
            await one.frontier.block(Block("a.test", "one"))
            await one.frontier.block(Block("https://a.test/", "two"))
            await one.reopen()
            assert await one.fetch() == [B]
            assert await one.frontier.unblock("a.test")
            assert await one.fetch() == []
            assert one.told(A) == ("dropped", "blocked")

    run(main())

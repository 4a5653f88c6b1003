"""S4: until so many registrable domains were fetched, only what would add one is queued; then everything comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from frontier_bench import PLAIN, Bench, bench, run, urls

from nephila.model.outcome import Dead, Retry
from nephila.model.policy import Block
from nephila.model.settings import BudgetSettings
from nephila.urls import registrable_domain


def domains_of(fetched: list[str]) -> list[str]:
    """The registrable domain of each URL."""
    return [registrable_domain(url.split("/")[2]) for url in fetched]


def put_off(one: Bench) -> int:
    """URLs that wait until enough domains are known."""
    return one.frontier.snapshot().parked.get("coverage", 0)


def test_the_first_n_fetches_are_n_domains_and_then_the_rest_comes_back(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """S4: 20 domains of five pages on two hosts each, 15 wanted: no fetch is wasted, and none is forgotten."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=15)) as one:
            for number in range(20):
                await one.admit(*urls(3, f"d{number}.test"), *urls(2, f"www.d{number}.test"))
            assert put_off(one) == 80
            assert one.told("https://d0.test/2") == ("parked", "coverage")
            fetched: list[str] = []
            while len(fetched) < 15:
                fetched += await one.fetch(hosts=1)
            say(f"{len(set(domains_of(fetched)))} domains with {len(fetched)} fetches")
            assert len(set(domains_of(fetched))) == len(fetched) == 15
            assert one.frontier.snapshot().domains == 15
            assert one.frontier.snapshot().next_in_ms is not None
            fetched += await one.fetch_all()
            assert len(set(fetched)) == len(fetched) == 100
            assert put_off(one) == 0

    run(main())


def test_links_to_known_domains_wait_and_those_to_new_ones_do_not(tmp_path: Path) -> None:
    """S4: applied to what pages bring, before it is queued."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=3)) as one:
            await one.admit("https://a.test/")
            links = [*urls(3), *urls(2, "b.test"), *urls(2, "www.b.test")]
            assert await one.fetch(links=links) == ["https://a.test/"]
            assert put_off(one) == 6
            assert domains_of(await one.fetch()) == ["b.test"]
            assert await one.fetch() == []
            await one.admit("https://c.test/")
            assert len(await one.fetch()) == 1
            assert len(await one.fetch_all()) == 6

    run(main())


def test_a_domain_whose_only_url_fails_is_tried_again(tmp_path: Path) -> None:
    """S4: by another of its URLs, as often as it takes; a retry is no failure yet."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=5)) as one:
            await one.admit(*urls(4))
            assert len(await one.fetch(Retry(1000, "timeout"))) == 1
            assert await one.fetch() == []
            one.clock.advance(2)
            assert len(await one.fetch(Dead("timeout"))) == 1
            assert len(await one.fetch(one.done(404))) == 1
            assert len(await one.fetch()) == 1
            assert await one.fetch() == [], "the domain is known now"
            assert put_off(one) == 1

    run(main())


def test_another_host_of_a_domain_is_tried_where_the_first_fails(tmp_path: Path) -> None:
    """S4: a domain counts, not a host: where www does not answer, the bare name may."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=5)) as one:
            await one.admit("https://www.a.test/")
            await one.admit("https://a.test/")
            assert await one.fetch(Dead("connect")) == ["https://www.a.test/"]
            assert await one.fetch() == ["https://a.test/"]

    run(main())


def test_a_url_that_is_dropped_unasked_makes_room_for_another(tmp_path: Path) -> None:
    """S4, T7: a domain is not given up because the one URL that was chosen of it is blocked."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=5)) as one:
            await one.admit("https://a.test/private")
            await one.admit("https://a.test/open")
            await one.frontier.block(Block("https://a.test/private", "asked us to"))
            fetched = await one.fetch() + await one.fetch()
            assert fetched == ["https://a.test/open"]

    run(main())


def test_what_comes_back_is_held_against_the_budget_of_its_host(tmp_path: Path) -> None:
    """S4, F5: then the normal policy takes over, budgets included."""

    async def main() -> None:
        poor = BudgetSettings(first_urls=5, urls_per_page=0)
        async with bench(tmp_path, replace(PLAIN, target_domains=1, budget=poor)) as one:
            await one.admit(*urls(20))
            assert len(await one.fetch_all()) == 5
            assert dict(one.frontier.snapshot().parked) == {"over_budget": 15}

    run(main())


def test_what_was_put_off_is_announced_once_enough_domains_are_known(tmp_path: Path) -> None:
    """S4, F8: a crawl ends when nothing can be claimed any more; what comes off the shelves can be."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=1)) as one:
            await one.admit(*urls(4))
            assert len(await one.fetch()) == 1
            assert one.frontier.snapshot().next_in_ms == 0
            assert len(await one.fetch_all()) == 3
            assert one.frontier.snapshot().next_in_ms is None

    run(main())


def test_a_crawl_that_goes_on_without_the_wish_for_coverage_takes_the_rest(tmp_path: Path) -> None:
    """S4, F10: or with a smaller one that is reached already."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, target_domains=9)) as one:
            await one.admit(*urls(4))
            assert len(await one.fetch_all()) == 1
            assert put_off(one) == 3
            await one.reopen(PLAIN)
            assert len(await one.fetch_all()) == 3

    run(main())

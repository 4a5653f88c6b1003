"""F5: what a host or a domain has not earned is parked, on disk and not dropped, and comes back when it is earned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import PLAIN, SETTINGS, Bench, bench, run, urls

from nephila.frontier import budget
from nephila.frontier.embedded import admission
from nephila.model.settings import BudgetSettings
from nephila.model.task import Candidate, Level
from nephila.testing.contracts.frontier import addresses, candidates

SMALL = BudgetSettings(
    first_urls=5, urls_per_page=2, urls_per_referrer=3, first_hosts=2, hosts_per_useful_host=1, hosts_per_referrer=0
)
SINGLE = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1), budget=SMALL)
POOR = replace(SINGLE, budget=replace(SMALL, urls_per_page=0, hosts_per_useful_host=0))


def waiting(one: Bench) -> int:
    """URLs in the queues."""
    return sum(one.frontier.snapshot().queued.values())


def over(one: Bench) -> int:
    """URLs that are parked because of a budget."""
    return one.frontier.snapshot().parked.get("over_budget", 0)


def test_what_is_over_budget_is_parked_and_told(tmp_path: Path) -> None:
    """F5, T1, T8: known, on disk, and neither queued nor dropped."""

    async def main() -> None:
        async with bench(tmp_path, POOR) as one:
            assert await one.admit(*urls(12)) == 12
            assert (waiting(one), over(one)) == (5, 7)
            assert await one.admit(*urls(12)) == 0, "parked URLs are known"
            states = [one.told(url) for url in urls(12)]
            assert states.count(("parked", "over_budget")) == 7
            assert len(await one.fetch_all()) == 5
            await one.reopen()
            assert over(one) == 7

    run(main())


def test_pages_with_new_content_earn_more_until_all_of_a_good_host_is_fetched(tmp_path: Path) -> None:
    """F5: two further URLs a page: a host that keeps bringing new content is never stopped."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.admit(*urls(40))
            assert len(await one.fetch()) == 1
            assert (waiting(one), over(one)) == (6, 33), "one fetched, two earned"
            fetched = await one.fetch_all()
            assert len(fetched) == 39
            assert over(one) == 0

    run(main())


def test_duplicates_earn_nothing(tmp_path: Path) -> None:
    """F5, D2: content that is known from elsewhere is no proof of worth."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.admit(*urls(40))
            for _ in range(5):
                assert len(await one.fetch(one.done(duplicate=True))) == 1
            assert (waiting(one), over(one)) == (0, 35)
            assert await one.fetch() == []

    run(main())


def test_a_link_from_another_domain_earns_more_and_one_of_its_own_does_not(tmp_path: Path) -> None:
    """F5: other people's word, which a site cannot give itself."""

    async def main() -> None:
        async with bench(tmp_path, POOR) as one:
            await one.admit(*urls(12), "https://c.a.test/")
            while await one.fetch(hosts=1, links=["https://a.test/inside"]):
                pass
            assert one.told("https://a.test/inside") == ("parked", "over_budget")
            assert over(one) == 8
            await one.admit("https://d.test/")
            assert await one.fetch(links=["https://a.test/praised"]) == ["https://d.test/"]
            assert len(await one.fetch_all()) == 3, "so many as a referrer is worth"

    run(main())


def test_a_link_to_a_known_page_is_a_word_for_its_host_too(tmp_path: Path) -> None:
    """F5, R1: most links from elsewhere lead to a home page that is known; its host has earned more all the same."""

    async def main() -> None:
        async with bench(tmp_path, POOR) as one:
            await one.admit(*urls(12))
            assert len(await one.fetch_all()) == 5
            await one.admit("https://d.test/")
            (known,) = [url for url in urls(12) if one.state(url) == "stored_pending"][:1]
            assert await one.fetch(links=[known]) == ["https://d.test/"]
            assert len(await one.fetch_all()) == 3

    run(main())


def test_what_is_remembered_of_referrers_does_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F5, Q3: a host is remembered once, whoever links to it, and hosts up to a bound; no count is lost by that."""
    monkeypatch.setattr(admission, "REFERRED_REMEMBERED", 3)
    praised = [f"https://praised{number}.test/" for number in range(5)]

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.admit(*praised, *(f"https://d{number}.test/" for number in range(40)))
            while await one.fetch(links=praised):
                assert len(one.frontier._tables.referred) <= 3
            marked = {one.frontier._tables.host_key(url[8:-1]) for url in praised}
            counts = one.frontier._group.run_now(
                lambda book: [budget.referrers(book.known_host(key).referrers) for key in marked]
            )
            assert all(30 < count < 60 for count in counts), "44 domains link to each of them"

    run(main())


def test_no_more_than_so_many_urls_of_a_host_are_queued_at_once(tmp_path: Path) -> None:
    """F5, T1: however much it has earned; the rest follows as the queue empties."""

    async def main() -> None:
        rich = replace(SINGLE, budget=BudgetSettings(first_urls=1000, queued_per_host=10))
        async with bench(tmp_path, rich) as one:
            await one.admit(*urls(8))
            await one.admit(*urls(30))
            assert (waiting(one), over(one)) == (10, 20)
            fetched = []
            while found := await one.fetch():
                fetched += found
                assert waiting(one) <= 10
            assert len(fetched) == 30

    run(main())


def test_hosts_that_a_domain_has_not_earned_are_parked_and_taken_on_later(tmp_path: Path) -> None:
    """F5: wildcard DNS mints hosts for ever; a host with three pages of new content earns another one."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            hosts = [f"h{number}.a.test" for number in range(6)]
            for host in hosts:
                await one.admit(*urls(4, host))
            await one.admit("https://b.test/")
            leases = await one.claim()
            assert len(leases) == 3, "two hosts of the domain, and another domain"
            assert over(one) == 16
            for lease in leases:
                await one.settle(lease, [])
            domain = one.frontier.view.domain("a.test")
            assert domain is not None
            assert (domain.hosts, domain.hosts_over) == (2, 4)
            assert one.told(urls(4, hosts[-1])[0]) == ("parked", "over_budget")
            assert len(await one.fetch_all()) == 25, "each of them shows what it is worth, and the next one is taken on"
            domain = one.frontier.view.domain("a.test")
            assert domain is not None
            assert (domain.hosts, domain.hosts_over, domain.useful) == (6, 0, 6)

    run(main())


def test_hosts_that_bring_nothing_new_earn_no_others(tmp_path: Path) -> None:
    """F5: the minting ends where it began."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            for number in range(6):
                await one.admit(*urls(4, f"h{number}.a.test"))
            fetched = []
            while found := await one.fetch(one.done(duplicate=True), hosts=1):
                fetched += found
            assert len(fetched) == 8
            await one.reopen()
            assert await one.claim() == [], "nor does a restart"

    run(main())


def test_a_parked_url_that_somebody_wants_now_is_fetched(tmp_path: Path) -> None:
    """F1, F5: immediate goes before any budget, also where its host has nothing else left to do."""

    async def main() -> None:
        async with bench(tmp_path, POOR) as one:
            await one.admit(*urls(12))
            assert len(await one.fetch_all()) == 5
            (wanted,) = [url for url in urls(12) if one.state(url) == "parked"][:1]
            (address,) = addresses(wanted)
            await one.frontier.admit([Candidate(address, 0, Level.IMMEDIATE)])
            assert one.frontier.snapshot().next_in_ms is not None
            assert await one.fetch() == [wanted]
            assert over(one) == 6

    run(main())


def test_a_host_over_budget_answers_when_somebody_wants_it_now(tmp_path: Path) -> None:
    """F1, F5: a person's word goes before the domain's budget of hosts."""

    async def main() -> None:
        async with bench(tmp_path, POOR) as one:
            for number in range(3):
                await one.admit(f"https://h{number}.a.test/")
            assert len(await one.fetch_all()) == 2
            await one.frontier.admit(candidates("https://h2.a.test/", level=Level.IMMEDIATE))
            assert await one.fetch() == ["https://h2.a.test/"]

    run(main())

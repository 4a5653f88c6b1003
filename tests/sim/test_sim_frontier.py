"""F1, F4, F5, F6, F7, R1, R2, R5, S4, P4, T1, T5: the frontier over hours, days and months of virtual time."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
from frontier_world import DAY_S, Brought, FrontierWorld, play

from nephila.frontier import order
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.outcome import DeferReason, Release, Retry
from nephila.model.settings import BudgetSettings, PrioritySettings, TrapSettings
from nephila.model.task import Candidate, Level, Pace, PageTask

Say = Callable[[str], None]
WEEK_S = 7 * DAY_S


def ordinary(_task: PageTask) -> Brought:
    return Brought()


def shares(counts: Counter[str]) -> dict[str, float]:
    return {name: 100 * count / counts.total() for name, count in counts.items()}


def test_classes_and_supplies_get_their_shares_over_a_long_run(tmp_path: Path, say: Say) -> None:
    """F1, F4, F6: 80/15/5 among the classes and 30/70 between new and due, within two points; immediate goes first."""

    async def story(world: FrontierWorld) -> tuple[Counter[str], Counter[str], int]:
        levels = (Level.HIGH, Level.MEDIUM, Level.LOW)
        # Re-crawls first: fetch some pages of each class once, and let them become due all together.
        for level in levels:
            await world.frontier.admit(
                [
                    world.candidate(f"https://due-{level}-{number}.test/", level=level)
                    for number in range(4_500 if level is Level.HIGH else 900)
                ]
            )
        await world.run(ordinary, pages=6_300)
        world.clock.advance(20 * DAY_S)
        for level in levels:
            await world.frontier.admit(
                [
                    world.candidate(f"https://new-{level}-{number}.test/", level=level)
                    for number in range(4_500 if level is Level.HIGH else 900)
                ]
            )
        await world.admit("https://now.test/", level=Level.IMMEDIATE)
        await world.frontier.claim(0, 300)
        by_class: Counter[str] = Counter()
        by_supply: Counter[str] = Counter()
        first = 0
        for turn in range(6_000):
            # Politeness never stands in the way: each host is asked once and its supply made good by another page.
            world.clock.advance(0.01)
            (lease,) = await world.frontier.claim(1, 300)
            (task,) = lease.tasks
            assert isinstance(task, PageTask)
            if task.level is Level.IMMEDIATE:
                first = turn
                assert turn == 0
            else:
                supply, level, _ = lease.host.split("-")
                by_supply[supply] += 1
                if supply == "new":  # those that were fetched once have the class of their score
                    by_class[level] += 1
            await world.work([lease], ordinary)
        return by_class, by_supply, first

    by_class, by_supply, _ = play(
        tmp_path,
        story,
        # Ageing and the reserve would change the shares: they have tests of their own.
        priority=replace(PrioritySettings(), reserve=0.0, ageing_s=10_000 * DAY_S),
    )
    classes, supplies = shares(by_class), shares(by_supply)
    say(f"classes { ({name: round(share, 1) for name, share in classes.items()}) }, supplies {supplies}")
    assert abs(supplies["new"] - 30) < 2
    assert abs(supplies["due"] - 70) < 2
    new = [classes[str(int(level))] for level in (Level.HIGH, Level.MEDIUM, Level.LOW)]
    assert abs(new[0] - 80) < 2, new
    assert abs(new[1] - 15) < 2, new
    assert abs(new[2] - 5) < 2, new


def test_an_unused_share_goes_to_the_other_supply(tmp_path: Path) -> None:
    """F4: with nothing due, all fetches are for what is new, and the other way round."""

    async def story(world: FrontierWorld) -> tuple[int, int]:
        await world.admit(*(f"https://a{number}.test/" for number in range(50)))
        only_new = await world.run(ordinary, pages=50)
        world.clock.advance(8 * DAY_S)
        only_due = await world.run(ordinary, pages=50)
        return only_new, only_due

    assert play(tmp_path, story) == (50, 50)


def test_waiting_lifts_a_url_linearly_to_the_top_after_thirty_days(tmp_path: Path, say: Say) -> None:
    """F7: class and place of a waiting URL follow from its score and its wait; nothing is touched for it."""
    settings = PrioritySettings()
    step_s = order.step_ms(settings) / 1000
    assert step_s * 100 == settings.ageing_s
    scores = [order.score_at(order.step_for(0, 10), int(day * DAY_S / step_s)) for day in range(0, 31, 3)]
    say(f"a score of 10 after 0, 3, .. 30 days: {scores}")
    assert scores == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100]

    async def story(world: FrontierWorld) -> float:
        # One busy host: fresh URLs of the class high keep coming, a low one waits.
        await world.frontier.admit([world.candidate("https://busy.test/patient", level=Level.LOW)])
        number = 0
        while not any(task.url.endswith("patient") for _, task in world.fetched):
            number += 1
            await world.frontier.admit([world.candidate(f"https://busy.test/urgent-{number}", level=Level.HIGH)])
            await world.run(ordinary, pages=1)
            world.clock.advance(3600)
            assert world.clock.elapsed_s() < 31 * DAY_S
        return world.clock.elapsed_s() / DAY_S

    unfair = replace(settings, low_share=1, high_share=1_000_000, reserve=0.0)
    days = play(tmp_path, story, priority=unfair, recrawl=None)
    say(f"a low URL beside an endless supply of high ones, with no draw to help it, was fetched after {days:.1f} days")
    assert 15 < days < 30  # 65 points of difference are 19.5 days


def test_starving_hosts_get_up_to_a_fifth_oldest_first(tmp_path: Path, say: Say) -> None:
    """F7: when there is more work than can be done, a fifth goes to hosts that have waited a day, oldest first."""

    async def story(world: FrontierWorld) -> tuple[list[str], float, int]:
        await world.admit(*(f"https://poor-{number:03}.test/" for number in range(300)), level=Level.LOW)
        world.clock.advance(DAY_S + 1)
        await world.admit(*(f"https://rich-{number}.test/" for number in range(3_000)), level=Level.HIGH)
        served: list[str] = []
        for _ in range(1_000):
            (lease,) = await world.frontier.claim(1, 300)
            served.append(lease.host)
            await world.work([lease], ordinary)
            world.clock.advance(0.01)
        poor = [host for host in served if host.startswith("poor")]
        return poor, len(poor) / len(served), world.frontier.snapshot().reserved

    poor, share, reserved = play(
        tmp_path, story, priority=replace(PrioritySettings(), high_share=1_000_000, medium_share=1, low_share=1)
    )
    say(f"{100 * share:.1f} % of 1,000 fetches went to starving hosts ({reserved} by the reserve)")
    assert 0.18 <= share <= 0.22
    assert len(set(poor)) == len(poor)


def test_no_host_starves_in_an_overloaded_month(tmp_path: Path, say: Say) -> None:
    """F7, F1: a tenth of the hosts has endless high work, there is time for a fetch in ten minutes: all are served."""
    hosts = 400

    def web(task: PageTask) -> Brought:
        number = int(task.url.rsplit("/", 1)[1] or 0)
        host = task.url.rsplit("/", 1)[0]
        level = Level.HIGH if host.endswith("0.test") else Level.LOW
        return Brought(links=[candidates[0](f"{host}/{number + 1}", level)])

    candidates: list[Callable[[str, Level], Candidate]] = []

    async def story(world: FrontierWorld) -> tuple[int, float]:
        candidates.append(lambda url, level: world.candidate(url, 1, level))
        for number in range(hosts):
            await world.admit(f"https://site-{number}.test/0", level=Level.HIGH if number % 10 == 0 else Level.LOW)
        await world.run(web, days=30, hosts_at_once=1, seconds_per_claim=600)
        last: dict[str, float] = dict.fromkeys((f"https://site-{number}.test" for number in range(hosts)), 0.0)
        worst = 0.0
        for at, task in world.fetched:
            host = task.url.rsplit("/", 1)[0]
            worst = max(worst, at - last[host])
            last[host] = at
        return len({task.url.rsplit("/", 1)[0] for _, task in world.fetched}), worst / DAY_S

    served, worst = play(tmp_path, story, delay_s=60)
    say(f"{served} of {hosts} hosts served in 30 days of 144 fetches each, the longest wait was {worst:.1f} days")
    assert served == hosts
    assert worst < 20


def test_budgets_start_small_and_are_earned_by_new_content_and_by_links(tmp_path: Path, say: Say) -> None:
    """F5: a host that brings nothing new stops at its first budget, one that does goes on; nothing is lost."""
    budget = replace(BudgetSettings(), first_urls=40, urls_per_page=3, urls_per_referrer=20)

    def web(task: PageTask) -> Brought:
        host, _, number = task.url.removeprefix("https://").partition("/")
        links: Sequence[Candidate] = ()
        if number == "index":
            links = [add(f"https://{host}/{page}", 1) for page in range(400)]
        if host == "friend.test":
            return Brought(links=[add("https://copies.test/index", 1)])
        return Brought(links=links, text=b"same old" if host == "copies.test" and number != "index" else b"")

    adders: list[FrontierWorld] = []

    def add(url: str, depth: int) -> Candidate:
        return adders[0].candidate(url, depth)

    async def story(world: FrontierWorld) -> tuple[Counter[str], dict[str, int], int]:
        adders.append(world)
        await world.admit("https://useful.test/index", "https://copies.test/index")
        await world.run(web, days=2)
        by_host = Counter(task.url.split("/")[2] for _, task in world.fetched)
        parked = dict(world.frontier.snapshot().parked)
        before = by_host["copies.test"]
        await world.admit("https://friend.test/")
        await world.run(web, days=2)
        after = sum(task.url.split("/")[2] == "copies.test" for _, task in world.fetched)
        return by_host, parked, after - before

    blind = replace(TrapSettings(), slow_after=10**6, stop_after=10**6)  # such a host is a trap as well
    by_host, parked, earned = play(tmp_path, story, budget=budget, traps=blind)
    say(f"fetched of 401 each: {dict(by_host)}, parked {parked}; a link from another domain brought {earned} more")
    assert by_host["useful.test"] == 401
    assert by_host["copies.test"] < 100
    assert parked[DeferReason.BUDGET] == 401 - by_host["copies.test"]
    assert earned >= 15


def test_a_section_that_is_full_is_parked_and_comes_back(tmp_path: Path, say: Say) -> None:
    """T1: no more than so many URLs under one first path segment wait in the queue; nothing is dropped."""
    budget = replace(BudgetSettings(), first_urls=10**6, queued_per_prefix=100)

    async def story(world: FrontierWorld) -> tuple[dict[str, int], int, int]:
        await world.admit(*(f"https://a.test/large/{number}" for number in range(60)))
        await world.admit(*(f"https://a.test/large/{number}" for number in range(60, 400)))
        await world.admit(*(f"https://a.test/small/{number}" for number in range(50)))
        snapshot = world.frontier.snapshot()
        fetched = await world.run(ordinary, days=2)
        return dict(snapshot.parked), sum(snapshot.queued.values()), fetched

    parked, queued, fetched = play(tmp_path, story, budget=budget)
    say(f"{queued} queued and {parked} parked of 450 URLs, 100 a section at most; {fetched} fetched in the end")
    assert parked == {DeferReason.BUDGET: 300}
    assert queued == 150
    assert fetched == 450


def test_a_host_that_outgrows_its_like_earns_less(tmp_path: Path, say: Say) -> None:
    """T5: a host with a hundred times the URLs of the others is flagged and throttled, not stopped."""
    budget = replace(BudgetSettings(), first_urls=5, urls_per_page=10)
    worlds: list[FrontierWorld] = []

    def web(task: PageTask) -> Brought:
        if "giant" not in task.url:
            return Brought()
        number = int(task.url.rsplit("/", 1)[1])
        links = [f"https://giant.test/p/{number * 30 + more}" for more in range(1, 31)]
        return Brought(links=[worlds[0].candidate(link, 1) for link in links])

    async def story(world: FrontierWorld) -> tuple[int, int, int]:
        worlds.append(world)
        await world.admit(*(f"https://dwarf-{number}.test/" for number in range(300)))
        await world.admit("https://giant.test/p/0")
        await world.run(web, pages=700)
        snapshot = world.frontier.view.totals()
        return snapshot.outgrown, snapshot.queued[1] + snapshot.queued[2] + snapshot.queued[3], len(world.fetched)

    flagged, queued, fetched = play(tmp_path, story, budget=budget)
    say(f"{flagged} host flagged; {queued} of its URLs queued after {fetched - 300} of its pages, 12,000 were found")
    assert flagged == 1
    assert 0 < queued < 4_000


def test_coverage_reaches_n_domains_with_little_more_than_n_fetches(tmp_path: Path, say: Say) -> None:
    """S4: until N registrable domains are fetched, only links that add one are queued; then the rest comes back."""
    domains, target = 2_000, 1_000
    draw = random.Random(4)
    links = {number: draw.sample(range(domains), 8) for number in range(domains)}
    worlds: list[FrontierWorld] = []

    def web(task: PageTask) -> Brought:
        host = task.url.split("/")[2]
        number = int(host.removeprefix("www.d").removesuffix(".test"))
        inside = [f"https://{host}/{page}" for page in range(20)]
        outside = [f"https://www.d{other}.test/" for other in links[number]]
        return Brought(links=[worlds[0].candidate(url, task.depth + 1) for url in (*inside, *outside)])

    async def story(world: FrontierWorld) -> tuple[int, int, int]:
        worlds.append(world)
        await world.admit("https://www.d0.test/")
        pages = 0
        while world.frontier.snapshot().domains < target:
            pages += await world.run(web, pages=1)
        parked = world.frontier.snapshot().parked[DeferReason.COVERAGE]
        later = await world.run(web, pages=2_000)
        return pages, parked, later

    pages, parked, later = play(tmp_path, story, target_domains=target)
    say(f"{target} domains with {pages} fetches, {parked} URLs put off meanwhile, {later} pages fetched afterwards")
    assert pages <= target * 1.05
    assert later == 2_000


def test_a_domain_that_fails_is_paused_for_an_hour_and_served_less(tmp_path: Path, say: Say) -> None:
    """P4: more than half errors among the last 100 requests pause a domain; repeated 5xx lower its class."""

    async def story(world: FrontierWorld) -> tuple[int, int]:
        await world.admit(*(f"https://bad.test/{number}" for number in range(400)), level=Level.HIGH)
        broken = lambda _task: Brought(Retry(5_000, "http_5xx", "HTTP 503"))  # noqa: E731 - a web in one line
        await world.run(broken, days=0.005)  # seven minutes
        asked = len(world.fetched)
        await world.run(broken, days=1 / 24)
        return asked, len(world.fetched)

    asked, in_all = play(tmp_path, story)
    say(f"asked {asked} times before the pause, {in_all - asked} times in the hour that followed")
    assert 51 <= asked <= 101
    assert in_all - asked <= 101


def test_gone_means_proven_gone_and_gone_pages_are_asked_ever_more_rarely(tmp_path: Path, say: Say) -> None:
    """R5, R2: one 404 proves nothing; three over days do; the visits thin out; and the page comes back."""
    alive: list[bool] = [True]
    worlds: list[FrontierWorld] = []

    async def story(world: FrontierWorld) -> tuple[list[float], list[str], str]:
        worlds.append(world)
        await world.admit("https://a.test/page")
        visits: list[float] = []
        states: list[str] = []
        address = world.address("https://a.test/page")
        for turn in range(9):
            alive[0] = turn in {0, 8}
            leases = await world.frontier.claim(1, 300)
            while not leases:
                wait = world.frontier.snapshot().next_in_ms
                assert wait is not None
                world.clock.advance(max(wait, 1) / 1000)
                leases = await world.frontier.claim(1, 300)
            visits.append(world.clock.elapsed_s() / DAY_S)
            for lease in leases:
                (task,) = lease.tasks
                assert isinstance(task, PageTask)
                done = world.page(task) if alive[0] else world.page(task, status=404, page=False, digest=b"")
                await world.frontier.settle(lease.token, [done], Release(1000, Pace(1000)))
            story_now = world.frontier.story("a.test", address.fingerprint)
            assert story_now is not None
            states.append(story_now.reason)
        return visits, states, states[-1]

    visits, states, last = play(tmp_path, story)
    gaps = [later - earlier for earlier, later in pairwise(visits)]
    say(f"visited on days {[round(day, 1) for day in visits]}, gone: {[state == 'gone' for state in states]}")
    assert states[1:3] == ["", ""]
    assert "gone" in states[3:8]
    assert all(later >= earlier for earlier, later in pairwise(gaps[1:7]))
    assert last != "gone"


@pytest.mark.parametrize("hosts", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_thirty_days_of_thousands_of_hosts(tmp_path: Path, say: Say, hosts: int) -> None:
    """F8, R2, Q3: a month of a web of thousands of hosts: everything found, re-crawled as planned, nothing starved."""
    draw = random.Random(9)
    sizes = [1 + min(30, int(draw.paretovariate(1.2))) for _ in range(hosts)]
    friends = [draw.randrange(hosts) for _ in range(hosts)]
    worlds: list[FrontierWorld] = []

    def url(host: int, page: int) -> str:
        return f"https://h{host}.test/{page}"

    def web(task: PageTask) -> Brought:
        host, page = (int(part) for part in task.url.removeprefix("https://h").split(".test/"))
        found = [url(host, other) for other in range(page + 1, min(page + 4, sizes[host]))]
        if page == 0:
            found += [url((host * 7 + 1) % hosts, 0), url((host + 1) % hosts, 0), url(friends[host], 0)]
        visits[task.url] += 1
        now = worlds[0].clock.elapsed_s()
        # A tenth of the home pages changes twice a day, nothing else does.
        changed = page == 0 and host % 10 == 0 and now - seen_at.get(host, 0.0) >= DAY_S / 2
        seen_at[host] = now if page == 0 else seen_at.get(host, 0.0)
        return Brought(links=[worlds[0].candidate(one, task.depth + 1) for one in found], changed=changed)

    visits: Counter[str] = Counter()
    seen_at: dict[int, float] = {}

    async def story(world: FrontierWorld) -> FrontierSnapshot:
        worlds.append(world)
        await world.admit(url(0, 0))
        await world.run(web, days=30, hosts_at_once=1_000)
        await world.reopen()
        return world.frontier.view.snapshot()

    began = time.process_time()
    snapshot: FrontierSnapshot = play(tmp_path, story, delay_s=5)
    took = time.process_time() - began
    lively = [count for one, count in visits.items() if one.endswith("/0") and int(one[9:-7]) % 10 == 0]
    quiet = [count for one, count in visits.items() if not one.endswith("/0")]
    say(
        f"30 days, {hosts:,} hosts: {visits.total():,} fetches of {len(visits):,} pages in {took:.0f} s of CPU; pages"
        f" that change were visited {mean(lively):.1f} times, others {mean(quiet):.1f} times"
    )
    assert len(visits) == sum(sizes)
    assert snapshot.planned + sum(snapshot.queued.values()) == sum(sizes)
    assert mean(lively) > 5 * mean(quiet) > 5 * 1.9

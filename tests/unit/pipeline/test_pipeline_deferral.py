"""No turn at the address: the host goes back until then, and nothing counts against anybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from worker import Worker, answer, linking

from nephila.interfaces.politeness import Politeness
from nephila.model.events import EventKind
from nephila.model.exchange import FailureKind, FetchFailed
from nephila.model.outcome import DeferReason, Release
from nephila.model.task import Lease, Pace
from nephila.pipeline.deferral import until_its_turn
from nephila.pipeline.under_way import UnderWay

HOME = "https://a.test/"
ROBOTS = "https://a.test/robots.txt"


def no_turn(url: str, wait_ms: int) -> FetchFailed:
    return FetchFailed(url, FailureKind.ADDRESS_BUSY, "no turn", sent=False, wait_ms=wait_ms)


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


@pytest.fixture
def obedient(tmp_path: Path) -> Worker:
    return Worker(tmp_path, robots=True)


def spied(worker: Worker) -> list[object]:
    """What politeness is told of answers from now on."""
    told: list[object] = []
    politeness: Politeness = worker.pipeline._to.politeness
    release = politeness.release

    def listening(pace: Pace, given: object, *more: object) -> Release:
        told.append(given)
        return release(pace, given, *more)  # type: ignore[arg-type]

    politeness.release = listening  # type: ignore[assignment, method-assign]
    return told


def test_a_page_without_a_turn_waits_with_its_host_and_costs_nothing(worker: Worker) -> None:
    """P2, F2, S3, O1: no retry, no error, no allowance; the pace learns nothing; the events tell it."""
    worker.script(no_turn(HOME, 7300), no_turn(HOME, 150), answer(HOME, 200, linking()))
    told = spied(worker)

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        await worker.work(lease)
        assert worker.story(HOME).state == "queued"
        assert worker.story(HOME).retries == 0
        assert dict(worker.frontier.snapshot().waiting_for) == {DeferReason.ADDRESS: 1}
        assert worker.frontier.snapshot().hosts_leased == 0
        await worker.crawl()
        assert worker.story(HOME).state == "stored_pending"

    worker.run(main)
    first, second, third = worker.fetcher.at
    assert 7300 <= second - first <= 7400
    assert 150 <= third - second <= 250
    assert worker.allowance.taken == worker.allowance.given == 3
    assert worker.ledger.errors == []
    assert len(told) == 1
    kinds = Counter(event.kind for event in worker.recorder.events)
    assert (kinds[EventKind.DEFERRED], kinds[EventKind.ERROR], kinds[EventKind.RETRY]) == (2, 0, 0)
    event = next(event for event in worker.recorder.events if event.kind is EventKind.DEFERRED)
    assert (event.url, event.host, event.reason, event.counts) == (
        HOME,
        "a.test",
        DeferReason.ADDRESS,
        (("wait_ms", 7300),),
    )


def test_a_robots_txt_without_a_turn_waits_and_settles_nothing(obedient: Worker) -> None:
    """P1, P2: it is not taken for unreachable; it stays first of its host."""
    obedient.script(no_turn(ROBOTS, 2000), answer(ROBOTS, 404), answer(HOME, 200, linking()))
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, ROBOTS, HOME]
    assert 2000 <= obedient.fetcher.at[1] - obedient.fetcher.at[0] <= 2100
    (event,) = [event for event in obedient.recorder.events if event.kind is EventKind.DEFERRED]
    assert (event.url, event.depth, event.reason) == (ROBOTS, None, DeferReason.ADDRESS)
    assert all(event.kind is not EventKind.ERROR for event in obedient.recorder.events)


def test_the_rest_of_a_lease_waits_too_and_what_was_done_stays_done(tmp_path: Path) -> None:
    """P2, F3: the host as a whole is put off; each page is fetched once."""
    worker = Worker(tmp_path, delay_s=0)
    urls = [f"https://a.test/{number}" for number in range(4)]
    for url in urls[:2]:
        worker.script(answer(url, 200, linking()))
    for url in urls[2:]:
        worker.script(no_turn(url, 500), answer(url, 200, linking()))
    worker.run(lambda: worker.crawl(*urls))
    answered = Counter(capture.fetched.url for capture in worker.archive.captures)
    assert answered == Counter(urls)
    assert len(worker.ledger.rows) == 4


@pytest.mark.parametrize(("owed_ms", "turn_ms", "waits_ms"), [(5000, 200, 5000), (0, 200, 200)])
def test_the_later_of_rest_and_turn_counts(owed_ms: int, turn_ms: int, waits_ms: int) -> None:
    """P2: an address that is free again in a moment does not shorten what the host is owed; its pace stays."""
    pace = Pace(3000, 1000)
    put_off = until_its_turn(Release(owed_ms, pace), no_turn(HOME, turn_ms))
    assert put_off == Release(waits_ms, pace, reason=DeferReason.ADDRESS)


def test_a_late_deferral_is_not_told(worker: Worker) -> None:
    """F3: the lease was lost meanwhile; whoever has it now tells what becomes of it."""
    worker.script(no_turn(HOME, 200))

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        await worker.work(replace(lease, token=lease.token + 1))  # type: ignore[arg-type]

    worker.run(main)
    assert [event.kind for event in worker.recorder.events if event.kind is EventKind.DEFERRED] == []


# The agent of a policy


def test_a_lease_with_another_agent_says_so_and_obeys_the_rules_for_it(obedient: Worker) -> None:
    """R4, P1, P6: robots.txt included; rules are matched with the product token of that agent."""
    agent = "Other/1 (+https://nephila.invalid/other)"
    text = b"User-agent: nephila\nDisallow: /\n\nUser-agent: other\nDisallow: /no\nCrawl-delay: 4\n"
    obedient.script(answer(ROBOTS, 200, text), answer(HOME, 200, linking("/no", "/yes")))
    obedient.script(answer("https://a.test/yes", 200, linking()))
    claim = obedient.frontier.claim

    async def claiming(hosts: int, lease_s: float) -> list[Lease]:
        return [replace(lease, user_agent=agent) for lease in await claim(hosts, lease_s)]

    obedient.frontier.claim = claiming  # type: ignore[method-assign]
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, HOME, "https://a.test/yes"]
    assert {request.user_agent for request in obedient.fetcher.asked} == {agent}
    assert obedient.fetcher.at[2] - obedient.fetcher.at[1] >= 4000


def test_an_exchange_that_is_cut_off_rests_at_least_the_base_of_a_policy() -> None:
    """R4, P2: a raised base binds there, too."""

    async def rest_ms() -> int:
        worker = asyncio.current_task()
        assert worker is not None
        return UnderWay(worker, Pace(1000, base_ms=9000), 0, sent=True).unsent(0, 0).wait_ms

    assert asyncio.run(rest_ms()) >= 9000

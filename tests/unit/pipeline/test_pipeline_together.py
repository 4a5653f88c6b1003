"""Pages of a lease that are settled together, and what becomes of them where the lease ends otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worker import Worker, address, answer, failure, linking, page_task

from nephila.interfaces.frontier import Settled
from nephila.interfaces.recrawl import Outlook
from nephila.model.errors import NephilaError, StorageError
from nephila.model.events import EventKind
from nephila.model.exchange import Answer, FailureKind, FetchRequest
from nephila.model.outcome import Dropped, Release, Settlement
from nephila.model.record import Capture, StoredCapture
from nephila.model.task import Candidate, Lease, Pace, Refusal, Token
from nephila.pipeline.together import LINK_BYTES, PAGE_BYTES, Room, Together, bytes_of
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual

HOST = "https://a.example/"
PAGES = tuple(f"{HOST}{number}" for number in range(4))
Call = tuple[tuple[str, ...], bool]


class Watched(Worker):
    """A worker whose leases last, and whose settle calls are noted: which URLs, and whether the host was freed."""

    def __init__(self, path: Path, **given: Any) -> None:
        super().__init__(path, **{"span_s": 5.0, "together_s": 8.0} | given)
        self.calls: list[Call] = []
        self.called_at: list[int] = []
        self.broken: NephilaError | None = None
        self.plans = False
        """Whether each page is told another next visit."""
        self._settle, self.frontier.settle = self.frontier.settle, self._noted  # type: ignore[method-assign]

    async def _noted(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        self.calls.append((tuple(one.task.url for one in settlements), release is not None))
        self.called_at.append(self.clock.steady_ms())
        if self.broken is not None:
            raise self.broken
        settled = await self._settle(token, settlements, release)
        if not self.plans:
            return settled
        planned = (replace(one, outlook=Outlook(1000 + at, 0.5)) for at, one in enumerate(settled.each))
        return replace(settled, each=tuple(planned))

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        """As ever; what is known of the pages in the end is read while the frontier is open."""

        async def whole() -> Any:
            told = await main()
            self.stories = {url: self.story(url) for url in PAGES if self._is_known(url)}
            return told

        return super().run(whole)

    def _is_known(self, url: str) -> bool:
        found = address(url)
        return self.frontier.story(found.host, found.fingerprint) is not None

    @property
    def states(self) -> list[str]:
        return [story.state for story in self.stories.values()]

    async def lease(self, *urls: str) -> Lease:
        await self.admit(*urls)
        (lease,) = await self.claim()
        assert [task.url for task in lease.tasks] == list(urls)
        return lease


def pages(worker: Worker, *urls: str) -> None:
    """Each is a page of its own, with a link to another one."""
    for url in urls:
        worker.script(answer(url, body=linking(f"{url}/next") + url.encode()))


def test_the_pages_of_a_lease_are_settled_in_one_call(tmp_path: Path) -> None:
    """F2, P2: with its end, at the pace of their host, and nothing of them is left open."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES, True)]
    gaps = [later - earlier for earlier, later in zip(worker.fetcher.at, worker.fetcher.at[1:], strict=False)]
    assert min(gaps) >= 1000
    assert max(gaps) <= 1002
    assert [row.url for row in worker.ledger.rows] == list(PAGES)
    assert not worker.ledger.outstanding
    assert (worker.allowance.taken, worker.allowance.given) == (4, 4)
    assert worker.pipeline.settling == 0


async def _work(worker: Watched, *urls: str) -> None:
    await worker.work(await worker.lease(*urls))


def test_each_page_is_told_its_own(tmp_path: Path) -> None:
    """F2, R2: its row and its event have its own links and its own next visit."""
    worker = Watched(tmp_path)
    worker.plans = True
    worker.script(answer(PAGES[0], body=linking(f"{HOST}x", f"{HOST}y")))
    worker.script(answer(PAGES[1], 404))
    worker.script(answer(HOST, body=linking(f"{HOST}x", f"{HOST}z", PAGES[0])))
    asked = (*PAGES[:2], HOST)
    worker.run(lambda: _work(worker, *asked))
    assert [len(urls) for urls, _ in worker.calls] == [3]
    told = {event.url: dict(event.counts) for event in worker.recorder.events if event.kind is EventKind.FETCH_OK}
    assert [(told[url]["added"], told[url]["known"]) for url in asked] == [(2, 0), (0, 0), (1, 2)]
    assert [row.next_crawl_at for row in worker.ledger.rows] == [1000, 1001, 1002]


def test_a_page_waits_for_company_no_longer_than_it_may(tmp_path: Path) -> None:
    """F2: counted from the first of those that wait."""
    worker = Watched(tmp_path, together_s=1.5)
    pages(worker, *PAGES)
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[:2], False), (PAGES[2:], True)]
    assert worker.called_at[0] - worker.fetcher.at[0] in range(1500, 1600)


def test_a_lease_that_is_cut_off_settles_what_was_gathered(tmp_path: Path) -> None:
    """F9: with its end; the page that was on the wire is asked for again."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)

    async def never(_request: FetchRequest) -> Answer:
        await asyncio.sleep(1e6)
        raise AssertionError

    worker.fetcher.script[PAGES[2]] = [never]

    async def main() -> None:
        task = asyncio.create_task(worker.pipeline.work(await worker.lease(*PAGES)))
        await asyncio.sleep(2.5)
        assert len(worker.fetcher.asked) == 3
        worker.pipeline.stopping = True
        assert task in worker.pipeline.sending
        task.cancel()
        await task

    worker.run(main)
    assert worker.calls == [(PAGES[:2], True)]
    assert [row.url for row in worker.ledger.rows] == list(PAGES[:2])
    assert worker.states == ["stored_pending"] * 2 + ["queued"] * 2
    assert [event.url for event in worker.recorder.events if event.kind is EventKind.BROKEN_OFF] == [PAGES[2]]
    assert (worker.allowance.taken, worker.allowance.given) == (3, 3)


def test_a_stop_settles_what_was_gathered_at_once(tmp_path: Path) -> None:
    """F9: a lease that waits for its next moment hears of it within half a second."""
    worker = Watched(tmp_path, delay_s=4.0)
    pages(worker, *PAGES[:2])

    async def main() -> int:
        task = asyncio.create_task(worker.pipeline.work(await worker.lease(*PAGES[:2])))
        await asyncio.sleep(1.2)
        worker.pipeline.stopping = True
        stopped_ms = worker.clock.steady_ms()
        await task
        return worker.clock.steady_ms() - stopped_ms

    assert worker.run(main) <= 500
    assert worker.calls == [(PAGES[:1], True)]


def test_who_leaves_ends_its_leases_with_their_next_pages(tmp_path: Path) -> None:
    """N4, F9: a worker that is drained does not go on for as long as its leases would last."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)

    async def main() -> None:
        task = asyncio.create_task(worker.pipeline.work(await worker.lease(*PAGES)))
        await asyncio.sleep(0.5)
        worker.pipeline.leaving = True
        await task

    worker.run(main)
    assert worker.calls == [(PAGES[:2], True)]
    assert worker.states == ["stored_pending"] * 2 + ["queued"] * 2


@pytest.mark.parametrize(("together_s", "asked"), [(8.0, 4), (1.5, 2)])
def test_a_frontier_that_fails_is_told_of_once(tmp_path: Path, together_s: float, asked: int) -> None:
    """F9: the lease is left as a kill would leave it, with all its captures."""
    worker = Watched(tmp_path, together_s=together_s)
    pages(worker, *PAGES)
    worker.broken = StorageError("the engine is gone")
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.failures == [worker.broken]
    assert len(worker.calls) == 1
    assert len(worker.ledger.outstanding) == len(worker.archive.captures) == asked
    assert not worker.ledger.rows
    assert not worker.ledger.disowned


def test_a_disk_that_is_full_ends_the_crawl_and_settles_nothing_more(tmp_path: Path) -> None:
    """F9: what was gathered before is found in the archive when the crawl goes on."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)

    async def full(request: FetchRequest) -> Answer:
        worker.archive.full = True
        return answer(request.url, body=b"x")

    worker.fetcher.script[PAGES[1]] = [full]
    worker.run(lambda: _work(worker, *PAGES))
    assert [type(error) for error in worker.failures] == [StorageError]
    assert worker.calls == []
    assert len(worker.ledger.outstanding) == 1


def test_a_lost_lease_disowns_all_its_captures(tmp_path: Path) -> None:
    """F3: none of its results counts, and each is told of."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)

    async def main() -> None:
        lease = await worker.lease(*PAGES)
        working = asyncio.create_task(worker.pipeline.work(lease))
        await asyncio.sleep(2.5)
        await worker.frontier.reap_all()
        await working

    worker.run(main)
    assert worker.calls == [(PAGES, True)]
    assert len(worker.ledger.disowned) == 4
    assert not worker.ledger.rows
    assert worker.recorder.urls(EventKind.LATE_RESULT) == list(PAGES)


def test_a_bug_costs_its_page_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F9: it is given up; the others of its lease are settled as ever."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    append = worker.archive.append

    def broken(capture: Capture, encoded: object = None) -> StoredCapture:
        if capture.task.url == PAGES[1]:
            raise ZeroDivisionError("a bug of ours")
        return append(capture, encoded)

    monkeypatch.setattr(worker.archive, "append", broken)
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[1:2], False), ((PAGES[0], *PAGES[2:]), True)]
    assert worker.states == ["stored_pending", "dead_letter", "stored_pending", "stored_pending"]
    assert [event.reason for event in worker.recorder.events if event.kind is EventKind.WARNING] == ["bug"]
    assert [event.url for event in worker.recorder.events if event.kind is EventKind.BROKEN_OFF] == [PAGES[1]]
    assert (worker.allowance.taken, worker.allowance.given) == (4, 4)


def test_a_bug_on_the_way_settles_what_was_gathered(tmp_path: Path) -> None:
    """F9: its own page is given up apart from the others, which are not refused with it."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)

    async def breaks(_request: FetchRequest) -> Answer:
        raise ZeroDivisionError("a bug of ours")

    worker.fetcher.script[PAGES[2]] = [breaks]
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[2:3], False), (PAGES[:2], True)]
    assert worker.states == ["stored_pending"] * 2 + ["dead_letter", "queued"]


def test_failures_and_what_may_not_be_asked_go_along(tmp_path: Path) -> None:
    """H5, S2: a page that failed, and one that is excluded, are settled in the same call."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    worker.fetcher.script[PAGES[0]] = [answer(PAGES[0], 404)]
    conduct = worker.pipeline._conduct
    worker.pipeline._conduct = replace(conduct, excluded=lambda url: "1$" if url == PAGES[1] else "")
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES, True)]
    assert worker.fetcher.urls == [PAGES[0], *PAGES[2:]]
    assert worker.stories[PAGES[1]].reason == "excluded"
    assert (worker.allowance.taken, worker.allowance.given) == (3, 3)


def test_a_host_that_asks_for_a_long_rest_is_given_back(tmp_path: Path) -> None:
    """P4, H5: with what was gathered; its lease would last far longer than it was meant to."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    worker.fetcher.script[PAGES[1]] = [answer(PAGES[1], 503, headers={"retry-after": "60"})]
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[:2], True)]
    assert worker.fetcher.urls == list(PAGES[:2])


def test_an_address_that_is_busy_gives_the_host_back(tmp_path: Path) -> None:
    """P2: with what was gathered."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    worker.fetcher.script[PAGES[1]] = [failure(PAGES[1], FailureKind.ADDRESS_BUSY, sent=False)]
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[:1], True)]
    assert worker.recorder.urls(EventKind.DEFERRED) == [PAGES[1]]


def test_a_page_whose_body_is_kept_for_somebody_is_settled_for_itself(tmp_path: Path) -> None:
    """Q5: and waited for."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    worker.pipeline._conduct = replace(worker.pipeline._conduct, deliver=worker._deliver)
    worker.run(lambda: _work(worker, *PAGES))
    assert [len(urls) for urls, _ in worker.calls] == [1, 1, 1, 1]
    assert len(worker.delivered) == 4


def test_a_timeline_that_leaps_ahead_cuts_no_rest_short(tmp_path: Path) -> None:
    """P2: a worker of a fleet knows the engine's clock better after some answers; its own has not gone faster."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    now = worker.pipeline._conduct.now

    def leaping() -> int:
        return now() + 400 * len(worker.fetcher.asked) ** 2

    worker.pipeline._conduct = replace(worker.pipeline._conduct, now=leaping)
    worker.pipeline.departures._now = leaping
    worker.run(lambda: _work(worker, *PAGES))
    gaps = [later - earlier for earlier, later in zip(worker.fetcher.at, worker.fetcher.at[1:], strict=False)]
    assert min(gaps) >= 1000


def test_the_end_of_a_lease_waits_for_a_page_in_hand_and_takes_that_off_the_rest() -> None:
    """F2, P2: none arrives behind the end; the host rests from when its answer came."""
    clock, calls = VirtualClock(), list[tuple[int, Release | None]]()

    class Frontier:
        async def settle(self, _token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
            calls.append((len(settlements), release))
            return Settled(True, each=(Settled(True),) * len(settlements))

    async def main() -> None:
        frontier: Any = Frontier()
        together = Together(frontier, Token(1), 5.0, clock.steady_ms, Room())
        page = Settlement(page_task(PAGES[0]), Dropped("x"))

        async def slow() -> None:
            await asyncio.sleep(0.3)
            await together.settle([page], None)

        together.begin(slow(), "slow")
        await together.settle([Settlement(page_task(PAGES[1]), Dropped("x"))], Release(1000, Pace(1000)))
        await together.end()

    run_virtual(main, clock)
    ((count, release),) = calls
    assert count == 2
    assert release is not None
    assert release.wait_ms in range(700, 703)


def test_nobody_waits_for_company_where_too_much_waits(tmp_path: Path) -> None:
    """Q5: pages that link to much cannot fill the memory by waiting; what has waited goes along."""
    worker = Watched(tmp_path)
    pages(worker, *PAGES)
    each = PAGE_BYTES + LINK_BYTES + len(f"{PAGES[0]}/next")
    worker.pipeline._room = Room(3 * each // 2)
    worker.run(lambda: _work(worker, *PAGES))
    assert worker.calls == [(PAGES[:2], False), (PAGES[2:], True)]
    assert worker.pipeline._room.taken == 0


def test_what_waits_is_weighed_by_its_links() -> None:
    """Q5: those that were refused, too."""
    links = [Candidate(address(url), 1) for url in PAGES]
    settlement = Settlement(page_task(HOST), Dropped("x"), links, [Refusal(link.address, "x", "") for link in links])
    assert bytes_of(settlement) == PAGE_BYTES + 2 * sum(LINK_BYTES + len(url) for url in PAGES)

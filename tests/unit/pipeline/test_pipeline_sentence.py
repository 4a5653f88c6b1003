"""The sentence as a whole: what is asked, kept and settled, and what happens when something of it breaks."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from worker import SEGMENT, Worker, address, answer, failure, linking

from nephila.dedup import LmdbDigestIndex
from nephila.model.errors import (
    EngineAwayError,
    EngineRefusedError,
    FrontierError,
    MemoryShortageError,
    NephilaError,
    StorageError,
)
from nephila.model.events import EventKind
from nephila.model.exchange import Answer, FailureKind, FetchRequest
from nephila.model.outcome import OriginRules
from nephila.model.page import Link
from nephila.model.settings import SitemapSettings
from nephila.model.task import Candidate, RobotsTask
from nephila.node.recovery import _remembered_page
from nephila.pipeline import requisites_in

HOME = "https://a.test/"
ROBOTS = "https://a.test/robots.txt"


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """Without robots.txt."""
    return Worker(tmp_path)


@pytest.fixture
def obedient(tmp_path: Path) -> Worker:
    """With it."""
    return Worker(tmp_path, robots=True)


def kinds(worker: Worker) -> Counter[str]:
    return Counter(str(event.kind) for event in worker.recorder.events)


# The ordinary way


def test_a_page_is_fetched_stored_settled_and_its_links_after_it(worker: Worker) -> None:
    """F2, X1, W1, O1: found, asked for once, kept, listed, told, handed over."""
    worker.script(answer(HOME, 200, linking("/1", "/2")), answer("https://a.test/1", 200, linking("/", "/2")))
    worker.run(lambda: worker.crawl(HOME))
    assert sorted(worker.fetcher.urls) == [HOME, "https://a.test/1", "https://a.test/2"]
    assert [capture.fetched.url for capture in worker.archive.captures] == worker.fetcher.urls
    first = worker.ledger.rows[0]
    assert (first.url, first.status, first.via) == (HOME, 200, "")
    assert {row.via for row in worker.ledger.rows[1:]} == {HOME}
    assert worker.ledger.outstanding == set()
    assert {page.fetched.url for page in worker.delivered} == {HOME, "https://a.test/1"}
    assert kinds(worker)["fetch_ok"] == 3
    assert [(row.kind, row.dead) for row in worker.ledger.errors] == [("http_4xx", False)]
    assert worker.allowance.taken == worker.allowance.given == 3


def test_what_the_archive_is_given_explains_itself(obedient: Worker) -> None:
    """W1, X2, K1: outlinks, directives, canonical, digest and the rules in force lie beside the answer."""
    body = b'<meta name="robots" content="noindex"><link rel="canonical" href="/c">' + linking("/1")
    obedient.script(answer(ROBOTS, 200, b"User-agent: *\nDisallow: /secret\n"), answer(HOME, 200, body))
    obedient.run(lambda: obedient.crawl(HOME))
    robots, page = obedient.archive.captures[:2]
    assert isinstance(robots.task, RobotsTask)
    assert robots.rules == b"User-agent: *\nDisallow: /secret\n"
    notes = dict(page.notes)
    assert notes["directives"] == "noindex"
    assert notes["canonical"] == "https://a.test/c"
    assert notes["contentDigest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
    assert notes["robotsRules"].startswith("rules ")
    assert "https://a.test/1 a" in page.outlinks
    row = next(row for row in obedient.ledger.rows if row.url == HOME)
    assert (row.noindex, row.canonical, row.title) == (True, "https://a.test/c", "T")


def test_rules_at_hand_are_bounded_by_their_bytes(obedient: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """F8, Q5: what is let go is read again from the store, and obeyed."""
    monkeypatch.setattr("nephila.pipeline.rules_at_hand.RULES_BYTES", 1)
    for host in ("a.test", "b.test", "c.test"):
        obedient.script(
            answer(f"https://{host}/robots.txt", 200, b"User-agent: *\nDisallow: /secret\n"),
            answer(f"https://{host}/", 200, linking("/1", "/secret")),
            answer(f"https://{host}/1", 200, linking("/secret")),
        )
    obedient.run(lambda: obedient.crawl(HOME, "https://b.test/", "https://c.test/"))
    assert len(obedient.pipeline._rules._rules) == 1
    assert {url[15:] for url in obedient.fetcher.urls} == {"robots.txt", "", "1"}


def test_what_a_copy_is_shown_with_is_written_down_beside_it(worker: Worker) -> None:
    """X1, F10: a copy has no body of its own to be read again after a crash; the first has."""
    worker.requisites = (
        Link("https://cdn.test/s.css", "link", "", ""),
        Link("https://cdn.test/a b.png", "img", "", ""),
    )
    worker.script(*(answer(url, 200, linking()) for url in (HOME, "https://b.test/")))
    worker.script(*(answer(one.url, 404) for one in worker.requisites))
    worker.run(lambda: worker.crawl(HOME, "https://b.test/"))
    copy = next(one for one in worker.archive.captures if one.revisit_of is not None)
    assert requisites_in(copy) == _remembered_page(copy).requisites == worker.requisites
    assert all(requisites_in(one) == () for one in worker.archive.captures if one is not copy)


def test_a_second_copy_is_a_revisit_of_the_first(worker: Worker) -> None:
    """D2: and is told as a duplicate."""
    worker.script(*(answer(url, 200, linking()) for url in (HOME, "https://b.test/")))
    worker.run(lambda: worker.crawl(HOME, "https://b.test/"))
    first, second = worker.archive.captures
    assert first.revisit_of is None
    assert second.revisit_of is not None
    assert second.revisit_of.url == first.fetched.url
    assert worker.ledger.rows[1].duplicate_of == first.fetched.url
    assert kinds(worker)["duplicate"] == 1


def test_the_last_captures_validators_are_asked_with(worker: Worker) -> None:
    """H3: If-None-Match and If-Modified-Since; the 304 is a revisit."""
    both = {"etag": '"1"', "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    worker.script(answer(HOME, 200, linking(), headers=both), answer(HOME, 304))

    async def main() -> None:
        await worker.crawl(HOME)
        await worker.frontier.confirm(SEGMENT, 1000)
        await worker.frontier.begin_cycle()
        await worker.crawl()

    worker.run(main)
    first, second = worker.fetcher.asked
    assert first.headers == ()
    assert dict(second.headers) == {"If-None-Match": '"1"', "If-Modified-Since": both["last-modified"]}
    capture = worker.archive.captures[1]
    assert capture.not_modified
    assert capture.revisit_of is not None
    assert worker.ledger.rows[1].content_hash == hashlib.sha256(linking()).digest()
    assert not worker.ledger.rows[1].changed


def test_a_page_that_is_what_it_was_is_no_duplicate(worker: Worker) -> None:
    """O1, O2, D2: visited again without validators it is a revisit of itself; no share of duplicates grows by it."""
    worker.script(answer(HOME, 200, linking()), answer(HOME, 200, linking()))

    async def main() -> None:
        await worker.crawl(HOME)
        await worker.frontier.confirm(SEGMENT, 1000)
        await worker.frontier.begin_cycle()
        await worker.crawl()

    worker.run(main)
    first, second = worker.archive.captures
    assert second.revisit_of is not None
    assert second.revisit_of.url == first.fetched.url
    assert not worker.ledger.rows[1].changed
    assert "duplicate" not in kinds(worker)


def test_redirects_go_through_the_queue(worker: Worker) -> None:
    """H2, T6: none is followed inline; a spelling, then another page, then a loop."""
    urls = [HOME, "https://a.test/x", "https://a.test/x/"]
    worker.script(
        answer(urls[0], 302, headers={"location": "/x"}),
        answer(urls[1], 301, headers={"location": "/x/"}),
        answer(urls[2], 301, headers={"location": "/x"}),
    )
    worker.run(lambda: worker.crawl(HOME))
    assert worker.fetcher.urls == urls
    assert all(
        later - earlier >= 1000 for earlier, later in zip(worker.fetcher.at, worker.fetcher.at[1:], strict=False)
    )
    assert [event.reason for event in worker.recorder.events if event.kind is EventKind.TRAP] == ["redirect_loop"]
    assert kinds(worker)["redirect"] == 3


def test_a_failing_page_is_retried_and_then_listed_as_dead(worker: Worker) -> None:
    """H5, F2, F9: with its waits, and an error row each time."""
    worker.script(failure(HOME))
    worker.run(lambda: worker.crawl(HOME))
    first, second, third = worker.fetcher.at
    assert 4000 <= second - first <= 6100
    assert 24_000 <= third - second <= 36_100
    assert [(row.kind, row.retries, row.dead) for row in worker.ledger.errors] == [
        ("timeout", 0, False),
        ("timeout", 1, False),
        ("timeout", 2, True),
    ]
    assert worker.archive.captures == []
    assert kinds(worker)["dead_letter"] == 1


def test_several_urls_of_a_lease_keep_the_delay_between_them(tmp_path: Path) -> None:
    """P2: a short delay is held within the lease."""
    worker = Worker(tmp_path, delay_s=0.02)
    worker.script(answer(HOME, 200, linking(*(f"/{number}" for number in range(6)))))
    worker.run(lambda: worker.crawl(HOME))
    assert len(worker.fetcher.urls) == 7
    gaps = [later - earlier for earlier, later in zip(worker.fetcher.at, worker.fetcher.at[1:], strict=False)]
    assert min(gaps) >= 20


def test_a_server_that_says_when_to_come_back_is_obeyed(worker: Worker) -> None:
    """P3: Retry-After puts the whole host off."""
    worker.script(answer(HOME, 503, headers={"retry-after": "50"}), answer(HOME, 200, linking()))
    worker.script(answer("https://a.test/1", 200, linking()))
    worker.run(lambda: worker.crawl(HOME, "https://a.test/1"))
    assert worker.fetcher.urls.count(HOME) == 2
    after = worker.fetcher.at[worker.fetcher.urls.index(HOME)]
    assert all(at == after or at < after or at >= after + 50_000 for at in worker.fetcher.at)


# robots.txt


def test_robots_comes_first_and_is_obeyed_with_the_line_that_forbids(obedient: Worker) -> None:
    """P1, T8: what it forbids is never asked for."""
    obedient.script(answer(ROBOTS, 200, b"User-agent: *\nDisallow: /no\n"), answer(HOME, 200, linking("/no", "/yes")))
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, HOME, "https://a.test/yes"]
    assert obedient.fetcher.asked[0].max_body_bytes == 500_000
    (event,) = [event for event in obedient.recorder.events if event.kind is EventKind.ROBOTS_DISALLOW]
    assert event.detail == f"line 2 of {ROBOTS}: Disallow: /no"


def test_a_missing_robots_txt_allows_all(obedient: Worker) -> None:
    """P1: 4xx."""
    obedient.script(answer(ROBOTS, 404), answer(HOME, 200, linking()))
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, HOME]


def test_an_unreachable_robots_txt_is_tried_again_later(obedient: Worker) -> None:
    """P1: disallowed until it answers; the host waits as a whole, with its reason."""
    obedient.script(failure(ROBOTS), answer(ROBOTS, 404), answer(HOME, 200, linking()))

    async def main() -> None:
        await obedient.crawl(HOME)
        assert obedient.fetcher.urls == [ROBOTS]
        assert dict(obedient.frontier.snapshot().waiting_for) == {"robots_unavailable": 1}
        await obedient.crawl(max_wait_s=1000)

    obedient.run(main)
    assert obedient.fetcher.urls == [ROBOTS, ROBOTS, HOME]
    assert obedient.fetcher.at[1] - obedient.fetcher.at[0] >= 300_000


def test_a_redirected_robots_txt_goes_through_its_own_hosts_queue(obedient: Worker) -> None:
    """P1: its rules count for the origin that asked, its Crawl-delay too."""
    elsewhere = "https://www.b.test/rules"
    obedient.script(
        answer(ROBOTS, 301, headers={"location": elsewhere}),
        answer(elsewhere, 200, b"User-agent: *\nDisallow: /no\nCrawl-delay: 5\n"),
        answer(HOME, 200, linking("/no", "/yes")),
    )
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, elsewhere, HOME, "https://a.test/yes"]
    at = obedient.fetcher.at
    assert at[2] - at[0] >= 5000
    assert at[3] - at[2] >= 5000
    rows = [(row.url, row.robots) for row in obedient.ledger.rows]
    assert rows[:2] == [(ROBOTS, True), (elsewhere, True)]


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [(FailureKind.NO_SUCH_NAME, "dead_letter", "no_such_name"), (FailureKind.ADDRESS, "dropped", "address")],
)
def test_a_host_that_does_not_exist_costs_no_request(
    obedient: Worker, kind: FailureKind, state: str, reason: str
) -> None:
    """P1, H6, F9: its pages end with the reason, one look-up for all."""
    obedient.script(failure(ROBOTS, kind, sent=False))

    async def main() -> None:
        await obedient.crawl(HOME, "https://a.test/1")
        assert [obedient.story(url).state for url in (HOME, "https://a.test/1")] == [state, state]
        assert obedient.story(HOME).reason == reason

    obedient.run(main)
    assert obedient.fetcher.urls == [ROBOTS]


def test_a_bare_domain_that_does_not_answer_over_https_is_tried_over_http(obedient: Worker) -> None:
    """S1: its twin is admitted like any seed."""
    twin = "http://a.test/"
    obedient.twins["https://a.test"] = [Candidate(address(twin), 0)]
    obedient.script(failure(ROBOTS, FailureKind.CONNECT), answer("http://a.test/robots.txt", 404))
    obedient.script(answer(twin, 200, linking()))
    obedient.run(lambda: obedient.crawl(HOME))
    assert obedient.fetcher.urls == [ROBOTS, "http://a.test/robots.txt", twin]


def test_a_twin_is_tried_only_when_https_has_failed_for_good(worker: Worker) -> None:
    """S1: a passing failure settles nothing."""
    worker.twins["https://a.test"] = [Candidate(address("http://a.test/"), 0)]
    worker.script(failure(HOME, FailureKind.CONNECT), answer(HOME, 200, linking()))
    worker.run(lambda: worker.crawl(HOME))
    assert worker.fetcher.urls == [HOME, HOME]
    assert worker.twins


# Late, slow, stopped


def test_a_late_result_is_disowned_and_nothing_refers_to_it(worker: Worker) -> None:
    """F3, D2: the lease was reaped meanwhile; the page is stored once, by whoever has the next lease."""

    async def slow(request: FetchRequest) -> Answer:
        await asyncio.sleep(400)
        return answer(HOME, 200, linking("/from-late"))

    worker.fetcher.script[HOME] = [slow, answer(HOME, 200, linking("/1"))]

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        late = asyncio.create_task(worker.pipeline.work(lease))
        await asyncio.sleep(301)
        assert await worker.frontier.reap() == 1
        await late
        await worker.crawl()
        assert worker.story("https://a.test/1").state == "stored_pending"
        gone = address("https://a.test/from-late")
        assert worker.frontier.story("a.test", gone.fingerprint) is None

    worker.run(main)
    assert worker.ledger.disowned == [100]
    assert worker.ledger.outstanding == set()
    assert HOME in [row.url for row in worker.ledger.rows]
    assert worker.duplicates.find(hashlib.sha256(linking("/from-late")).digest()) is None
    assert kinds(worker)["late_result"] == 1
    assert len(worker.delivered) == 1


def test_a_worker_slower_than_its_lease_never_sends(worker: Worker) -> None:
    """F3, P2: the deadline is checked right before the request leaves, renewals included."""

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        worker.expiries[lease.token] = worker.frontier.timeline.now() + 29_999
        await worker.work(lease)
        assert worker.fetcher.asked == []
        assert worker.story(HOME).state == "queued"
        worker.expiries.clear()
        await worker.crawl()

    worker.run(main)
    assert worker.fetcher.urls == [HOME]


def test_a_stop_sends_nothing_more_and_gives_the_rest_back(tmp_path: Path) -> None:
    """F10: the lease ends, its URLs stay queued."""
    worker = Worker(tmp_path, delay_s=0)
    urls = [f"https://a.test/{number}" for number in range(4)]

    async def stopping(request: FetchRequest) -> Answer:
        worker.pipeline.stopping = True
        return answer(request.url, 200, linking())

    for url in urls:
        worker.fetcher.script[url] = [stopping]

    async def main() -> None:
        await worker.admit(*urls)
        (lease,) = await worker.claim()
        assert len(lease.tasks) == 4
        await worker.work(lease)
        snapshot = worker.frontier.snapshot()
        assert (snapshot.hosts_leased, sum(snapshot.queued.values()), snapshot.pages) == (0, 3, 1)

    worker.run(main)
    assert len(worker.fetcher.asked) == 1


def test_an_exchange_that_is_cut_off_leaves_the_host_its_full_rest(worker: Worker) -> None:
    """F10, P2: the host was asked, so it rests as after any request; the URL stays queued."""

    async def never(request: FetchRequest) -> Answer:
        await asyncio.sleep(3600)
        raise AssertionError("it was cut off")

    worker.fetcher.script[HOME] = [never, answer(HOME, 200, linking())]

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        working = asyncio.create_task(worker.pipeline.work(lease))
        await asyncio.sleep(5)
        worker.pipeline.stopping = True
        assert working in worker.pipeline.sending
        cut_at = worker.clock.steady_ms()
        working.cancel()
        await working
        worker.pipeline.stopping = False
        await worker.crawl()
        assert worker.fetcher.at[1] - cut_at >= 1000

    worker.run(main)
    assert worker.allowance.taken == worker.allowance.given == 2


def test_without_allowance_nothing_is_sent(worker: Worker) -> None:
    """S3: the lease is given back, nothing is lost."""
    worker.allowance.limit = 0

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        await worker.work(lease)
        assert worker.story(HOME).state == "queued"

    worker.run(main)
    assert worker.fetcher.asked == []


# Our own failures


def test_rules_are_waited_for_when_the_engine_is_away(obedient: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """N4, F3: before a page is asked for, and when a robots.txt has come; the crawl goes on as if nothing had been."""
    obedient.script(answer(ROBOTS, 404), answer(HOME, 200, linking()))
    read, tries = obedient.pipeline._rules._view.rules, list[bool]()

    def rules(origin: str) -> OriginRules | None:
        known = read(origin)
        tries.append(known is not None)
        if tries.count(known is not None) < 3:
            raise EngineAwayError("Valkey does not answer")
        return known

    view = SimpleNamespace(rules=rules)
    monkeypatch.setattr(obedient.pipeline._rules, "_view", view)
    robots = obedient.pipeline._robots
    monkeypatch.setattr(robots, "_to", replace(robots._to, view=view))
    obedient.run(lambda: obedient.crawl(HOME))
    assert tries == [False] * 3 + [True] * 3
    assert obedient.failures == []
    assert obedient.fetcher.urls == [ROBOTS, HOME]
    assert kinds(obedient)["fetch_ok"] == 1
    assert kinds(obedient)["warning"] == 0


def test_a_bug_costs_one_page_is_told_and_hurries_nobody(worker: Worker) -> None:
    """H5, P2: caught in one place; the crawl goes on, the host keeps its rest, the page is not tried for ever."""
    worker.script(answer(HOME, 200, linking("/1")))
    worker.script(answer("https://a.test/2", 200, linking()), answer("https://b.test/", 404))

    async def main() -> None:
        worker.broken_parser = True
        await worker.crawl(HOME)
        worker.broken_parser = False
        await worker.crawl("https://a.test/2", "https://b.test/")
        assert worker.story(HOME).state == "dead_letter"
        assert worker.story("https://a.test/2").state == "stored_pending"

    worker.run(main)
    assert worker.fetcher.urls.count(HOME) == 1
    asked = [at for at, url in zip(worker.fetcher.at, worker.fetcher.urls, strict=True) if "a.test" in url]
    assert asked[1] - asked[0] >= 1000
    (event,) = [event for event in worker.recorder.events if event.kind is EventKind.WARNING]
    assert event.reason == "bug"
    assert "ZeroDivisionError: a bug of ours" in event.detail
    assert worker.failures == []
    assert worker.allowance.taken == worker.allowance.given


def test_a_bug_while_settling_disowns_the_capture(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3, D2, W3: it holds up nothing that comes after it, and nothing refers to it."""
    worker.script(answer(HOME, 200, linking("/1")), answer("https://b.test/", 200, linking("/1")))

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        settle = worker.frontier.settle
        calls = 0

        async def broken(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise KeyError("broken")
            return await settle(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(worker.frontier, "settle", broken)
        await worker.work(lease)
        assert worker.story(HOME).state == "dead_letter"
        await worker.crawl("https://b.test/")

    worker.run(main)
    assert worker.ledger.outstanding == set()
    assert worker.ledger.disowned == [100]
    assert worker.archive.captures[1].revisit_of is None


def test_a_bug_before_settling_disowns_the_capture(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3, W3: from when it lies in the archive, it holds up nothing that comes after it."""
    worker.script(answer(HOME, 200, linking("/1")))

    def broken(*_: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(worker.pipeline._to.near, "remember", broken)
    worker.run(lambda: worker.crawl(HOME))
    assert worker.ledger.outstanding == set()
    assert worker.ledger.disowned == [100]


def test_a_bug_while_a_list_is_read_or_robots_txt_is_settled_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, X3, W3: what was appended and is nobody's is disowned, or nothing after it would ever be confirmed."""
    worker = Worker(tmp_path, robots=True, sitemaps=SitemapSettings(guess=False))
    sitemap = b"<urlset><url><loc>https://a.test/1</loc></url></urlset>"
    worker.script(answer(f"{HOME}s.xml", 200, sitemap, headers={"content-type": "application/xml"}))
    clause = worker.pipeline._to.lists
    assert clause is not None

    def broken(*_: object) -> None:
        raise KeyError("broken")

    async def main() -> None:
        await worker.admit(f"{HOME}s.xml")
        with monkeypatch.context() as patch:
            patch.setattr(clause.lists, "announced", broken)
            await worker.work(*await worker.claim())
        assert (worker.ledger.outstanding, worker.ledger.disowned) == (set(), [100])
        await asyncio.sleep(301)
        await worker.work(*await worker.claim())  # robots.txt, once more
        await asyncio.sleep(2)
        with monkeypatch.context() as patch:
            patch.setattr(clause, "_admit", broken)
            await worker.work(*await worker.claim())
        assert worker.story(f"{HOME}s.xml").state == "dead_letter"

    worker.run(main)
    assert len(worker.archive.captures) == 3
    assert worker.ledger.outstanding == set()
    assert worker.ledger.disowned == [100, 300]
    assert worker.failures == []


def test_a_bug_while_a_row_is_made_settles_nothing(obedient: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3, N3, W3: what cannot be listed does not count as done. It keeps no other from being confirmed either."""
    obedient.script(answer(HOME, 200, linking()))

    def broken(*_: object, **__: object) -> None:
        raise KeyError("broken")

    async def main() -> None:
        await obedient.admit(HOME)
        for row, wait_s in (("robots.robots_row", 301), ("", 2), ("concluding.capture_row", 2)):
            with monkeypatch.context() as patch:
                if row:
                    patch.setattr(f"nephila.pipeline.{row}", broken)
                await obedient.work(*await obedient.claim())
            await asyncio.sleep(wait_s)
        assert obedient.story(HOME).state == "dead_letter"

    obedient.run(main)
    assert [capture.fetched.url for capture in obedient.archive.captures] == [ROBOTS, ROBOTS, HOME]
    assert obedient.ledger.outstanding == set()
    assert obedient.ledger.disowned == [100, 300]
    assert [row.url for row in obedient.ledger.rows] == [ROBOTS]
    assert obedient.failures == []


def test_a_bug_while_settling_what_has_no_content_costs_one_page_too(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H5, D2: the index on disk knows no content that is nothing, and is not asked to forget it."""
    worker.script(answer(HOME, 404))
    contents = LmdbDigestIndex(tmp_path / "contents", "boot")
    worker.pipeline._to = replace(worker.pipeline._to, duplicates=contents)

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        settle, calls = worker.frontier.settle, list[object]()

        async def broken(*arguments: object) -> object:
            calls.append(arguments)
            if len(calls) == 1:
                raise KeyError("broken")
            return await settle(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(worker.frontier, "settle", broken)
        await worker.work(lease)
        assert worker.story(HOME).state == "dead_letter"

    worker.run(main)
    contents.close()
    assert worker.failures == []
    assert worker.ledger.disowned == [100]


def test_a_full_disk_ends_the_crawl_and_loses_nothing(worker: Worker) -> None:
    """W2, F10: what was settled stays, what was not is fetched again when there is room."""
    worker.script(answer(HOME, 200, linking("/1")), answer("https://a.test/1", 200, linking("/2")))

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        await worker.work(lease)
        worker.archive.full = True
        await asyncio.sleep(2)
        await worker.crawl()
        assert [type(error) for error in worker.failures] == [StorageError]
        assert worker.story("https://a.test/1").state == "in_progress"
        worker.archive.full = False
        worker.failures.clear()
        await worker.frontier.reap_all()
        await worker.crawl()
        assert worker.story("https://a.test/2").state == "stored_pending"

    worker.run(main)
    assert kinds(worker)["warning"] == 0
    assert worker.ledger.outstanding == set()


def test_a_frontier_that_refuses_ends_the_crawl(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """F10: it is fatal, not a bug of one page."""
    worker.script(answer(HOME, 200, linking("/1")))

    async def refusing(*_: object) -> None:
        raise FrontierError("corrupt")

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        monkeypatch.setattr(worker.frontier, "settle", refusing)
        await worker.work(lease)

    worker.run(main)
    assert [str(error) for error in worker.failures] == ["corrupt"]


TROUBLES = [MemoryShortageError(), MemoryError(), EngineAwayError("gone"), EngineRefusedError("no")]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_a_user_can_mend_costs_no_page(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    """F3, F10, N4: the page is not given up for it; what lies in the archive waits to be looked at again."""
    worker.script(answer(HOME, 200, linking("/1")))

    async def main() -> None:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        settle, calls = worker.frontier.settle, list[object]()

        async def short(*arguments: object) -> object:
            calls.append(arguments)
            if len(calls) == 1:
                raise trouble
            return await settle(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(worker.frontier, "settle", short)
        await worker.work(lease)
        assert worker.story(HOME).state == "in_progress"

    worker.run(main)
    expected = trouble if isinstance(trouble, NephilaError) else MemoryShortageError()
    assert [str(failure) for failure in worker.failures] == [str(expected)]
    assert worker.ledger.outstanding == {100}
    assert worker.ledger.disowned == []
    assert kinds(worker)["warning"] == 0


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_a_user_can_mend_leaves_robots_txt_for_the_next_run(
    obedient: Worker, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    """F3, F10, C4: it is not refused, or it would lie in the archive and be in no index."""

    async def refusing(*_: object) -> None:
        raise trouble

    async def main() -> None:
        await obedient.admit(HOME)
        (lease,) = await obedient.claim()
        with monkeypatch.context() as patch:
            patch.setattr(obedient.frontier, "settle", refusing)
            await obedient.work(lease)

    obedient.run(main)
    assert [capture.fetched.url for capture in obedient.archive.captures] == [ROBOTS]
    assert len(obedient.failures) == 1
    assert obedient.ledger.outstanding == {100}
    assert obedient.ledger.disowned == []

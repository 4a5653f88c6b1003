"""Lists in the sentence: how they are asked for, what is believed of them, what becomes of their entries."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from worker import Worker, address, answer, page_task

from nephila.model.errors import EngineAwayError
from nephila.model.events import EventKind
from nephila.model.exchange import Fetched
from nephila.model.listing import ListNote
from nephila.model.outcome import OriginRules, RulesKind
from nephila.model.settings import FrontierSettings, PolitenessSettings, RobotsSettings, SitemapSettings
from nephila.model.task import Candidate, Lease, Pace, Token
from nephila.pipeline.listed import READ_OUT
from nephila.pipeline.lists import Formats, Lists
from nephila.politeness import StandardPoliteness

SITE = "https://a.example"
SETTINGS = SitemapSettings()
QUIET = replace(SETTINGS, guess=False)


def urlset(*entries: str) -> bytes:
    return f"<urlset>{''.join(f'<url>{entry}</url>' for entry in entries)}</urlset>".encode()


def served(url: str, body: bytes, content_type: str = "application/xml", **headers: str) -> Fetched:
    return answer(url, body=body, headers={"content-type": content_type, **headers})


def robots(text: str, origin: str = SITE) -> Fetched:
    return served(f"{origin}/robots.txt", text.encode(), "text/plain")


def crawled(worker: Worker, *seeds: str, told: tuple[str, ...] = ()) -> list[Any]:
    """Crawl from seeds to the end; what is known of these URLs then."""

    async def crawl() -> list[Any]:
        await worker.crawl(*seeds)
        return [worker.frontier.story(address(url).host, address(url).fingerprint) for url in told]

    found: list[Any] = worker.run(crawl)
    return found


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    made = Worker(tmp_path, robots=True, sitemaps=QUIET, scope="domain")
    made.fetcher.script[f"{SITE}/"] = [answer(f"{SITE}/", body=b"<p>home")]
    return made


def test_what_robots_names_is_read_whatever_it_is_called(worker: Worker) -> None:
    """X3, H2: any type, up to the protocol's own limit; its entries were found in it, one hop from a seed."""
    named = f"{SITE}/some/where?list=1"
    worker.fetcher.script[f"{SITE}/robots.txt"] = [robots(f"Sitemap: {named}")]
    worker.fetcher.script[named] = [served(named, f"{SITE}/p1\n{SITE}/p2\n".encode(), "text/plain")]
    (found,) = crawled(worker, f"{SITE}/", told=(f"{SITE}/p1",))
    (asked,) = [request for request in worker.fetcher.asked if request.url == named]
    assert (asked.accept_types, asked.max_body_bytes) == (None, SETTINGS.max_bytes)
    assert (found.depth, found.via) == (1, named)
    (event,) = [event for event in worker.recorder.events if event.kind is EventKind.LISTED]
    assert (event.reason, dict(event.counts)["added"]) == ("text_sitemap", 2)
    assert [page.task.url for page in worker.delivered] == [f"{SITE}/"]


def test_a_page_may_turn_out_to_be_a_feed_and_other_xml_is_dropped(worker: Worker) -> None:
    """X3, H7: types of lists are read along; what is none is kept no more than before."""
    home = b'<link rel=alternate type="application/rss+xml" href="/feed"><a href="/data.php">data</a>'
    worker.fetcher.script[f"{SITE}/"] = [answer(f"{SITE}/", body=home)]
    rss = b"<rss><channel><item><link>https://a.example/item</link></item></channel></rss>"
    worker.fetcher.script[f"{SITE}/feed"] = [served(f"{SITE}/feed", rss)]
    worker.fetcher.script[f"{SITE}/data.php"] = [served(f"{SITE}/data.php", b"<data><loc>/x</loc></data>")]
    (item,) = crawled(worker, f"{SITE}/", told=(f"{SITE}/item",))
    assert item.via == f"{SITE}/feed"
    kept = {capture.task.url: capture.fetched for capture in worker.archive.captures}
    assert kept[f"{SITE}/feed"].body == rss
    assert kept[f"{SITE}/data.php"].unwanted
    assert kept[f"{SITE}/data.php"].body == b""


def test_an_index_leads_to_sitemaps_of_any_name_and_type(worker: Worker) -> None:
    """X3: compressed, text, and with an ending that no page has."""
    index = f"{SITE}/index.xml"
    worker.fetcher.script[f"{SITE}/robots.txt"] = [robots("Sitemap: /index.xml")]
    children = [f"{SITE}/one.gz", f"{SITE}/two", f"{SITE}/three.zip"]
    body = "<sitemapindex>" + "".join(f"<sitemap><loc>{one}</loc></sitemap>" for one in children) + "</sitemapindex>"
    worker.fetcher.script[index] = [served(index, body.encode())]
    packed = gzip.compress(urlset(f"<loc>{SITE}/a</loc>"))
    worker.fetcher.script[children[0]] = [served(children[0], packed, "application/octet-stream")]
    worker.fetcher.script[children[1]] = [served(children[1], f"{SITE}/b".encode(), "text/plain")]
    worker.fetcher.script[children[2]] = [served(children[2], urlset(f"<loc>{SITE}/c</loc>"))]
    *pages, one, two, three = crawled(worker, f"{SITE}/", told=(*(f"{SITE}/{name}" for name in "abc"), *children))
    assert [page.via for page in pages] == children
    assert (one.depth, two.depth, three.depth) == (2, 2, 2)


def test_a_sitemap_speaks_for_its_directory_and_for_who_names_it(worker: Worker) -> None:
    """X3: elsewhere its entries are links like any other, without a bonus and out of scope where links are."""
    own = f"{SITE}/blog/sitemap.xml"
    worker.fetcher.script[own] = [
        served(own, urlset(f"<loc>{SITE}/blog/a</loc>", f"<loc>{SITE}/b</loc>", "<loc>https://other.example/c</loc>"))
    ]
    (other,) = crawled(worker, own, f"{SITE}/", told=("https://other.example/c",))
    (event,) = [event for event in worker.recorder.events if event.kind is EventKind.LISTED]
    counts = dict(event.counts)
    assert (counts["entries"], counts["elsewhere"], counts["refused"]) == (3, 2, 1)
    assert other.reason == "scope"


def test_whom_a_sitemap_speaks_for_waits_for_an_engine_that_is_away(worker: Worker) -> None:
    """N4, X3: its entries are taken once, as if nothing had been."""
    own = f"{SITE}/blog/sitemap.xml"
    worker.fetcher.script[own] = [served(own, urlset(f"<loc>{SITE}/b</loc>"))]
    read, tries = worker.frontier.rules, list[str]()

    def rules(origin: str) -> OriginRules | None:
        tries.append(origin)
        if len(tries) < 3:
            raise EngineAwayError("Valkey does not answer")
        return read(origin)

    assert worker.pipeline._to.lists is not None
    worker.pipeline._to.lists._view = SimpleNamespace(rules=rules)  # type: ignore[assignment]
    crawled(worker, own)
    (event,) = [event for event in worker.recorder.events if event.kind is EventKind.LISTED]
    assert (tries, dict(event.counts)["entries"], dict(event.counts)["elsewhere"]) == ([SITE] * 3, 1, 1)
    assert worker.failures == []


@pytest.mark.parametrize(
    ("entry", "points"),
    [
        ("<loc>{}/p</loc>", 15),
        ("<loc>{}/p</loc><priority>1.0</priority>", 20),
        ("<loc>{}/p</loc><priority>0</priority>", 10),
        ("<loc>{}/p</loc><news:news><news:publication_date>2026-01-01</news:publication_date></news:news>", 35),
        ("<loc>{}/p</loc><news:news><news:publication_date>2025-11-01</news:publication_date></news:news>", 15),
    ],
)
def test_being_listed_is_worth_points(worker: Worker, entry: str, points: int) -> None:
    """R1, X3: in a sitemap +15, news +20, priority a little either way."""
    taken: list[Candidate] = []
    admit = worker.frontier.admit

    async def noting(candidates: Any, *rest: Any) -> Any:
        taken.extend(candidates)
        return await admit(candidates, *rest)

    worker.frontier.admit = noting  # type: ignore[method-assign]
    own = f"{SITE}/sitemap.xml"
    worker.fetcher.script[own] = [served(own, urlset(entry.format(SITE)))]
    worker.run(lambda: worker.crawl(own))
    assert [one.bonus for one in taken if one.address.url == f"{SITE}/p"] == [points]


def test_a_sitemap_on_another_host_speaks_for_the_site_whose_robots_names_it(tmp_path: Path) -> None:
    """X3: cross-submission; for a third site, which does not name it, it does not."""
    worker = Worker(tmp_path, robots=True, sitemaps=QUIET)
    taken: dict[str, int] = {}
    admit = worker.frontier.admit

    async def noting(candidates: Any, *rest: Any) -> Any:
        taken.update({one.address.url: one.bonus for one in candidates})
        return await admit(candidates, *rest)

    worker.frontier.admit = noting  # type: ignore[method-assign]
    far = "https://cdn.example/lists/a.xml"
    worker.fetcher.script[f"{SITE}/robots.txt"] = [robots(f"Sitemap: {far}")]
    worker.fetcher.script[f"{SITE}/"] = [answer(f"{SITE}/", body=b"<p>home")]
    worker.fetcher.script[far] = [served(far, urlset(f"<loc>{SITE}/p</loc>", "<loc>https://third.example/q</loc>"))]
    crawled(worker, f"{SITE}/")
    assert (taken[f"{SITE}/p"], taken["https://third.example/q"]) == (15, 0)


def test_a_later_lastmod_makes_a_page_due_unless_it_is_not_to_be_believed(worker: Worker) -> None:
    """X3, R2: what says so a thousand years ahead, or of another site, changes nothing."""
    own = f"{SITE}/sitemap.xml"
    listed = [f"<loc>{SITE}/{name}</loc>" for name in ("now", "later", "never")]
    first = served(own, urlset(*listed), etag='"1"')
    dates = ("2026-01-01T12:00:00Z", "2096-01-01", "2020-01-01")
    second = served(own, urlset(*(f"{one}<lastmod>{date}</lastmod>" for one, date in zip(listed, dates, strict=True))))
    worker.fetcher.script[own] = [first, second]
    for name in ("now", "later", "never"):
        worker.fetcher.script[f"{SITE}/{name}"] = [answer(f"{SITE}/{name}", body=b"<p>" + name.encode())]

    async def crawl() -> None:
        await worker.crawl(own)
        worker.clock.advance(86_400 + 60)
        await worker.crawl()

    worker.run(crawl)
    twice = {url for url in worker.fetcher.urls if worker.fetcher.urls.count(url) == 2}
    assert twice == {f"{SITE}/now", own, f"{SITE}/robots.txt"}
    last = [event for event in worker.recorder.events if event.kind is EventKind.LISTED][-1]
    assert dict(last.counts)["renewed"] == 1
    assert dict(last.counts)["in_the_future"] == 1


def test_a_list_of_seeds_widens_the_scope(worker: Worker) -> None:
    """S1, S2: entries of a document that was given as seeds are seeds: depth 0, and in scope."""
    own = f"{SITE}/list.txt"
    worker.fetcher.script[own] = [served(own, b"# seeds\nhttps://b.example/x\nhttps://c.example/y\n", "text/plain")]
    worker.listings.keep(address(own).fingerprint, ListNote("", seeds=True))
    (seed,) = crawled(worker, own, told=("https://b.example/x",))
    assert seed.depth == 0
    assert worker.scope.judge(address("https://c.example/another"), 3) is None


def test_the_sitemap_that_nobody_named_is_tried_where_it_may_be(tmp_path: Path) -> None:
    """X3, P1: once for each host, not where robots.txt names another or forbids it; a 404 is no error."""
    worker = Worker(tmp_path, robots=True, sitemaps=SETTINGS)
    sites = {
        "https://open.example": "",
        "https://closed.example": "User-agent: *\nDisallow: /sitemap",
        "https://named.example": "Sitemap: https://named.example/s.xml",
    }
    for origin, text in sites.items():
        worker.fetcher.script[f"{origin}/robots.txt"] = [robots(text, origin)]
        worker.fetcher.script[f"{origin}/"] = [answer(f"{origin}/", body=b"<p>home of " + origin.encode())]
    worker.run(lambda: worker.crawl(*(f"{origin}/" for origin in sites)))
    asked = [url for url in worker.fetcher.urls if url.endswith("/sitemap.xml")]
    assert asked == ["https://open.example/sitemap.xml"]
    assert [row.url for row in worker.ledger.errors] == ["https://named.example/s.xml"]


def test_lists_that_robots_names_belong_to_it_alone() -> None:
    """X3: `Sitemap` lines may be relative, repeated, or no addresses at all."""
    politeness = StandardPoliteness(PolitenessSettings(), RobotsSettings(), FrontierSettings(), "Nephila (+x)")
    body = b"Sitemap: /a.xml\nSITEMAP: https://cdn.example/b.xml#x\nSitemap: /a.xml\nSitemap: mailto:x\nSitemap:\n"
    rules = OriginRules(SITE, RulesKind.RULES, body, 1, 1)
    assert politeness.sitemaps(rules) == (f"{SITE}/a.xml", "https://cdn.example/b.xml")
    assert politeness.sitemaps(replace(rules, kind=RulesKind.ALLOW_ALL)) == ()


def test_what_a_page_names_is_expected_to_be_a_list_once_that_page_has_become_an_index() -> None:
    """X3: whether a page is an index is asked once for all its links, and anew when it is read as one."""
    notes: dict[Any, ListNote] = {}
    asked: list[Any] = []

    def list_of(fingerprint: Any) -> ListNote | None:
        asked.append(fingerprint)
        return notes.get(fingerprint)

    politeness = StandardPoliteness(PolitenessSettings(), RobotsSettings(), FrontierSettings(), "Nephila (+x)")
    anything: Any = SimpleNamespace(list_of=list_of)
    lists = Lists(SETTINGS, anything, politeness, anything, Formats(lambda _: None, anything), address, None)
    via = f"{SITE}/news"
    links = [replace(page_task(f"{SITE}/{name}"), via=via, depth=1) for name in "ab"]
    assert [lists.is_expected(link, None) for link in links] == [False, False]
    assert asked.count(address(via).fingerprint) == 1
    notes[address(via).fingerprint] = ListNote("sitemap_index")
    lists.has_become_list(via)
    assert [lists.is_expected(link, None) for link in links] == [True, True]


def test_a_304_of_a_list_is_no_page(worker: Worker) -> None:
    """X3, H3: it is known to be a list, and stays one."""
    own = f"{SITE}/sitemap.xml"
    worker.listings.keep(address(own).fingerprint, ListNote("sitemap", 5, 7))
    task = page_task(own, validators=replace(page_task(own).validators, etag='"1"'), digest=b"d" * 32)
    judged = worker.judge.judge(task, answer(own, 304))
    assert judged.listing == "sitemap"
    worker.run(worker.claim)


def test_so_many_lists_at_once_and_the_others_wait_a_moment(tmp_path: Path) -> None:
    """Q5, X3: nothing is sent, no retry is used, and all are read in the end."""
    worker = Worker(tmp_path, sitemaps=replace(QUIET, at_once=1))
    lists = [f"https://{name}.example/sitemap.xml" for name in "abc"]
    for url in lists:
        worker.fetcher.script[url] = [served(url, urlset(f"<loc>{url[:-11]}page</loc>"))]
    busy: list[int] = []

    async def crawl() -> None:
        await worker.admit(*lists)
        leases = await worker.claim()
        await asyncio.gather(*(worker.work(lease) for lease in leases))
        busy.append(len(worker.fetcher.asked))
        await worker.crawl()

    worker.run(crawl)
    assert busy == [1]
    assert sorted(url for url in worker.fetcher.urls if url in lists) == lists
    assert not [row.url for row in worker.ledger.errors if row.url in lists]


def test_a_stop_does_not_wait_for_a_long_list(tmp_path: Path) -> None:
    """F10, X3: the list is given back, and what it had brought so far stays known."""
    worker = Worker(tmp_path, sitemaps=QUIET)
    own = "https://a.example/sitemap.xml"
    body = urlset(*(f"<loc>https://a.example/{n}</loc>" for n in range(READ_OUT + 1000)))
    worker.fetcher.script[own] = [served(own, body)]
    admit = worker.frontier.admit
    batches = 0

    async def stopping(*arguments: Any) -> Any:
        nonlocal batches
        batches += 1
        worker.pipeline.stopping = batches >= 2
        return await admit(*arguments)

    async def crawl() -> Any:
        await worker.admit(own)
        (lease,) = await worker.claim()
        worker.frontier.admit = stopping  # type: ignore[method-assign]
        await worker.work(lease)
        where = address(own)
        return worker.frontier.story(where.host, where.fingerprint), worker.frontier.snapshot()

    story, snapshot = worker.run(crawl)
    assert (story.state, worker.ledger.outstanding) == ("queued", set())
    assert len(worker.ledger.disowned) == 1
    assert snapshot.hosts_leased == 0
    assert READ_OUT <= snapshot.urls - 1 < READ_OUT + 1000


def test_changefreq_is_the_first_interval_until_it_proves_wrong(worker: Worker) -> None:
    """X3, R2: as the list says, while the host is believed in that; a warning says when it is not any more."""
    own, page = f"{SITE}/sitemap.xml", f"{SITE}/p"
    worker.fetcher.script[f"{SITE}/robots.txt"] = [robots(f"Sitemap: {own}")]
    worker.fetcher.script[own] = [served(own, urlset(f"<loc>{page}</loc><changefreq>hourly</changefreq>"))]
    worker.fetcher.script[page] = [answer(page, body=b"<p>some text")]
    (found,) = crawled(worker, f"{SITE}/", told=(page,))
    assert found.interval_s == 3600
    clause, task = worker.pipeline._to.lists, page_task(page)
    assert clause is not None
    lease = Lease(Token(1), "a.example", "a.example", (task,), 0, 0, Pace(0))
    assert clause.expected_s("a.example", task.fingerprint) == 3600
    for _ in range(SETTINGS.evidence + 1):
        worker.clock.advance(7200.0)
        clause.visited(lease, task, b"the same", same=True)
    assert clause.expected_s("a.example", task.fingerprint) == 0
    told = [event.reason for event in worker.recorder.events if event.kind is EventKind.WARNING]
    assert told == ["changefreq_lies"]
    assert worker.listings.site("a.example").missed == 0, "of dates nothing was said"


def test_a_priority_counts_against_the_others_of_its_host(worker: Worker) -> None:
    """X3, R1: a site that calls everything important gains nothing by it."""
    own = f"{SITE}/sitemap.xml"
    entries = [f"<loc>{SITE}/p{number}</loc><priority>1.0</priority>" for number in range(200)]
    worker.fetcher.script[f"{SITE}/robots.txt"] = [robots(f"Sitemap: {own}")]
    worker.fetcher.script[own] = [served(own, urlset(*entries))]
    admitted: list[Candidate] = []
    really = worker.frontier.admit

    async def admit(candidates: Any, *rest: Any, **more: Any) -> Any:
        admitted.extend(candidates)
        return await really(candidates, *rest, **more)

    worker.frontier.admit = admit  # type: ignore[method-assign]
    crawled(worker, f"{SITE}/")
    points = {one.address.url: one.bonus for one in admitted if "/p" in one.address.url}
    assert points[f"{SITE}/p0"] == 20
    assert points[f"{SITE}/p199"] == 15
    assert worker.listings.site("a.example").priorities == 200

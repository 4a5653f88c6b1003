"""A web with pages that say nearly the same: all of them are marked with their original, and no other page is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import pytest
from crashes import World
from near_reference import compared
from served import records
from simulation import PATIENT, Simulated, simulate
from warc_checks import check_archives

import nephila
from nephila.model.events import NEAR, EventKind
from nephila.model.settings import DedupSettings, Settings
from nephila.node.ground import Ground
from nephila.node.inspect import open_view
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import Auditor, PageMix, Shop, SimulatedNetwork, SimulatedWeb, SitePage, WebSpec
from nephila.testing.web.truth import Expect
from nephila.testing.web.words import WORDS, SentenceBank

__all__ = ["compared"]

pytestmark = pytest.mark.usefixtures("compared")

SPEC = replace(WebSpec.standard(31), hosts=40, pages=3500, page_mix=PageMix(near=0.1))
"""A standard web with a tenth of near-copies, so that there are 2,000 honest pages beside them."""
SMALL = replace(WebSpec.standard(32), hosts=8, pages=100, page_mix=PageMix(near=0.3), page_bytes=1500)


def with_dedup(**changes: object) -> Settings:
    return replace(PATIENT, dedup=replace(DedupSettings(), **changes))  # type: ignore[arg-type]  # names of its fields


def marks(out: Path) -> dict[str, str]:
    """Pages that the catalogue marks, each with its original."""
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    rows = connection.execute("SELECT url, near_duplicate_of FROM pages WHERE near_duplicate_of != ''").fetchall()
    connection.close()
    return dict(rows)


def check_marks(web: SimulatedWeb, out: Path, stored: set[str], *, lossy: bool = False) -> tuple[int, int]:
    """Of each family all stored members but one are marked with that one, and nothing else; how many, of how many."""
    identity = {url: web.identify(url) or url for pair in marks(out).items() for url in pair}
    marked = {identity[url]: identity[original] for url, original in marks(out).items()}
    planted = 0
    for family in web.truth("Nephila").near_duplicates():
        members = family & stored
        originals = members - set(marked)
        assert len(originals) == (1 if members else 0), "one of a family is the original"
        for member in members - originals:
            assert marked.pop(member) in originals
            planted += 1
    for family in web.truth("Nephila").duplicates() if lossy else ():
        # What the index of digests lost in a crash is stored in full: then it is marked as what it is, near at least.
        marked = {url: original for url, original in marked.items() if not {url, original} <= family}
    assert marked == {}, "none but planted ones"
    return planted, len(stored)


def stored_whole(simulated: Simulated | World) -> set[str]:
    truth = simulated.web.truth("Nephila")
    return set(truth.urls(Expect.PAGE, Expect.RECOVERS))


def test_all_planted_near_duplicates_are_marked_and_no_honest_page(tmp_path: Path, say: Callable[[str], None]) -> None:
    """D3, W3, O1: in the catalogue, in the archive, in the events, in the summary and by `why`."""
    simulated = simulate(SimulatedWeb(SPEC), tmp_path / "crawl")
    stored = stored_whole(simulated)
    planted, pages = check_marks(simulated.web, tmp_path / "crawl", stored)
    honest = pages - planted
    say(f"{planted} of {planted} planted near-duplicates marked, 0 false marks among {honest} other pages")
    assert planted > 150
    assert honest > 2_000
    told = [event for event in simulated.recorder.events if event.kind is EventKind.DUPLICATE and event.reason == NEAR]
    assert len(told) == simulated.summary.near_duplicates == planted
    assert {(event.url, event.detail) for event in told} == set(marks(tmp_path / "crawl").items())
    notes = 0
    for _, record, block in records(tmp_path / "crawl"):
        notes += record.rec_type == "metadata" and b"note-nearDuplicateOf: " in block
    assert notes == planted
    url, original = next(iter(marks(tmp_path / "crawl").items()))
    answer = open_view(tmp_path / "crawl").why(url)
    assert ("nearly the same", f"as {original}, which was stored before") in answer.lines
    assert [one["near_duplicate_of"] for one in answer.data["captures"]] == [original]  # type: ignore[attr-defined]
    connection = sqlite3.connect(f"file:{tmp_path}/crawl/catalogue.sqlite?mode=ro", uri=True)
    (hashed,) = connection.execute("SELECT count(simhash) FROM pages").fetchone()
    connection.close()
    assert hashed > 0.95 * pages, "all but the shortest"


def test_pages_of_a_second_cycle_are_not_near_to_themselves(tmp_path: Path) -> None:
    """D3, R2: what changed a little is still an original, and a near-duplicate keeps its original."""
    web, clock = SimulatedWeb(replace(SMALL, wire=replace(SMALL.wire, changing=0.0))), VirtualClock()
    auditor = Auditor(web)
    simulated = simulate(web, tmp_path / "crawl", clock=clock, auditor=auditor)
    stored = stored_whole(simulated)
    first = check_marks(web, tmp_path / "crawl", stored), marks(tmp_path / "crawl")
    clock.advance(2 * 86_400)
    auditor.new_cycle()
    again = simulate(web, tmp_path / "crawl", new_cycle=True, clock=clock, auditor=auditor)
    assert again.summary.pages > len(stored) // 2
    assert (check_marks(web, tmp_path / "crawl", stored), marks(tmp_path / "crawl")) == first


def test_bodies_of_near_duplicates_are_left_out_on_request(tmp_path: Path) -> None:
    """D3, W1: headers, links and marks stay; the record says that it is cut, and readers of WARC files accept it."""
    web = SimulatedWeb(SMALL)
    kept = simulate(web, tmp_path / "kept")
    simulated = simulate(web, tmp_path / "crawl", with_dedup(near_store=False))
    stored = stored_whole(simulated)
    planted, _ = check_marks(web, tmp_path / "crawl", stored)
    assert planted == check_marks(web, tmp_path / "kept", stored)[0] > 10
    assert simulated.summary.pages == kept.summary.pages
    near = marks(tmp_path / "crawl")
    empty = set()
    for _, record, block in records(tmp_path / "crawl"):
        url = record.rec_headers.get("WARC-Target-URI")
        if record.rec_type == "response" and url in near and b" 200 " in block[:15]:
            assert record.rec_headers.get("WARC-Truncated") == "unspecified"
            assert block.endswith(b"\r\n\r\n"), "the headers, and nothing after them"
            empty.add(url)
    assert empty == set(near)
    check_archives(tmp_path / "crawl")


def test_links_of_near_duplicates_are_refused_on_request(tmp_path: Path) -> None:
    """D3, T8: they are not queued, they are counted, and `why` knows."""
    simulated = simulate(SimulatedWeb(SMALL), tmp_path / "crawl", with_dedup(near_follow=False))
    refused = [event for event in simulated.recorder.events if event.reason == "near_duplicate"]
    assert simulated.summary.refused["near_duplicate"] == len(refused) > 10
    assert {event.via for event in refused} <= set(marks(tmp_path / "crawl"))


def test_readers_of_the_library_are_told(tmp_path: Path) -> None:
    """D3, E2: a page knows what it is near to."""
    web, clock = SimulatedWeb(SMALL), VirtualClock()

    def ground() -> Ground:
        network = SimulatedNetwork(web, clock, Auditor(web))
        return Ground(clock, network, network, threaded=False)

    async def main() -> dict[str, str]:
        given = {"scope": "all", "allow_address": ["127.0.0.0/8"], "frontier__sync": False, "max_wait": 3600}
        stream = nephila.crawl(*web.seeds(), out=tmp_path / "crawl", ground=ground, **given)
        return {page.url: page.near_duplicate_of async for page in stream if page.near_duplicate_of}

    told = run_virtual(main, clock)
    assert told == marks(tmp_path / "crawl")
    assert len(told) > 10


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    """D3: nothing is compared, nothing is kept for it."""
    simulated = simulate(SimulatedWeb(SMALL), tmp_path / "crawl", with_dedup(near=False))
    assert simulated.summary.near_duplicates == 0
    assert marks(tmp_path / "crawl") == {}
    assert not (tmp_path / "crawl" / "near").exists()


def test_the_plain_rule_goes_by_the_hash_alone(tmp_path: Path) -> None:
    """D3: distance 3, whatever the sketches say: every mark is that near, and among them are planted ones."""
    simulated = simulate(SimulatedWeb(SMALL), tmp_path / "crawl", with_dedup(near_plain=True, near_resemblance=1.0))
    told = [event for event in simulated.recorder.events if event.reason == NEAR]
    assert {event.counts[0][1] for event in told} <= {0, 1, 2, 3}
    assert sum("/versions/" in event.url and "/versions/" in event.detail for event in told) > 10


@dataclass(frozen=True, slots=True)
class TemplateShop:
    """A shop whose products say all the same but for a name, each found on a list."""

    site: Shop = Shop(products=400, per_list=100, related=0)
    label: str = "templates"

    @property
    def real_pages(self) -> int:
        return self.site.real_pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        page = self.site.page(target, bank)
        if page is None or not target.startswith("/product/"):
            return page
        name = WORDS[int(target.rpartition("/")[2]) % len(WORDS)]
        return page._replace(text=f"{' '.join(bank.passages(5, 9000))} The {name}, and nothing else.")


@dataclass(frozen=True, slots=True)
class RelatedShop:
    """A shop whose products have a title, a line of their own and long notices, and are found through each other."""

    site: Shop = Shop(products=400, per_list=50, related=8)
    label: str = "related"

    @property
    def real_pages(self) -> int:
        return self.site.real_pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        page = self.site.page(target, bank)
        if page is None or not target.startswith("/product/"):
            return page
        number = int(target.rpartition("/")[2])
        name = f"{WORDS[number % len(WORDS)]} {WORDS[number // len(WORDS)]}"
        return page._replace(title=f"{name} in our shop", text=f"The {name}. {' '.join(bank.passages(6, 9000))}")


@dataclass(frozen=True, slots=True)
class WordMaze:
    """Pages that lead to ever more of their like, each with another word in a long text."""

    label: str = "words"
    real_pages: int = 1

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        text = " ".join(bank.passages(6, 9000))
        if target == "/":
            return SitePage("Home", "Come in.", ["/r/aaaaaaaaaaaaaaaa"], "/")
        mark = blake2b(target.encode(), digest_size=8)
        word = WORDS[mark.digest()[0] % len(WORDS)]
        mark.update(b"next")
        return SitePage("Room", f"{text} A {word}.", [f"/r/{mark.hexdigest()}", f"/r/{mark.hexdigest()[::-1]}"])


def test_products_of_one_template_are_fetched_and_a_maze_of_such_pages_is_not(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """D3, T2: all of the shop is marked and none of it is held back; what feeds itself with near-copies is stopped."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(TemplateShop(), WordMaze())))
    unbudgeted = replace(PATIENT, budget=replace(PATIENT.budget, first_urls=10**6))
    crawled = simulate(web, tmp_path / "crawl", unbudgeted, seeds=web.trap_seeds())
    shop, maze = crawled.traps["templates-0.test"], crawled.traps["words-1.test"]
    say(f"shop: {shop.found} of {shop.real_pages} found; maze: {maze.requests} fetched")
    assert shop.found == shop.requests == shop.real_pages
    near = marks(tmp_path / "crawl")
    assert sum("templates" in url for url in near) > 380
    assert maze.requests < 200
    assert crawled.summary.traps > 0


def test_products_of_one_template_that_are_found_through_each_other_are_fetched(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """D3, T2: nearly all of them are marked, each has a title of its own, and none is held back."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(RelatedShop(),)))
    unbudgeted = replace(PATIENT, budget=replace(PATIENT.budget, first_urls=10**6))
    crawled = simulate(web, tmp_path / "crawl", unbudgeted, seeds=web.trap_seeds())
    shop = crawled.traps["related-0.test"]
    say(f"shop: {shop.found} of {shop.real_pages} found")
    assert len(marks(tmp_path / "crawl")) > 300
    assert crawled.summary.traps == 0
    assert shop.found == shop.requests == shop.real_pages


@pytest.mark.parametrize("store", [True, False], ids=["with-bodies", "without"])
def test_a_crawl_that_dies_at_any_step_marks_the_same_when_it_goes_on(
    tmp_path: Path, store: bool, say: Callable[[str], None]
) -> None:
    """D3, F10: what is settled from the archive is near to what it was near to then, and never to itself."""
    settings = with_dedup(near_store=store)
    steps = 12
    for step in range(3, 800, 797 // steps):
        world = World(SimulatedWeb(SMALL), tmp_path / f"at-{step}", settings)
        ended = world.crawl(step)
        while ended is None:
            ended = world.crawl()
        planted, _ = check_marks(world.web, world.out, stored_whole(world), lossy=True)
        assert planted > 10
    say(f"{steps} crawls that died once mark {planted} pages each, as one that did not")

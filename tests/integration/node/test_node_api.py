"""Nephila as a library, on the simulated web under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulation import Recorder

import nephila
from nephila.api import PAGES_AHEAD, PageStream
from nephila.model.errors import CrawlDirectoryError, UsageError
from nephila.model.events import EventKind
from nephila.model.summary import StoppedBy
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.seeds import ArgumentSeeds, Seed
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import Auditor, SimulatedNetwork, SimulatedWeb, WebSpec

PAGES = 200
WEB = SimulatedWeb(WebSpec.plain(4, hosts=10, pages=PAGES, page_bytes=400, links_per_page=10))
FAILING = SimulatedWeb(WebSpec(7, hosts=12, pages=250, page_bytes=400, links_per_page=20))


class Library:
    """`nephila.crawl` on the simulated web."""

    def __init__(self, out: Path, web: SimulatedWeb = WEB) -> None:
        self.out = out
        self.web = web
        self.clock = VirtualClock()
        self.auditor = Auditor(web)
        self.recorder = Recorder()

    def crawl(self, *seeds: Any, **options: Any) -> PageStream:
        options = {"scope": "all", "allow_address": ["127.0.0.0/8"], "frontier__sync": False, **options}
        options.setdefault("listeners", [self.recorder])
        return nephila.crawl(*seeds, out=self.out, ground=self.ground, frontier__map_bytes=1 << 28, **options)

    def ground(self) -> Ground:
        network = SimulatedNetwork(self.web, self.clock, self.auditor)
        return Ground(self.clock, network, network, threaded=False)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def started() -> Any:
            return await main()

        return run_virtual(started, self.clock)

    def stored(self) -> int:
        return sum(event.is_page() for event in self.recorder.events)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "crawl")


def test_a_crawl_is_a_loop_over_its_pages(library: Library) -> None:
    """E2: url, status, headers, text, title and links of every page, and a summary at the end."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds())
        pages = {page.url: page async for page in stream}
        assert len(pages) == PAGES
        assert stream.summary is not None
        assert (stream.summary.pages, stream.summary.stopped_by) == (PAGES, StoppedBy.DONE)
        seed = pages[WEB.seeds()[0]]
        assert (seed.status, seed.depth, seed.via, seed.duplicate_of, seed.near_duplicate_of) == (200, 0, "", "", "")
        assert seed.body == WEB.expected_body(seed.url)
        assert seed.title
        assert seed.title in seed.text
        assert seed.links
        assert dict(seed.headers)["content-type"].startswith("text/html")
        others = [page for page in pages.values() if page.depth]
        assert all(page.via in pages for page in others)

    library.run(main)
    assert not library.auditor.report().violations


def test_what_is_handed_over_is_what_counts_as_a_page(tmp_path: Path) -> None:
    """E2: no answer that was cut off and is asked for again, none of a type that is not kept; each page once."""
    library = Library(tmp_path / "crawl", FAILING)

    async def main() -> None:
        stream = library.crawl(*FAILING.seeds(), max_wait=600, frontier__retry_waits_s="1,2,3")
        pages = [page async for page in stream]
        urls = [page.url for page in pages]
        assert {page.truncated for page in pages} >= {"", "disconnect"}
        assert len(urls) == len(set(urls))
        assert stream.summary is not None
        assert len(urls) == stream.summary.pages

    library.run(main)
    answers = [event for event in library.recorder.events if event.kind is EventKind.FETCH_OK and event.status == 200]
    assert {"reset", "unwanted_type"} <= {event.reason for event in answers}


def test_pages_that_have_not_changed_are_heard_of_and_not_handed_over(tmp_path: Path) -> None:
    """E2, H3: the summary counts them, and listeners are told; what has changed comes again."""
    spec = WebSpec.plain(4, hosts=4, pages=40, page_bytes=400, links_per_page=10)
    web = SimulatedWeb(replace(spec, wire=replace(spec.wire, validators=0.5)))
    library = Library(tmp_path / "crawl", web)

    async def main() -> None:
        await library.crawl(*web.seeds()).run()
        library.recorder.events.clear()
        stream = library.crawl(new_cycle=True)
        handed = [page.url async for page in stream]
        unchanged = [event.url for event in library.recorder.events if event.is_page() and event.status == 304]
        assert handed
        assert unchanged
        assert not set(handed) & set(unchanged)
        assert stream.summary is not None
        assert len(handed) + len(unchanged) == stream.summary.pages

    library.run(main)


def test_leaving_the_loop_stops_the_crawl_cleanly(library: Library) -> None:
    """E2, F10: what was stored is settled, what is queued stays, the next crawl goes on."""

    async def main() -> None:
        first = library.crawl(*WEB.seeds())
        async with first:
            async for _ in first:
                break
        assert first.summary is not None
        assert first.summary.stopped_by is StoppedBy.INTERRUPT
        assert first.summary.remaining > 0
        before = library.stored()
        assert first.summary.total_pages == before
        summary = await library.crawl().run()
        assert summary.total_pages == PAGES
        assert library.stored() == PAGES

    library.run(main)
    assert not library.auditor.report().violations


def test_an_exclude_that_comes_later_holds_for_what_is_queued(library: Library) -> None:
    """S2, T8: whoever sees where a crawl goes and stops it there gets no more of it; an include still lets it in."""

    async def main() -> None:
        await library.crawl(*WEB.seeds(), max_pages=20).run()
        before = library.stored()
        pages = [page.url async for page in library.crawl(max_pages=0, exclude=["/"], include=["site3"])]
        assert pages
        assert all("site3" in url for url in pages)
        assert library.stored() == before + len(pages)

    library.run(main)
    told = [event for event in library.recorder.events if event.kind is EventKind.EXCLUDED_BY_RULE]
    assert {(event.reason, event.detail) for event in told} == {("excluded", "/")}


def test_a_narrower_scope_needs_the_seeds_again(library: Library, tmp_path: Path) -> None:
    """S2: else nothing that is found would be in scope, without a word; a wider one follows from what is known."""
    whole = Library(tmp_path / "whole")

    async def main() -> None:
        await library.crawl(*WEB.seeds(), scope="domain", max_pages=2).run()
        with pytest.raises(UsageError, match="what --scope host allows is not known") as told:
            library.crawl(scope="host")
        assert "give the seeds again" in told.value.hint
        await library.crawl(*WEB.seeds(), scope="host", max_pages=4).run()
        await library.crawl(scope="host", max_pages=6).run()
        await library.crawl(scope="domain", max_pages=0).run()

    async def at_once() -> None:
        await whole.crawl(*WEB.seeds(), scope="domain").run()

    library.run(main)
    whole.run(at_once)
    assert library.stored() == whole.stored() > 6


def test_without_a_hop_the_seeds_alone_are_fetched(library: Library) -> None:
    """S3: a list of URLs is a crawl, too; neither links nor sitemaps add to it."""

    async def main() -> None:
        pages = [page.url async for page in library.crawl(*WEB.seeds(), max_depth=0)]
        assert sorted(pages) == sorted(WEB.seeds())

    library.run(main)


def test_what_earlier_runs_have_used_of_a_limit_counts_in_what_is_shown(library: Library) -> None:
    """S3, C4: as it counts for the end of the crawl; what is left to go is told by the pace of this run."""

    async def main() -> None:
        await library.crawl(*WEB.seeds(), max_pages=PAGES // 2).run()
        second = library.crawl(max_pages=PAGES)
        shares = [now.limit_share async for _ in second if (now := second.snapshot()) is not None]
        assert 0.5 < shares[0] < 0.6
        assert shares == sorted(shares)
        now = second.snapshot()
        assert now is not None
        assert (now.limit, now.limit_share, now.limit_left_s) == ("max-pages", 1.0, 0.0)

    library.run(main)


def test_a_loop_that_is_merely_left_ends_with_its_event_loop(library: Library) -> None:
    """E2: nobody has to close anything, however many pages wait for a reader who is gone."""

    async def main() -> None:
        async for _ in library.crawl(*WEB.seeds(), delay=0):
            await asyncio.sleep(30)  # until the queue is full
            break

    library.run(main)
    with CrawlDirectory(library.out).held():
        """It is not held any more."""


def test_a_crawl_begun_after_a_loop_was_left_waits_for_the_end_of_that(library: Library) -> None:
    """E2, F10: by `break` or by an exception; one that is still being read is in the way, and says so."""

    async def fail() -> None:
        async for _ in library.crawl():
            raise ZeroDivisionError

    async def main() -> None:
        async for _ in library.crawl(*WEB.seeds()):
            break
        with pytest.raises(ZeroDivisionError):
            await fail()
        async for _ in library.crawl():
            with pytest.raises(CrawlDirectoryError, match="another crawl is running"):
                await library.crawl().run()
            break
        summary = await library.crawl().run()
        assert summary.total_pages == PAGES

    library.run(main)
    assert not library.auditor.report().violations


def test_an_iterator_that_is_kept_does_not_keep_the_event_loop(library: Library) -> None:
    """E2: the loop's end stops the crawl though its queue is full and somebody could still read from it."""
    kept: list[object] = []

    async def main() -> None:
        pages = aiter(library.crawl(*WEB.seeds(), delay=0))
        kept.append(pages)
        await anext(pages)
        await asyncio.sleep(30)

    library.run(main)
    with CrawlDirectory(library.out).held():
        """It is not held any more."""


def test_a_slow_reader_slows_the_crawl(library: Library) -> None:
    """E2, F8: a bounded queue lies between the two."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds(), delay=0, concurrency=5)
        read = 0
        async for _ in stream:
            read += 1
            if read % 20 == 0:
                await asyncio.sleep(60)
                snapshot = stream.snapshot()
                assert snapshot is not None
                assert snapshot.pages <= read + PAGES_AHEAD + 5
        assert read == PAGES

    library.run(main)


def test_stop_pause_resume_and_snapshot(library: Library) -> None:
    """E2: from code, while it runs."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds())
        assert stream.snapshot() is None
        read = 0
        async for _ in stream:
            read += 1
            if read == 20:
                stream.pause()
                await asyncio.sleep(5)
                paused = stream.snapshot()
                assert paused is not None
                await asyncio.sleep(600)
                later = stream.snapshot()
                assert later is not None
                assert (paused.pages, paused.in_flight) == (later.pages, 0)
                stream.resume()
            if read == 60:
                stream.stop()
        assert stream.summary is not None
        assert stream.summary.stopped_by is StoppedBy.INTERRUPT
        assert 60 <= read == stream.summary.pages < PAGES, "what was on the wire still comes"

    library.run(main)
    assert not library.auditor.report().violations


def test_a_stop_before_the_crawl_has_begun_counts(library: Library) -> None:
    """E2: nothing is asked for."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds())
        stream.stop()
        summary = await stream.run()
        assert (summary.pages, summary.stopped_by) == (0, StoppedBy.INTERRUPT)

    library.run(main)
    assert library.auditor.report().requests == 0


def test_seeds_that_were_not_read_before_the_end_are_told(library: Library) -> None:
    """F10, S1: `--out DIR` alone goes on without them, so nobody may take it for the whole."""
    seeds = [Seed(url, "mine") for url in WEB.seeds()]

    async def main() -> list[int]:
        told = []
        for given in ([seeds], [], [seeds]):
            stream = library.crawl(*given, max_pages=5)
            if not told:  # nothing of them is read
                stream.stop()
            await stream.run()
            told.append(sum(event.reason == "seeds" for event in library.recorder.events))
        return told

    assert library.run(main) == [1, 1, 1]
    assert any("give them again" in event.detail for event in library.recorder.events)


def test_a_pause_before_the_crawl_has_begun_counts(library: Library) -> None:
    """E2: it begins when it is resumed."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds(), max_pages=5)
        stream.pause()
        running = asyncio.create_task(stream.run())
        await asyncio.sleep(3600)
        assert library.auditor.report().requests == 0
        stream.resume()
        assert (await running).pages == 5

    library.run(main)


def test_closing_a_crawl_that_has_hardly_begun_stops_it(library: Library) -> None:
    """E2: also before its directory is open."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds())
        reading = asyncio.create_task(stream.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await stream.aclose()
        assert (await reading).stopped_by is StoppedBy.INTERRUPT

    library.run(main)


def test_a_crawl_is_iterated_over_once(library: Library) -> None:
    """E2: told, not silently empty."""

    async def main() -> None:
        stream = library.crawl(*WEB.seeds(), max_pages=3)
        await stream.run()
        with pytest.raises(RuntimeError, match="once"):
            await stream.run()

    library.run(main)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_page": 3}, "max_page"),
        ({"max_pages": "many"}, "max.pages"),
        ({"max_pages": -1}, "max.pages"),
        ({"scope": "galaxy"}, "galaxy"),
        ({"fetch__timeout": 3}, "fetch__timeout"),
        ({"delay": "soon"}, "delay"),
        ({"max_pages": True}, "max_pages cannot be True"),
        ({"max_pages": [1, 2]}, "max_pages cannot be"),
        ({"user_agent": None}, "user_agent cannot be None"),
        ({"user_agent": b"Bot"}, "user_agent cannot be b'Bot'"),
        ({"user_agent": False}, "user_agent cannot be False"),
        ({"exclude": {"/a/": 1}}, "exclude cannot be"),
        ({"exclude": iter(["/a/"])}, "exclude cannot be"),
        ({"exclude": ["/a/", None]}, "exclude cannot be None"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_option_that_does_not_fit_is_told_at_once(library: Library, options: dict[str, Any], told: str) -> None:
    """E2: before anything is made on the disk."""
    with pytest.raises(UsageError, match=told):
        library.crawl(*WEB.seeds(), **options)
    assert not library.out.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"listeners": [5]}, "int is no listener: it has no emit and no flush and no close"),
        ({"listeners": [Recorder]}, "the listener Recorder is a class"),
        ({"listeners": Recorder()}, "listeners is a list of objects, and not Recorder"),
        ({"plugins": Recorder()}, "plugins is a list of objects, and not Recorder"),
        ({"plugins": "favourites"}, "plugins is a list of objects, and not str"),
    ],
)
def test_what_is_no_listener_and_no_list_of_plugins_is_told_at_once(
    library: Library, options: dict[str, Any], told: str
) -> None:
    """E2: and not in the middle of a crawl."""
    with pytest.raises(UsageError, match=told) as raised:
        library.crawl(*WEB.seeds(), **options)
    assert raised.value.hint
    assert not library.out.exists()


@pytest.mark.parametrize("name", ["forever", "politeness_ms", "seeds", "domains"])
def test_a_flag_that_is_no_setting_is_answered_with_what_stands_for_it(library: Library, name: str) -> None:
    """E2: what the command has and the library writes otherwise."""
    with pytest.raises(UsageError) as told:
        library.crawl(*WEB.seeds(), **{name: True})
    assert "did you mean" not in told.value.hint
    assert "settings.md" not in told.value.hint


def test_an_option_that_does_not_exist_is_answered_with_the_nearest(library: Library) -> None:
    """E2: as the command answers a slip of the pen."""
    with pytest.raises(UsageError) as told:
        library.crawl(*WEB.seeds(), max_page=3)
    assert told.value.hint == "did you mean max_pages?"


@pytest.mark.parametrize(
    ("value", "patterns"),
    [(r"/\d{1,3}/", (r"/\d{1,3}/",)), (["/a,b/", "/c/"], ("/a,b/", "/c/")), ((), ())],
)
def test_a_text_is_one_item_of_a_list(library: Library, value: object, patterns: tuple[str, ...]) -> None:
    """E2, S2: a pattern with a comma in it is one pattern, as it is with the flag."""
    assert library.crawl(*WEB.seeds(), exclude=value)._configured.settings.scope.exclude == patterns


@pytest.mark.parametrize("seed", [list(WEB.seeds()), None, 5, b"http://a.test/", Path("list"), {"a.test": 1}], ids=str)
def test_what_is_no_seed_is_told_at_once(library: Library, seed: Any) -> None:
    """E2, S1: a list of texts too, with how to give several."""
    with pytest.raises(UsageError, match="a seed is a URL or a domain as text") as told:
        library.crawl(seed)
    assert ("nephila.crawl(*urls)" in told.value.hint) is isinstance(seed, list)
    assert not library.out.exists()


def test_a_source_that_gives_texts_is_told(library: Library) -> None:
    """E2, S1: an open file is one."""

    async def main() -> None:
        with pytest.raises(UsageError, match="gives str"):
            await library.crawl(iter(WEB.seeds())).run()

    library.run(main)
    assert not library.out.exists()


def test_a_source_of_seeds_is_read(library: Library) -> None:
    """E2, S1: a list of them is one."""
    seeds = [Seed(url, "mine") for url in WEB.seeds()]

    async def main() -> None:
        assert (await library.crawl(seeds, max_pages=3).run()).pages == 3

    library.run(main)


@pytest.mark.parametrize(
    ("seeds", "told"), [(["http://[a", "ftp://b.test/"], "2 refused"), ([ArgumentSeeds(())], "none")]
)
def test_seeds_that_begin_nothing_are_told(library: Library, seeds: list[Any], told: str) -> None:
    """E2, S1: as the command tells it, and nothing is left behind."""

    async def main() -> None:
        with pytest.raises(UsageError, match=f"no seed can be crawled: .*{told}"):
            await library.crawl(*seeds).run()

    library.run(main)
    assert not library.out.exists()


def test_without_seeds_there_is_nothing_to_go_on_with(library: Library) -> None:
    """E2: told, with what to do."""
    with pytest.raises(UsageError, match="no seeds"):
        library.crawl()


def test_an_error_of_the_crawl_reaches_its_reader(library: Library) -> None:
    """E2: the same error as the command's, from the loop."""
    library.out.parent.mkdir(parents=True, exist_ok=True)
    library.out.write_text("a file")

    async def main() -> None:
        with pytest.raises(CrawlDirectoryError, match="is a file"):
            await library.crawl(*WEB.seeds()).run()

    library.run(main)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("site\udcff", "is no text"),
        (Path("site\udcff"), "is no text"),
        ("a\0b", "can be no path"),
        (b"site", "a path as text, and not bytes"),
        (5, "a path as text, and not int"),
    ],
    ids=ascii,
)
def test_a_directory_that_is_no_text_is_refused_before_it_is_made(
    name: object, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E2, C4: as the command refuses it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told) as raised:
        nephila.crawl("http://site0.test/", out=name)  # type: ignore[arg-type]  # on purpose
    assert raised.value.hint
    assert str(raised.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_two_crawls_on_one_directory_are_refused(library: Library) -> None:
    """E2, F10: the first goes on."""

    async def main() -> None:
        first = library.crawl(*WEB.seeds(), max_pages=30)
        async with first:
            async for _ in first:
                with pytest.raises(CrawlDirectoryError, match="another crawl"):
                    await library.crawl(*WEB.seeds()).run()
                break

    library.run(main)


def test_listeners_hear_what_the_command_writes_down(library: Library) -> None:
    """E2, O1: start, pages, heartbeats, end."""

    async def main() -> None:
        await library.crawl(*WEB.seeds(), max_pages=60).run()

    library.run(main)
    kinds = [event.kind for event in library.recorder.events]
    assert kinds[0] is EventKind.CRAWL_START
    assert kinds[-1] is EventKind.CRAWL_END
    assert kinds.count(EventKind.HEARTBEAT) == 1
    (beat,) = [event for event in library.recorder.events if event.kind is EventKind.HEARTBEAT]
    figures = dict(beat.counts)
    assert figures["fetched"] == 50
    assert figures.keys() == {"fetched", "enqueued", "errors", "unique_domains", "frontier_size"}


class Choking(Recorder):
    """Raises at one event."""

    def __init__(self, at: EventKind, said: str = "mine") -> None:
        super().__init__()
        self._at = at
        self._said = said

    def emit(self, event: Any) -> None:
        super().emit(event)
        if event.kind is self._at:
            raise ValueError(self._said)


@pytest.mark.parametrize("at", [EventKind.CRAWL_START, EventKind.FETCH_OK, EventKind.CRAWL_END])
def test_a_listener_that_raises_stops_the_crawl_cleanly_and_is_told(library: Library, at: EventKind) -> None:
    """E2: no page that was stored is kept from the reader, nothing is lost, and the next crawl goes on."""
    choking = Choking(at)
    got: list[str] = []

    async def read() -> None:
        async for page in library.crawl(*WEB.seeds(), max_pages=60, listeners=[choking, library.recorder]):
            got.append(page.url)  # noqa: PERF401 - what came before it raised counts

    async def main() -> None:
        with pytest.raises(ValueError, match="mine"):
            await read()
        assert len(got) == library.stored()
        assert [event.kind for event in choking.events].count(at) == 1
        assert library.recorder.events[-1].kind is EventKind.CRAWL_END
        summary = await library.crawl(*WEB.seeds(), max_pages=0).run()
        assert summary.total_pages == PAGES

    library.run(main)


def test_what_fails_before_the_crawl_begins_reaches_its_reader(library: Library) -> None:
    """E2: an error, not a loop that waits for ever."""

    def no_ground() -> Ground:
        raise OSError("no ground")

    async def main() -> None:
        stream = nephila.crawl(*WEB.seeds(), out=library.out, ground=no_ground)
        with pytest.raises(OSError, match="no ground"):
            async with asyncio.timeout(60):
                await stream.run()

    began_ms = library.clock.steady_ms()
    library.run(main)
    assert library.clock.steady_ms() - began_ms < 60_000


class Failing:
    """A filter that fails at once."""

    async def filter_links(self, page: object, links: object) -> object:
        raise ValueError("no\x1b[31m\nsecond line?token=geheim")


def test_warnings_go_to_the_logger_of_the_program(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    """E1, E2: a plugin that fails is no secret; on one harmless line."""

    async def main() -> None:
        await library.crawl(*WEB.seeds(), max_pages=8, plugins=iter([Failing()])).run()

    library.run(main)
    told = [(one.name, one.levelname) for one in caplog.records]
    assert set(told) == {("nephila", "WARNING")}
    assert "the plugin Failing failed" in caplog.records[0].getMessage()
    assert all(one.getMessage().isprintable() for one in caplog.records)


def test_the_logger_shows_more_where_that_is_wanted(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    """E2, C4: INFO as -v, DEBUG as -vv."""
    caplog.set_level("INFO", "nephila")

    async def main() -> None:
        await library.crawl(*WEB.seeds(), max_pages=3).run()

    library.run(main)
    shown = " ".join(one.getMessage() for one in caplog.records)
    assert "crawl_start" in shown
    assert "robots_fetched" in shown
    assert "fetch_ok" not in shown
    caplog.set_level("DEBUG", "nephila")
    library.run(lambda: library.crawl(max_pages=8).run())
    assert "fetch_ok" in " ".join(one.getMessage() for one in caplog.records)

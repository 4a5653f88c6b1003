"""What every `interfaces.catalogue.Catalogue` keeps.

A check takes `open_catalogue`, which opens a catalogue on storage of its own; calling it again opens the same storage
anew, beside the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nephila.interfaces.catalogue import CaptureFigures, CaptureRow, ErrorFigures, ErrorRow, WholeCatalogue
from nephila.model.record import SegmentId

OpenCatalogue = Callable[[], WholeCatalogue]

SEGMENT = SegmentId("nephila-20260101000000-00000-w0.warc.gz")
OTHER = SegmentId("nephila-20260101010000-00001-w0.warc.gz")


def sample_row(number: int, url: str = "") -> CaptureRow:
    """The capture at offset `1000 * number`, a page of its own unless `url` says which."""
    url = url or f"https://spiders.example/{number}"
    return CaptureRow(
        url=url,
        fingerprint=url.encode()[-16:].rjust(16, b"\0"),
        host=url.split("/")[2],
        domain="spiders.example",
        depth=2,
        via="https://spiders.example/",
        level=2,
        retries=0,
        at=1_767_225_600_000 + number,
        status=200,
        content_type="text/html; charset=utf-8",
        content_hash=bytes(range(32)),
        length=5_000,
        wire_bytes=1_700,
        elapsed_ms=40,
        kind="response",
        segment=SEGMENT,
        offset=1_000 * number,
        record_length=700,
        end=1_000 * number + 1_000,
        payload_digest="sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        title="Orb weavers",
        language="en",
        signals="search=yes",
    )


def sample_error(number: int, *, dead: bool = False) -> ErrorRow:
    """A failure of the page of `sample_row(number)`."""
    row = sample_row(number)
    return ErrorRow(row.url, row.fingerprint, row.host, "timeout", "no answer in 30 s", row.at, 3 if dead else 0, dead)


def check_rows_come_back_as_they_were(open_catalogue: OpenCatalogue) -> None:
    """W3: captures of a segment come back whole, in the order of their records."""
    catalogue = open_catalogue()
    rows = [
        replace(sample_row(2), robots=True, noindex=True, changed=False, crawl_delay_ms=2_000, truncated="length"),
        replace(sample_row(1), kind="revisit", noarchive=True, duplicate_of="https://other.example/"),
        replace(sample_row(3), simhash=-(1 << 63), near_duplicate_of="https://other.example/near"),
    ]
    catalogue.record(rows, ())
    catalogue.record([replace(sample_row(0), segment=OTHER)], ())
    assert list(catalogue.captures(SEGMENT)) == [rows[1], rows[0], rows[2]]
    assert [page.near_duplicate_of for page in catalogue.pages(like="/3")] == ["https://other.example/near"]
    assert list(catalogue.captures(SegmentId("unknown"))) == []


def check_recording_twice_changes_nothing(open_catalogue: OpenCatalogue) -> None:
    """W3, Q4: a batch that is recorded again after a crash counts once."""
    catalogue = open_catalogue()
    batch = [sample_row(number) for number in range(5)]
    errors = [sample_error(7), sample_error(8, dead=True)]
    catalogue.record(batch, errors)
    before = list(catalogue.pages(limit=50))
    catalogue.record(batch, errors)
    catalogue.record(batch[2:], ())
    assert list(catalogue.pages(limit=50)) == before
    assert list(catalogue.captures(SEGMENT)) == batch
    assert {page.crawl_count for page in before} == {1}


def check_upto_is_the_end_of_what_is_recorded(open_catalogue: OpenCatalogue) -> None:
    """W3: recovery begins there, segment by segment; it never goes back."""
    catalogue = open_catalogue()
    assert catalogue.upto(SEGMENT) == 0
    catalogue.record([sample_row(0), sample_row(1)], ())
    assert (catalogue.upto(SEGMENT), catalogue.upto(OTHER)) == (2_000, 0)
    catalogue.record([replace(sample_row(6), segment=OTHER)], ())
    catalogue.record([sample_row(0)], ())
    assert (catalogue.upto(SEGMENT), catalogue.upto(OTHER)) == (2_000, 7_000)


def check_a_page_is_its_newest_capture(open_catalogue: OpenCatalogue) -> None:
    """W3: captures count up, the newest decides, in whatever order they are recorded."""
    catalogue = open_catalogue()
    url = "https://spiders.example/changing"
    catalogue.record([replace(sample_row(3, url), title="new", status=404)], ())
    catalogue.record([replace(sample_row(1, url), title="old")], ())
    [page] = catalogue.pages()
    assert (page.title, page.status, page.crawl_count) == ("new", 404, 2)
    assert page.crawled_at == sample_row(3).at
    assert page.storage_key == f"{SEGMENT}#3000"


def check_not_modified_keeps_what_is_known(open_catalogue: OpenCatalogue) -> None:
    """H3, W3: a 304 renews the visit, not the content."""
    catalogue = open_catalogue()
    url = "https://spiders.example/still"
    unchanged = replace(
        sample_row(2, url), status=304, kind="revisit", title="", content_type="", length=0, changed=False
    )
    catalogue.record([sample_row(1, url), unchanged], ())
    [page] = catalogue.pages()
    assert (page.title, page.status, page.length, page.crawl_count) == ("Orb weavers", 200, 5_000, 2)
    assert page.crawled_at == unchanged.at
    assert page.storage_key == f"{SEGMENT}#1000"


def check_robots_txt_is_no_page(open_catalogue: OpenCatalogue) -> None:
    """W3: a robots.txt is a capture, not a page."""
    catalogue = open_catalogue()
    catalogue.record([replace(sample_row(1), robots=True)], ())
    assert list(catalogue.pages()) == []
    assert len(list(catalogue.captures(SEGMENT))) == 1


def check_pages_are_filtered(open_catalogue: OpenCatalogue) -> None:
    """W3, C4: by host, status and a part of the URL, newest first, up to the limit."""
    catalogue = open_catalogue()
    rows = [sample_row(number) for number in range(6)]
    rows[1] = replace(rows[1], status=404)
    rows[2] = sample_row(2, "https://other.example/x_y")
    catalogue.record(rows, ())

    def urls(**filters: object) -> list[str]:
        return [page.url.rpartition("/")[2] for page in catalogue.pages(**filters)]  # type: ignore[arg-type]  # checked

    assert urls() == ["5", "4", "3", "x_y", "1", "0"]
    assert urls(limit=2) == ["5", "4"]
    assert urls(host="other.example") == ["x_y"]
    assert urls(status=404) == ["1"]
    assert urls(like="example/x_") == ["x_y"]
    assert urls(like="https://spiders%/3") == ["3"]
    assert urls(host="spiders.example", status=200, like="/", limit=3) == ["5", "4", "3"]


def check_the_history_of_a_url(open_catalogue: OpenCatalogue) -> None:
    """W3, W5: every capture of one URL, newest first."""
    catalogue = open_catalogue()
    url = "https://spiders.example/history"
    rows = [sample_row(number, url) for number in range(3)]
    catalogue.record([*rows, sample_row(9)], ())
    assert catalogue.captures_of(rows[0].fingerprint) == rows[::-1]
    assert catalogue.captures_of(b"nobody knows it!") == []


def check_others_read_what_is_recorded(open_catalogue: OpenCatalogue) -> None:
    """W3: a second catalogue on the same storage sees each batch once it is recorded."""
    writer, reader = open_catalogue(), open_catalogue()
    writer.record([sample_row(1)], ())
    assert [page.url for page in reader.pages()] == [sample_row(1).url]
    writer.close()
    assert reader.upto(SEGMENT) == 2_000
    reader.close()


def check_repeated_batches_overlap_as_they_like(open_catalogue: OpenCatalogue) -> None:
    """W3, Q4: after a crash a batch may come back longer, cut otherwise, in another order, or twice in itself."""
    catalogue = open_catalogue()
    rows = [sample_row(number, f"https://spiders.example/{number % 3}") for number in range(12)]
    catalogue.record(rows[:7], [sample_error(1)])
    catalogue.record([*reversed(rows[4:]), *rows[4:]], [sample_error(1), sample_error(1), sample_error(2)])
    assert list(catalogue.captures(SEGMENT)) == rows
    assert [page.crawl_count for page in catalogue.pages()] == [4, 4, 4]
    assert (catalogue.capture_count(), catalogue.wire_bytes()) == (12, 12 * 1_700)
    assert catalogue.errors_since(0, 99) == {"timeout": 2}


def check_a_capture_that_ends_where_it_begins_counts_once(open_catalogue: OpenCatalogue) -> None:
    """W3, C1: what a worker outside has stored has a place and no length."""
    catalogue = open_catalogue()
    row = replace(sample_row(5), kind="external", end=sample_row(5).offset)
    catalogue.record([row], ())
    catalogue.record([row], ())
    assert catalogue.captures_of(row.fingerprint) == [row]
    assert catalogue.capture_count() == 1


def check_domains_follow_from_captures(open_catalogue: OpenCatalogue) -> None:
    """W3: pages, answers, mean time and robots.txt of a domain, in whatever order they come."""
    catalogue = open_catalogue()
    rows = [
        replace(sample_row(4), robots=True, elapsed_ms=10, robots_txt="User-agent: *\n"),
        replace(sample_row(1), elapsed_ms=20),
        replace(sample_row(2), elapsed_ms=60, status=404),
        replace(sample_row(3, "https://spiders.example/1"), elapsed_ms=30, status=304),
        replace(sample_row(6), elapsed_ms=0, content_hash=b""),
        replace(sample_row(7), domain="other.example"),
    ]
    catalogue.record(rows[1:], ())
    catalogue.record(rows[:1], ())
    catalogue.record([replace(sample_row(0), robots=True, elapsed_ms=0, robots_txt="old")], ())
    catalogue.record([replace(sample_row(5), robots=True, elapsed_ms=0)], ())
    assert catalogue.domain("spiders.example") == (rows[4].at, 2, 7, 120 / 7, "User-agent: *\n")
    assert catalogue.domain("unknown.example") is None
    assert [(one.domain, one.pages) for one in catalogue.leading_domains(9)] == [
        ("spiders.example", 2),
        ("other.example", 1),
    ]
    assert catalogue.domains_by_pages() == {1: 2}
    assert [one.domain for one in catalogue.leading_domains(1)] == ["spiders.example"]


def check_figures_of_every_capture_and_error(open_catalogue: OpenCatalogue) -> None:
    """O3: what a report needs of each, once."""
    catalogue = open_catalogue()
    rows = [sample_row(0), replace(sample_row(1), segment=OTHER, status=304, duplicate_of="x", content_hash=b"")]
    catalogue.record(rows, [sample_error(3), sample_error(2)])
    plain = CaptureFigures(
        at=rows[0].at,
        status=200,
        robots=False,
        content_type=rows[0].content_type,
        length=5_000,
        wire_bytes=1_700,
        elapsed_ms=40,
        depth=2,
        duplicate=False,
        near=False,
        truncated=False,
        changed=True,
        whole=True,
    )
    other = plain._replace(at=rows[1].at, status=304, duplicate=True, whole=False)
    assert sorted(catalogue.capture_figures()) == [plain, other]
    assert list(catalogue.error_figures()) == [
        ErrorFigures(sample_row(number).at, "timeout", "spiders.example") for number in (2, 3)
    ]


def check_what_watchers_see(open_catalogue: OpenCatalogue) -> None:
    """O2, P5: marks, exchanges past them, and what came since an instant, up to a limit."""
    catalogue = open_catalogue()
    catalogue.record([sample_row(number) for number in range(4)], [sample_error(9)])
    [(segment, upto)] = catalogue.marks().items()
    assert upto == 4_000
    assert catalogue.exchanges(segment, 1_000, 2) == [
        (1_000 * number, "spiders.example", sample_row(number).at, 40, False) for number in (1, 2)
    ]
    assert catalogue.pages_since(sample_row(2).at, 99) == 2
    assert catalogue.pages_since(0, 3) == 3
    assert catalogue.errors_since(sample_row(9).at + 1, 99) == {}


def check_what_is_taken_out_is_gone(open_catalogue: OpenCatalogue) -> None:
    """K2: rows, the standing of pages, and what was counted of them; once, however often it is repeated."""
    catalogue = open_catalogue()
    rows = [
        sample_row(0),
        sample_row(1, "https://spiders.example/0"),
        replace(sample_row(2), duplicate_of="https://spiders.example/0", near_duplicate_of="https://other.example/"),
        replace(sample_row(3), robots=True),
    ]
    catalogue.record(rows, [sample_error(0, dead=True), sample_error(2)])
    removal = catalogue.removal()
    listed = list(removal.rows())
    assert [(one.segment, one.offset, one.url) for one in listed] == [
        (row.segment, row.offset, row.url) for row in rows
    ]
    assert [one.robots for one in listed] == [False, False, False, True]
    gone = [one for one in listed if one.fingerprint == rows[0].fingerprint]
    for _ in range(2):
        removal.unname([(listed[2], True, False)])
        removal.remove(gone)
        removal.forget_failures([rows[0].fingerprint])
    removal.make_durable()
    assert list(catalogue.captures(SEGMENT)) == [replace(rows[2], duplicate_of=""), rows[3]]
    assert [page.url for page in catalogue.pages()] == [rows[2].url]
    assert (catalogue.capture_count(), catalogue.wire_bytes()) == (2, 2 * 1_700)
    found = catalogue.domain("spiders.example")
    assert found is not None
    assert found[1:3] == (1, 2)
    assert catalogue.errors_since(0, 9) == {"timeout": 1}
    assert catalogue.upto(SEGMENT) == 4_000, "the mark never goes back"
    removal.forget_failures((), "example")
    assert catalogue.errors_since(0, 9) == {}
    assert catalogue.domain("spiders.example") is None


def check_parts_of_visits_are_listed_and_are_no_pages(open_catalogue: OpenCatalogue) -> None:
    """J3, W3: what a page in a browser asked for is a capture, told as such, and the standing of no page."""
    catalogue = open_catalogue()
    part = replace(sample_row(1), fingerprint=b"", content_hash=b"")
    catalogue.record([sample_row(0), part], ())
    assert [row.url for row in catalogue.pages()] == [sample_row(0).url]
    [segment] = catalogue.marks()
    assert [row[-1] for row in catalogue.exchanges(segment, 0, 9)] == [False, True]
    assert len(list(catalogue.captures(part.segment))) == 2


def check_a_page_shows_what_its_newest_visit_has_planned(open_catalogue: OpenCatalogue) -> None:
    """W3, R2: in whatever order visits come; an answer that plans nothing leaves no plan, but the rate."""
    catalogue = open_catalogue()
    url = "https://spiders.example/planned"

    def seen() -> tuple[int | None, float | None]:
        [page] = catalogue.pages()
        return page.next_crawl_at, page.change_rate

    catalogue.record([replace(sample_row(3, url), next_crawl_at=3_000)], ())
    assert seen() == (3_000, None), "nothing was compared yet"
    catalogue.record([replace(sample_row(5, url), next_crawl_at=5_000, change_rate=0.5)], ())
    assert seen() == (5_000, 0.5)
    catalogue.record([replace(sample_row(4, url), next_crawl_at=4_000, change_rate=0.25)], ())
    assert seen() == (5_000, 0.5), "of the newest"
    catalogue.record([replace(sample_row(6, url), status=304, next_crawl_at=6_000, change_rate=0.125)], ())
    assert seen() == (6_000, 0.125), "a page that has not changed was visited as well"
    catalogue.record([replace(sample_row(7, url), status=503)], ())
    assert seen() == (None, 0.125)
    rows = [replace(sample_row(number, url), next_crawl_at=number, change_rate=float(number)) for number in (10, 8, 9)]
    catalogue.record(rows, ())
    assert seen() == (10, 10.0), "several in one batch"
    catalogue.record(rows, ())
    assert seen() == (10, 10.0)
    catalogue.record([replace(sample_row(12, url), status=500), replace(rows[0], offset=11_000, at=rows[0].at + 1)], ())
    assert seen() == (None, 10.0)


def check_blocked_domains_are_shown(open_catalogue: OpenCatalogue) -> None:
    """W3, T7: exactly those that are blocked as a whole, or are below a blocked suffix, and no others any more."""
    catalogue = open_catalogue()
    names = ("a.example", "b.example", "c.co.uk", "xco.uk")
    catalogue.record([replace(sample_row(number), domain=name) for number, name in enumerate(names)], ())

    def shown() -> set[str]:
        return {one.domain for one in catalogue.leading_domains(9) if one.blocked}

    assert shown() == set()
    catalogue.show_blocked(["a.example", "never.met.example"])
    assert shown() == {"a.example"}
    catalogue.record([sample_row(9)], ())
    assert shown() == {"a.example"}
    catalogue.show_blocked(["b.example", "co.uk"], ["co.uk"])
    assert shown() == {"b.example", "c.co.uk"}
    catalogue.record([replace(sample_row(10), domain="b.example"), replace(sample_row(11), domain="d.co.uk")], ())
    assert shown() == {"b.example", "c.co.uk"}
    catalogue.show_blocked(["b.example", "co.uk"], ["co.uk"])
    assert shown() == {"b.example", "c.co.uk", "d.co.uk"}
    catalogue.show_blocked([])
    assert shown() == set()


def check_histories_of_many_urls_at_once(open_catalogue: OpenCatalogue) -> None:
    """W6: all captures of each that is known, and how far every segment is recorded, the oldest first."""
    catalogue = open_catalogue()
    assert catalogue.extent() == {}
    twice = [sample_row(1, "https://spiders.example/a"), sample_row(4, "https://spiders.example/a")]
    catalogue.record([twice[0], sample_row(2)], ())
    catalogue.record([replace(twice[1], segment=OTHER), sample_row(3)], ())
    asked = [twice[0].fingerprint, sample_row(3).fingerprint, b"nobody knows it!"]
    found = sorted(catalogue.histories(asked), key=lambda row: row.at)
    assert found == [twice[0], sample_row(3), replace(twice[1], segment=OTHER)]
    assert list(catalogue.extent().items()) == [(SEGMENT, 4_000), (OTHER, 5_000)]


CHECKS: tuple[Callable[[OpenCatalogue], None], ...] = (
    check_rows_come_back_as_they_were,
    check_parts_of_visits_are_listed_and_are_no_pages,
    check_recording_twice_changes_nothing,
    check_upto_is_the_end_of_what_is_recorded,
    check_a_page_is_its_newest_capture,
    check_not_modified_keeps_what_is_known,
    check_robots_txt_is_no_page,
    check_pages_are_filtered,
    check_the_history_of_a_url,
    check_others_read_what_is_recorded,
    check_repeated_batches_overlap_as_they_like,
    check_a_capture_that_ends_where_it_begins_counts_once,
    check_domains_follow_from_captures,
    check_figures_of_every_capture_and_error,
    check_what_watchers_see,
    check_what_is_taken_out_is_gone,
    check_a_page_shows_what_its_newest_visit_has_planned,
    check_blocked_domains_are_shown,
    check_histories_of_many_urls_at_once,
)

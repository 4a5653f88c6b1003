"""Which captures go, from the rows of a catalogue; and the marks that spare some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from postgres import Postgres, running

from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.retention import TURNS, CatalogueRetention, Marks, Outdated, RetentionRule
from nephila.model.errors import StorageError, UsageError
from nephila.model.record import SegmentId
from nephila.store import SqliteCatalogue
from nephila.store.indexed import IndexedMarks, capture_named, captures_named
from nephila.store.postgres import PostgresCatalogue, set_aside
from nephila.store.retention import in_batches
from nephila.testing.contracts.catalogue import sample_row

CRAWL = "0123456789abcdef0123456789abcdef"


AnyCatalogue = SqliteCatalogue | PostgresCatalogue


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyCatalogue]:
    opened: AnyCatalogue
    if request.param == "sqlite":
        opened = SqliteCatalogue(tmp_path / "catalogue.sqlite")
    else:
        server: Postgres = request.getfixturevalue("server")
        opened = PostgresCatalogue(server.settings, f"t{uuid4().hex[:12]}", server.environ, identity=CRAWL)
    yield opened
    opened.close()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The file of marks of a catalogue that is a file."""
    return tmp_path / "indexed.sqlite"


def _mark(catalogue: AnyCatalogue, marks: Path, *rows: CaptureRow) -> tuple[int, int]:
    keeper: Marks = IndexedMarks(marks) if isinstance(catalogue, SqliteCatalogue) else catalogue.indexed()
    return keeper.add((row.segment, row.offset) for row in rows)


def _visit(number: int, page: int = 1, *, status: int = 200, kind: str = "response", digest: str = "") -> CaptureRow:
    """The capture of a page at the moment `number`."""
    return replace(
        sample_row(number, f"https://spiders.example/{page}"),
        fingerprint=page.to_bytes(16, "big"),
        at=1_000 * number,
        status=status,
        kind=kind,
        payload_digest=digest or f"sha1:{number}",
    )


def _all(retention: CatalogueRetention) -> list[Outdated]:
    """What was chosen, in the order in which it goes."""
    return [row for turn in TURNS for number, _ in retention.files(turn) for row in retention.of_file(number, turn)]


def _gone(catalogue: AnyCatalogue, rule: RetentionRule, marks: Path = Path("nowhere")) -> list[int]:
    """The moments of what goes, in their order; as it was foreseen."""
    retention = catalogue.retention(marks)
    foreseen, choice = retention.foresee(rule), retention.choose(rule)
    found = [row.at // 1_000 for row in _all(retention)]
    assert foreseen == choice
    assert choice.captures == len(found)
    return sorted(found)


def _record(catalogue: AnyCatalogue, *rows: CaptureRow) -> None:
    catalogue.record(rows, ())


def test_so_many_of_each_page_stay(catalogue: AnyCatalogue) -> None:
    """W5: the newest of every page, whatever the others have."""
    _record(catalogue, *(_visit(number) for number in range(1, 6)), _visit(6, 2), _visit(7, 3), _visit(8, 3))
    assert _gone(catalogue, RetentionRule(3)) == [1, 2]
    assert _gone(catalogue, RetentionRule(1)) == [1, 2, 3, 4, 7]
    assert _gone(catalogue, RetentionRule(0)) == []


def test_errors_do_not_push_out_what_a_page_said(catalogue: AnyCatalogue) -> None:
    """W5: a site that answers with errors for a week keeps its last contents, and its last errors."""
    _record(catalogue, *(_visit(number) for number in range(1, 4)))
    _record(catalogue, *(_visit(number, status=503) for number in range(4, 9)))
    assert _gone(catalogue, RetentionRule(2)) == [1, 4, 5, 6]


def test_what_others_refer_to_stays(catalogue: AnyCatalogue) -> None:
    """W5, D2: the original of a revisit that stays, of whichever page; not that of one that goes."""
    _record(catalogue, _visit(1, digest="sha1:A"), *(_visit(number) for number in (2, 3)))
    _record(catalogue, _visit(4, 2, kind="revisit", digest="sha1:A"))
    assert _gone(catalogue, RetentionRule(1)) == [2]
    _record(catalogue, _visit(5, 2), _visit(6, 2))
    assert _gone(catalogue, RetentionRule(1)) == [1, 2, 4, 5]


def test_originals_go_after_what_refers_to_them(catalogue: AnyCatalogue) -> None:
    """W5, D2: whoever breaks off in between leaves no revisit without its original."""
    _record(catalogue, _visit(1, digest="sha1:A"), _visit(2), _visit(3, kind="revisit", digest="sha1:A"))
    _record(catalogue, _visit(4), _visit(5))
    retention = catalogue.retention(Path("nowhere"))
    retention.choose(RetentionRule(1))
    assert [row.at // 1_000 for row in _all(retention)] == [2, 3, 4, 1]


def test_the_capture_that_a_page_stands_on_stays(catalogue: AnyCatalogue) -> None:
    """W5, W3: behind any number of 304s; it may be a revisit of another page's, to which nobody refers."""
    _record(catalogue, _visit(1, kind="revisit", digest="sha1:A"))
    _record(catalogue, *(_visit(number, status=304, kind="revisit", digest="sha1:A") for number in range(2, 7)))
    assert _gone(catalogue, RetentionRule(2)) == [2, 3, 4]


def test_robots_and_what_lies_in_no_file_are_left_alone(catalogue: AnyCatalogue) -> None:
    """W5, K1: rules are what an audit judges by; what a worker outside has brought has no bytes here."""
    _record(catalogue, *(replace(_visit(number), robots=True, fingerprint=b"") for number in range(1, 4)))
    _record(catalogue, *(_visit(number, kind="external") for number in range(4, 8)))
    assert _gone(catalogue, RetentionRule(1, 100_000)) == []


def test_parts_of_visits_count_by_their_url(catalogue: AnyCatalogue) -> None:
    """W5, J3: a script that pages in browsers ask for has no hash of its own."""
    rows = [replace(_visit(number, 1 + number % 2), fingerprint=b"") for number in range(1, 7)]
    _record(catalogue, *rows)
    assert _gone(catalogue, RetentionRule(1)) == [1, 2, 3, 4]


def test_an_age_limit_counts_from_the_last_visit(catalogue: AnyCatalogue, marks: Path) -> None:
    """W5: a page that was unchanged yesterday is not old; one that is marked in any capture keeps what it stands on."""
    _record(catalogue, _visit(1), _visit(50, status=304, kind="revisit", digest="sha1:1"))
    _record(catalogue, _visit(2, 2), _visit(3, 2), _visit(4, 3))
    assert _gone(catalogue, RetentionRule(0, 10_000)) == [2, 3, 4]
    assert _mark(catalogue, marks, _visit(2, 2), _visit(4, 3)) == (2, 2)
    assert _gone(catalogue, RetentionRule(0, 10_000), marks) == []
    assert _gone(catalogue, RetentionRule(1, 10_000), marks) == [2], "by number it goes all the same"
    assert _gone(catalogue, RetentionRule(0, 100_000), marks) == [1, 50]


def test_a_page_stands_on_the_newest_that_is_left(catalogue: AnyCatalogue) -> None:
    """W5, W3: figures follow; with the last capture the page goes."""
    _record(catalogue, _visit(1), _visit(2), _visit(3, 2))
    retention = catalogue.retention(Path("nowhere"))
    retention.choose(RetentionRule(0, 100_000))
    rows = _all(retention)
    retention.remove([row for row in rows if row.at == 2_000])
    assert [(page.url[-1], page.crawled_at) for page in catalogue.pages()] == [("2", 3_000), ("1", 2_000)]
    assert catalogue.capture_count() == 2
    domain = catalogue.domain("spiders.example")
    assert domain is not None
    assert domain[1:3] == (2, 2)
    retention.remove(rows)
    retention.remove(rows)
    assert list(catalogue.pages()) == []
    assert catalogue.capture_count() == 0
    assert catalogue.wire_bytes() == 0


def test_a_page_stands_on_what_it_said_before(catalogue: AnyCatalogue) -> None:
    """W5, W3: where the newest goes, and not on a 304, which says nothing of it."""
    _record(catalogue, _visit(1), _visit(2, status=304, kind="revisit", digest="sha1:1"), _visit(3))
    retention = catalogue.retention(Path("nowhere"))
    retention.choose(RetentionRule(0, 100_000))
    rows = {row.at: row for row in _all(retention)}
    retention.remove([rows[3_000]])
    assert [page.storage_key for page in catalogue.pages()] == [f"{_visit(1).segment}#{_visit(1).offset}"]
    retention.remove([rows[1_000]])
    assert list(catalogue.pages()) == [], "of a 304 alone nobody knows what the page said"
    assert catalogue.capture_count() == 1


def test_what_would_go_is_told_in_figures(catalogue: AnyCatalogue) -> None:
    """W5: without changing anything."""
    rows = [_visit(1), _visit(2), _visit(3, 2)]
    _record(catalogue, *rows)
    found = catalogue.retention(Path("nowhere")).foresee(RetentionRule(0, 100_000))
    assert (found.captures, found.urls, found.files, found.pages_gone) == (3, 2, 1, 2)
    assert found.bytes == sum(row.end - row.offset for row in rows)
    assert catalogue.capture_count() == 3


def test_files_are_taken_in_batches_that_a_disk_has_room_for() -> None:
    """W5: each is written anew beside itself; one that is larger than a batch goes alone."""
    files = [(number, SegmentId(str(size))) for number, size in enumerate((5, 4, 20, 1, 1, 1))]

    def sizes(batches: Sequence[Sequence[tuple[int, SegmentId]]]) -> list[list[str]]:
        return [[name for _, name in batch] for batch in batches]

    assert sizes(list(in_batches(files, int, 10, 9))) == [["5", "4"], ["20"], ["1", "1", "1"]]
    assert sizes(list(in_batches(files, int, 100, 4))) == [["5", "4", "20", "1"], ["1", "1"]]
    assert sizes(list(in_batches([], int, 10, 9))) == []


# Marks


@pytest.mark.parametrize(
    "line",
    [
        f"{CRAWL}/2026-01-01/ab/x-w0.warc.gz#48210",
        "2026-01-01/ab/x-w0.warc.gz#48210\n",
        f'{{"id":"{CRAWL}/2026-01-01/ab/x-w0.warc.gz#48210","crawl":"site","status":200}}',
    ],
)
def test_a_capture_is_named_by_its_message_or_its_key(line: str) -> None:
    """W5, W7: what a reader of the stream has at hand."""
    assert capture_named(line, CRAWL) == ("2026-01-01/ab/x-w0.warc.gz", 48_210)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("https://spiders.example/", "names no capture"),
        ("x.warc.gz", "names no capture"),
        ("x.warc.gz#-1", "names no capture"),
        (f"{'f' * 32}/x.warc.gz#1", "of another crawl"),
        ('{"url":"x"}', "no message"),
        ("{nonsense", "no message"),
    ],
)
def test_a_line_that_names_none_is_told_and_nothing_is_marked(line: str, said: str, tmp_path: Path) -> None:
    """W5, C4: with its number."""
    marks = IndexedMarks(tmp_path / "indexed.sqlite")
    with pytest.raises(UsageError, match=f"line 3 .*{said}"):
        marks.add(captures_named(["x.warc.gz#1", "", line], CRAWL))
    assert marks.add([]) == (0, 0)


def test_marking_twice_marks_once(tmp_path: Path) -> None:
    """W5: messages come at least once, so do marks."""
    marks = IndexedMarks(tmp_path / "indexed.sqlite")
    one, other = (SegmentId("a.warc.gz"), 1), (SegmentId("a.warc.gz"), 2)
    assert marks.add([one, one]) == (1, 1)
    assert marks.add([one, other]) == (1, 2)


def test_marks_in_a_database_are_all_or_none_and_stay_when_the_catalogue_is_built_anew(server: Postgres) -> None:
    """W5, N8: a line that names none leaves nothing; a rebuilt catalogue has the marks of the old one."""
    crawl = f"t{uuid4().hex[:12]}"
    one, other = (SegmentId("a.warc.gz"), 1), (SegmentId("a.warc.gz"), 2)
    with closing(PostgresCatalogue(server.settings, crawl, server.environ, identity=CRAWL)) as catalogue:
        assert (catalogue.identity(), catalogue.retentions()) == (CRAWL, 0)
        with pytest.raises(UsageError, match="line 2"):
            catalogue.indexed().add(captures_named(["a.warc.gz#1", "nonsense"], CRAWL))
        assert catalogue.indexed().add([one, one]) == (1, 1)
        assert catalogue.indexed().add([one, other]) == (1, 2)
        assert catalogue.indexed().add([]) == (0, 2)
        catalogue.begin_retention()
        catalogue.record([_visit(1)], ())
    set_aside(server.settings, crawl, server.environ, "before_1", "f" * 32)
    with closing(PostgresCatalogue(server.settings, crawl, server.environ, identity="f" * 32)) as catalogue:
        assert catalogue.capture_count() == 0
        assert catalogue.indexed().add([one, other]) == (0, 2)
        assert catalogue.retentions() == 1


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    """C4: and left as it is."""
    path = tmp_path / "indexed.sqlite"
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(StorageError, match="refused") as told:
        IndexedMarks(path).add([])
    assert path.read_bytes() == b"nonsense" * 1000
    assert path not in open_files(), f"held while {told} is"


def open_files() -> set[Path]:
    """What this process has open."""
    return {link.resolve() for link in Path("/proc/self/fd").iterdir() if link.exists()}

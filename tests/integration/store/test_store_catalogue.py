"""The catalogue in SQLite: its tables, its versions, its neighbours."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.store import SqliteCatalogue
from nephila.store.catalogue import SCHEMA_VERSION
from nephila.testing.contracts.catalogue import OTHER, SEGMENT, sample_error, sample_row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.sqlite"


@pytest.fixture
def catalogue(path: Path) -> Iterator[SqliteCatalogue]:
    opened = SqliteCatalogue(path)
    yield opened
    opened.close()


def _query(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (
            "pages",
            """url_hash url domain status content_type content_hash simhash length storage_key crawled_at next_crawl_at
            crawl_count change_rate priority depth retries via""",
        ),
        (
            "domains",
            "robots_txt robots_fetched_at crawl_delay_ms last_crawled_at total_pages avg_response_ms blocked",
        ),
        ("errors", "kind detail at"),
        ("tasks", "worker assigned_at timeout_at completed_at status"),
        ("captures", "url at status segment"),
        ("dead_letters", "url kind detail at"),
    ],
)
def test_tables_have_the_columns_that_people_query(
    catalogue: SqliteCatalogue, path: Path, table: str, columns: str
) -> None:
    """W3: every column of the specification, generated ones included."""
    found = {row[1] for row in _query(path, f"PRAGMA table_xinfo({table})")}
    assert set(columns.split()) <= found


def test_domains_follow_from_captures(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3: pages, average response time and robots.txt of a domain, each capture counted once."""
    rows = [
        replace(sample_row(0), robots=True, elapsed_ms=10, crawl_delay_ms=2_500, robots_txt="User-agent: *\n"),
        replace(sample_row(1), elapsed_ms=20),
        replace(sample_row(2), elapsed_ms=60, status=404),
        replace(sample_row(3, "https://spiders.example/1"), elapsed_ms=30, status=304),
    ]
    catalogue.record(rows, ())
    catalogue.record(rows, ())
    [found] = _query(path, "SELECT * FROM domains")
    assert found == ("spiders.example", "User-agent: *\n", rows[0].at, 2_500, rows[3].at, 2, 4, 120, 30.0, 0)


def test_tasks_tell_who_did_what(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3: worker, when it was assigned, when its lease would have ended, when it was done."""
    row = replace(sample_row(1), worker="0", assigned_at=5, timeout_at=300_005, elapsed_ms=20)
    catalogue.record([row, replace(sample_row(2), status=503)], ())
    found = _query(path, "SELECT url, worker, assigned_at, timeout_at, completed_at, status FROM tasks ORDER BY url")
    assert found[0] == (row.url, "0", 5, 300_005, row.at + 20, "completed")
    assert found[1][-1] == "failed"


def test_a_dead_letter_is_gone_when_its_page_comes(catalogue: SqliteCatalogue, path: Path) -> None:
    """F9, W3: given up, then put back and fetched; the errors stay on record."""
    catalogue.record((), [sample_error(1), sample_error(2, dead=True), sample_error(3, dead=True)])
    assert _query(path, "SELECT url, kind, retries FROM dead_letters ORDER BY url") == [
        (sample_row(2).url, "timeout", 3),
        (sample_row(3).url, "timeout", 3),
    ]
    catalogue.record([replace(sample_row(9, sample_row(2).url))], ())
    assert _query(path, "SELECT url FROM dead_letters") == [(sample_row(3).url,)]
    assert _query(path, "SELECT count(*) FROM errors") == [(3,)]


def test_rebuilding_gives_what_recording_gave(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3, N8: pages, domains and marks come out the same; what was not in the rows is gone."""
    rows = [replace(sample_row(number), segment=(SEGMENT, OTHER)[number % 2]) for number in range(40)]
    catalogue.record([*rows, sample_row(77)], [sample_error(50, dead=True)])
    catalogue.rebuild(rows)
    fresh = SqliteCatalogue(path.with_name("fresh.sqlite"))
    fresh.record(rows, ())
    assert list(catalogue.pages(limit=99)) == list(fresh.pages(limit=99))
    assert [catalogue.upto(one) for one in (SEGMENT, OTHER)] == [fresh.upto(one) for one in (SEGMENT, OTHER)]
    fresh.close()
    assert _query(path, "SELECT total_pages FROM domains") == [(40,)]
    assert _query(path, "SELECT count(*) FROM dead_letters") == [(1,)]
    assert catalogue.captures_of(sample_row(77).fingerprint) == []


def test_another_version_is_refused_with_a_sentence(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3: by whoever opens it, before anything is read or written."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StorageError, match=f"version {SCHEMA_VERSION + 1}") as caught:
            SqliteCatalogue(path, read_only=read_only)
        assert "anew" in caught.value.hint


def test_what_is_no_catalogue_is_refused(tmp_path: Path, path: Path) -> None:
    """W3: another SQLite file, another file, no file."""
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE x (y)")
    connection.close()
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be asked" * 9)
    for name in ("other.sqlite", "text.sqlite"):
        with pytest.raises(StorageError, match=name):
            SqliteCatalogue(tmp_path / name)
    with pytest.raises(StorageError):
        SqliteCatalogue(path, read_only=True)
    assert not path.exists()


def test_reading_only_never_writes(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3, C4: `status` and `pages` look while a crawl writes."""
    reader = SqliteCatalogue(path, read_only=True)
    catalogue.record([sample_row(1)], ())
    assert [page.url for page in reader.pages()] == [sample_row(1).url]
    with pytest.raises(StorageError, match="readonly"):
        reader.record([sample_row(2)], ())
    reader.close()


def test_a_batch_is_one_act(catalogue: SqliteCatalogue) -> None:
    """W3: a row that SQLite refuses takes its whole batch with it, and the next batch goes on."""
    bad = replace(sample_row(2), depth="deep")
    with pytest.raises(StorageError):
        catalogue.record([sample_row(1), bad], [sample_error(1)])
    assert list(catalogue.pages()) == []
    assert catalogue.upto(SEGMENT) == 0
    catalogue.record([sample_row(1)], ())
    assert catalogue.upto(SEGMENT) == 2_000


def test_segments_longer_than_a_page_of_rows_come_whole(
    catalogue: SqliteCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: reading in pages gives every row once, in order."""
    monkeypatch.setattr("nephila.store.catalogue.READ_BATCH", 7)
    rows = [sample_row(number) for number in range(25)]
    catalogue.record(rows, ())
    assert list(catalogue.captures(SEGMENT)) == rows


def test_several_processes_write_one_catalogue(catalogue: SqliteCatalogue, path: Path) -> None:
    """W3: a process per core, each with its own segment; none is refused for another's sake."""
    script = (
        "import sys; from pathlib import Path; from dataclasses import replace\n"
        "from nephila.store import SqliteCatalogue\n"
        "from nephila.testing.contracts.catalogue import sample_row\n"
        "catalogue = SqliteCatalogue(Path(sys.argv[1]))\n"
        "for batch in range(20):\n"
        "    row = sample_row(batch, f'https://spiders.example/{sys.argv[2]}/{batch}')\n"
        "    catalogue.record([replace(row, segment=sys.argv[2])], ())\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), f"s{number}"]) for number in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(writer.pid, 0)[1]) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.returncode = 0
    assert len(list(catalogue.pages(limit=99))) == 60
    assert {catalogue.upto(f"s{number}") for number in range(3)} == {20_000}


def test_the_listing_uses_its_indexes(catalogue: SqliteCatalogue, path: Path) -> None:
    """F8, W3: the newest pages, of all or of a host, are found without sorting the table."""
    for query in (
        "SELECT url FROM pages ORDER BY crawled_at DESC LIMIT 9",
        "SELECT url FROM pages WHERE host = 'x' ORDER BY crawled_at DESC LIMIT 9",
        "SELECT url FROM captures WHERE url_hash = x'00' ORDER BY at DESC",
    ):
        plan = " ".join(str(row[3]) for row in _query(path, f"EXPLAIN QUERY PLAN {query}"))
        assert "INDEX" in plan
        assert "TEMP B-TREE" not in plan


def test_segments_are_known_for_a_batch_only(catalogue: SqliteCatalogue) -> None:
    """Q3, W3: a layout by domain and hour makes segments without end, which must not gather in memory."""
    for number in range(20):
        catalogue.record([replace(sample_row(number), segment=SegmentId(f"s{number % 10}.warc.gz"))], ())
    assert len(catalogue._segments) == 1
    assert catalogue.capture_count() == 20
    assert [len(list(catalogue.captures(SegmentId(f"s{number}.warc.gz")))) for number in range(10)] == [2] * 10


def test_what_is_taken_out_cannot_be_read_from_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K2: also where SQLite was built to leave deleted rows in its free pages, which is its default."""

    def careless(*given: object, **named: object) -> sqlite3.Connection:
        connection = connect(*given, **named)  # type: ignore[call-overload]
        connection.execute("PRAGMA secure_delete = OFF")
        return connection  # type: ignore[no-any-return]

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", careless)
    catalogue = SqliteCatalogue(path)
    text = "what must not be kept " * 300
    url = "https://gone.example/jane"
    rows = [replace(sample_row(number), host="gone.example", title=text) for number in range(1, 9)]
    failed = replace(sample_error(2), url=url, host="gone.example", detail=text)
    catalogue.record([sample_row(0), *rows, sample_row(20)], [failed])
    removal = catalogue.removal()
    removal.remove([row for row in removal.rows() if row.host == "gone.example"])
    removal.forget_failures((), "gone.example")
    removal.make_durable()
    catalogue.close()
    left = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert b"what must not be kept" not in left
    assert len(_query(path, "SELECT 1 FROM captures")) == 2

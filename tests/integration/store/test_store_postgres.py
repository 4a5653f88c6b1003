"""The catalogue in PostgreSQL: its tables and versions, its neighbours, and a server that comes and goes."""

from __future__ import annotations

import itertools
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from gate import Gate, gate
from postgres import DATABASE, PASSWORD, USER, Postgres, running
from secured_front import SecuredFront

from nephila.engines.postgres import Patience, PostgresDatabase
from nephila.engines.postgres_address import PostgresAddress
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import DatabaseAwayError, DatabaseRefusedError, NephilaError, StorageError, UsageError
from nephila.model.record import SegmentId
from nephila.model.settings import CatalogueSettings
from nephila.store.postgres import PostgresCatalogue
from nephila.store.postgres import statements as sql
from nephila.store.postgres.migrating import Migration, known_migrations, schema_of
from nephila.store.postgres.staging import batches, cleaned, month_of
from nephila.testing.contracts.catalogue import OTHER, SEGMENT, sample_error, sample_row

Open = Callable[..., PostgresCatalogue]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as started:
        yield started


@pytest.fixture
def crawl() -> str:
    return f"crawl-{next(_numbers)}"


@pytest.fixture
def schema(crawl: str) -> str:
    return f'"{schema_of(crawl)}"'


@pytest.fixture
def open_one(server: Postgres, crawl: str) -> Iterator[Open]:
    opened: list[PostgresCatalogue] = []

    def open_it(**options: object) -> PostgresCatalogue:
        settings = replace(server.settings, **{name: options.pop(name) for name in [*options] if name in SETTINGS})
        name = str(options.pop("crawl", crawl))
        opened.append(PostgresCatalogue(settings, name, server.environ, **options))  # type: ignore[arg-type]  # tests
        return opened[-1]

    yield open_it
    for catalogue in opened:
        catalogue.close()


SETTINGS = {"batch_rows", "open_s", "retry_s", "timeout_s"}


# Tables


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
    server: Postgres, open_one: Open, schema: str, table: str, columns: str
) -> None:
    """W3: every column of the specification, as in SQLite."""
    open_one()
    attributes = "SELECT attname FROM pg_attribute WHERE attnum > 0 AND attrelid = "
    found = server.query(attributes + f"'{table}'::regclass", schema)
    assert set(columns.split()) <= {name for (name,) in found}


def test_tasks_and_dead_letters(server: Postgres, open_one: Open, schema: str) -> None:
    """W3, F9: who did what; a dead letter is gone when its page comes, and does not come back with an old batch."""
    catalogue = open_one()
    letters = [sample_error(1), sample_error(2, dead=True), sample_error(3, dead=True)]
    catalogue.record((), letters)
    assert server.query("SELECT url, retries FROM dead_letters ORDER BY url", schema) == [
        (sample_row(2).url, "3"),
        (sample_row(3).url, "3"),
    ]
    row = replace(sample_row(9, sample_row(2).url), worker="w7", assigned_at=5, timeout_at=300_005, elapsed_ms=20)
    catalogue.record([row, replace(sample_row(10), status=503)], ())
    catalogue.record((), letters)
    assert server.query("SELECT url FROM dead_letters", schema) == [(sample_row(3).url,)]
    assert server.query("SELECT count(*) FROM errors", schema) == [("3",)]
    tasks = server.query("SELECT worker, assigned_at, completed_at, status FROM tasks ORDER BY url DESC", schema)
    assert tasks == [("w7", "5", str(row.at + 20), "completed"), ("", "0", str(sample_row(10).at + 40), "failed")]


def test_captures_lie_in_partitions_by_month(server: Postgres, open_one: Open, schema: str) -> None:
    """W3: made when they are needed, by the time of the capture; a segment over midnight of New Year comes whole."""
    catalogue = open_one()
    new_year = month_of(sample_row(0).at)[1]
    rows = [replace(sample_row(number), at=new_year - 2 + number) for number in range(5)]
    catalogue.record(rows, [replace(sample_error(1), at=new_year - 40 * 86_400_000)])
    found = server.query("SELECT tableoid::regclass, count(*) FROM captures GROUP BY 1 ORDER BY 1", schema)
    assert [(name.split(".")[-1].strip('"'), count) for name, count in found] == [
        ("captures_2025_12", "2"),
        ("captures_2026_01", "3"),
    ]
    assert list(catalogue.captures(SEGMENT)) == rows
    assert [page.url for page in catalogue.pages()] == [row.url for row in rows[::-1]]
    plan = "\n".join(
        line for (line,) in server.query("EXPLAIN SELECT * FROM captures WHERE at >= 1767225600000", schema)
    )
    assert "captures_2026_01" in plan
    assert "captures_2025_12" not in plan


def test_the_listing_uses_its_indexes(server: Postgres, open_one: Open, schema: str) -> None:
    """F8, W3: the newest pages, of all or of a host, are found without joining and sorting the table."""
    month_ms = 31 * 86_400_000
    rows = [replace(sample_row(number), at=sample_row(number).at + number % 3 * month_ms) for number in range(3_000)]
    open_one().record(rows, ())
    for analysed in (False, True):
        if analysed:
            server.query("ANALYZE", schema)
        for where in ("", "WHERE p.host = 'spiders.example'"):
            query = f"EXPLAIN ANALYZE {sql.SELECT_PAGES} {where} ORDER BY p.crawled_at DESC LIMIT 9"
            plan = "\n".join(line for (line,) in server.query(query, schema))
            assert "Index Scan Backward using page_states_by_" in plan
            assert "Sort" not in plan
            assert "never executed" in plan, "it looks into every partition"


def test_a_december_is_followed_by_a_january() -> None:
    """W3: months join without a gap."""
    at = sample_row(0).at
    for _ in range(30):
        _, begins, ends = month_of(at)
        assert begins <= at < ends
        assert month_of(ends)[1] == ends
        at = ends


def test_texts_that_postgres_cannot_hold_are_mended(open_one: Open) -> None:
    """W3, Q5: zero bytes and halves of surrogates out of a stranger's page cost a character, not the batch."""
    catalogue = open_one()
    catalogue.record(
        [replace(sample_row(1), title="a\0b\ud800c"), sample_row(2)],
        [replace(sample_error(3), detail="\0")],
    )
    [found] = catalogue.captures_of(sample_row(1).fingerprint)
    assert found.title == "a\N{REPLACEMENT CHARACTER}b?c"
    assert catalogue.captures_of(sample_row(2).fingerprint) == [sample_row(2)]
    batch = ([sample_row(1)], [sample_error(1)])
    assert cleaned(batch) is batch


# Batches


def test_batches_are_bounded_and_keep_marks_true() -> None:
    """W3, N4: however long a list is, a transaction is short; marks grow in order; robots.txt counts by its size."""
    rows = [replace(sample_row(number), segment=(SEGMENT, OTHER)[number % 2]) for number in range(25)]
    random.Random(4).shuffle(rows)
    cut = list(batches(rows, [sample_error(number) for number in range(9)], 10))
    assert all(len(captures) + len(errors) <= 10 for captures, errors in cut)
    assert [row for captures, _ in cut for row in captures] == sorted(rows, key=lambda row: (row.segment, row.offset))
    assert sum(len(errors) for _, errors in cut) == 9
    heavy = [replace(sample_row(number), robots=True, robots_txt="x" * 9_000_000) for number in range(3)]
    assert [len(captures) for captures, _ in batches(heavy, (), 100)] == [1, 1, 1]


def test_a_batch_is_one_act(open_one: Open) -> None:
    """W3: a row that cannot be taken takes its whole batch with it, is told, and the next batch goes on."""
    catalogue = open_one()
    with pytest.raises(StorageError):
        catalogue.record([sample_row(1), replace(sample_row(2), depth="deep")], [sample_error(1)])
    assert list(catalogue.pages()) == []
    assert catalogue.upto(SEGMENT) == 0
    catalogue.record([sample_row(1)], ())
    assert catalogue.upto(SEGMENT) == 2_000


# Neighbours


def test_crawls_stand_side_by_side(open_one: Open) -> None:
    """N7: each under its name, in one database."""
    first, second = open_one(crawl="news-of-the-day"), open_one(crawl="books")
    first.record([sample_row(1)], ())
    second.record([sample_row(2)], ())
    assert [page.url for page in first.pages()] == [sample_row(1).url]
    assert [page.url for page in second.pages()] == [sample_row(2).url]


def test_a_catalogue_of_another_crawl_is_refused(open_one: Open) -> None:
    """N7: two crawls of one name do not mix; one that came to nothing leaves its name to the next."""
    open_one(identity="a")
    other = open_one(identity="b")
    other.record([sample_row(1)], ())
    with pytest.raises(DatabaseRefusedError, match="another crawl"):
        open_one(identity="a")
    open_one(identity="b")


def test_workers_write_at_once_and_nobody_is_refused(server: Postgres, open_one: Open, schema: str) -> None:
    """W3, N3: the same pages, domains and dead letters from all sides, in any order, each counted as it came."""
    workers, rounds, pages = 4, 12, 40
    draw = random.Random(11)
    catalogues = [open_one() for _ in range(workers)]

    def rows_of(worker: int, number: int) -> list[CaptureRow]:
        urls = draw.sample(range(pages), pages)
        return [
            replace(
                sample_row(number * pages + place, f"https://spiders.example/{url}"),
                segment=SegmentId(f"w{worker}"),
                domain=f"d{url % 7}.example",
            )
            for place, url in enumerate(urls)
        ]

    work = [[rows_of(worker, number) for number in range(rounds)] for worker in range(workers)]

    def write(worker: int) -> None:
        for rows in work[worker]:
            letters = [
                replace(sample_error(url, dead=True), at=10**12 + worker) for url in draw.sample(range(pages), 10)
            ]
            catalogues[worker].record(rows, letters)
            catalogues[worker].record(rows[5:], letters)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(write, range(workers)))
    total = workers * rounds * pages
    assert catalogues[0].capture_count() == total
    assert server.query("SELECT count(*), sum(crawl_count) FROM page_states", schema) == [(str(pages), str(total))]
    assert server.query("SELECT sum(total_requests) FROM domains", schema) == [(str(total),)]
    assert server.query("SELECT count(*) FROM captures", schema) == [(str(total),)]


def test_writers_of_one_segment_take_turns(open_one: Open) -> None:
    """W3, N3: a worker that was taken for dead may write the rows that another one writes from the archive."""
    first, second = open_one(), open_one()
    rows = [sample_row(number) for number in range(300)]

    def write(catalogue: PostgresCatalogue) -> None:
        for start in range(0, 300, 20):
            catalogue.record(rows[start : start + 20], ())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, [first, second]))
    assert first.capture_count() == 300
    assert {page.crawl_count for page in first.pages(limit=999)} == {1}


def test_reading_only_makes_nothing(server: Postgres, open_one: Open, crawl: str) -> None:
    """W3, C4: `status` and `pages` look; where there is nothing to see they say so."""
    with pytest.raises(DatabaseRefusedError, match="no catalogue"):
        open_one(read_only=True)
    assert server.query(f"SELECT to_regnamespace('\"{schema_of(crawl)}\"')") == [("",)]
    open_one().record([sample_row(1)], ())
    assert [page.url for page in open_one(read_only=True).pages()] == [sample_row(1).url]


# Versions


def test_migrations_run_once_each_whoever_comes_first(server: Postgres, open_one: Open, schema: str) -> None:
    """W3: of many workers that start at once one makes the tables."""
    with ThreadPoolExecutor(6) as pool:
        for _ in pool.map(lambda _: open_one(), range(6)):
            pass
    done = [int(number) for (number,) in server.query("SELECT number FROM migrations ORDER BY number", schema)]
    assert done == [one.number for one in known_migrations()] == [*range(1, len(done) + 1)]


def test_an_older_catalogue_is_brought_up_to_date(
    server: Postgres, open_one: Open, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: what is missing is run, what was recorded stays; who only reads waits for one who writes."""
    open_one().record([sample_row(1)], ())
    further = Migration(len(known_migrations()) + 1, "ALTER TABLE domains ADD COLUMN note text NOT NULL DEFAULT 'none'")
    newer = (*known_migrations(), further)
    monkeypatch.setattr("nephila.store.postgres.catalogue.known_migrations", lambda: newer)
    with pytest.raises(DatabaseRefusedError, match=f"migration {further.number} is missing"):
        open_one(read_only=True)
    open_one()
    assert server.query("SELECT domain, note FROM domains", schema) == [("spiders.example", "none")]
    monkeypatch.undo()
    for read_only in (True, False):
        with pytest.raises(DatabaseRefusedError, match=f"version {further.number}; this Nephila knows"):
            open_one(read_only=read_only)


def test_a_migration_that_fails_leaves_nothing_behind(
    server: Postgres, open_one: Open, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: all of them or none."""
    broken = (*known_migrations(), Migration(99, "CREATE TABLE half (x integer); SELECT 1 / 0"))
    monkeypatch.setattr("nephila.store.postgres.catalogue.known_migrations", lambda: broken)
    with pytest.raises(DatabaseRefusedError, match="division"):
        open_one()
    monkeypatch.undo()
    open_one()
    assert server.query("SELECT to_regclass('half')", schema) == [("",)]


def test_a_schema_of_somebody_else_is_left_alone(server: Postgres, open_one: Open, schema: str) -> None:
    """N7: nothing is made among tables that are not ours."""
    server.query(f"CREATE SCHEMA {schema}; CREATE TABLE letters (x integer)", schema)
    with pytest.raises(DatabaseRefusedError, match="something else"):
        open_one()


# A server that comes and goes


def test_writing_goes_on_when_the_server_comes_back() -> None:
    """N4, W3: connections break in the middle of batches, twice; nothing is lost and nothing counted twice."""
    with running() as own:
        told: list[str] = []
        catalogue = PostgresCatalogue(own.settings, "restart", own.environ, tell=lambda word, _: told.append(word))
        under_way, enough = threading.Event(), threading.Event()

        def write() -> int:
            written = 0
            while not enough.is_set():
                rows = [sample_row(100 * written + place) for place in range(100)]
                catalogue.record(rows, [sample_error(written)])
                written += 1
                under_way.set()
            return written

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            for _ in range(2):
                under_way.clear()
                assert under_way.wait(60)
                own.crash()
                _until(lambda: told[-1:] == ["database_away"])
                own.start()
                _until(lambda: told[-1:] == ["database_back"])
            enough.set()
            count = writing.result(60)
        assert catalogue.capture_count() == 100 * count
        assert catalogue.upto(SEGMENT) == 100_000 * count
        counted = own.query("SELECT count(*), sum(crawl_count) FROM page_states", "crawl_restart")
        assert counted == [(str(100 * count), str(100 * count))]
        assert own.query("SELECT count(*) FROM errors", "crawl_restart") == [(str(count),)]
        assert told == ["database_away", "database_back"] * 2
        catalogue.close()


def _until(true: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(("theirs", "ours"), [("off", "on"), ("on", "on"), ("local", "local")])
def test_what_a_server_answers_is_on_its_disk(theirs: str, ours: str, server: Postgres, crawl: str) -> None:
    """N4, W2, F8: a crash there must not undo what has left spool and queues since; more than that is theirs."""
    server.query(f"ALTER ROLE {USER} SET synchronous_commit = {theirs}")
    address = PostgresAddress.of(server.settings, server.environ)
    database = PostgresDatabase(address, schema_of(crawl), server.settings)
    try:
        for _ in range(2):  # on a new connection, and on one that was used before
            shown = database.do(lambda session: session.value("SHOW synchronous_commit"), Patience(5))
            assert shown == ours
    finally:
        database.close()
        server.query(f"ALTER ROLE {USER} RESET synchronous_commit")


def test_a_server_that_a_network_has_swallowed(server: Postgres) -> None:
    """N4: a batch that gets no answer is given up after its time and written again; a hurry ends that, too."""
    told: list[str] = []
    with gate(server.port) as door:
        url = f"postgresql://{USER}@127.0.0.1:{door.port}/{DATABASE}"
        settings = replace(server.settings, url=url, timeout_s=0.3, connect_timeout_s=0.3)
        catalogue = PostgresCatalogue(settings, "hang", server.environ, tell=lambda word, _: told.append(word))
        catalogue.record([sample_row(1)], ())
        with writing(door, catalogue, 2) as written:
            _until(lambda: told[-1:] == ["database_away"])
            door.let_go()
            written.result(30)
            assert catalogue.capture_count() == 2
        catalogue.close()
        patient = PostgresCatalogue(replace(settings, timeout_s=300), "hang", server.environ)
        with writing(door, patient, 3) as written:
            patient.hurry(0.1)
            with pytest.raises(DatabaseAwayError, match="in time"):
                written.result(30)
        patient.close()


@contextmanager
def writing(door: Gate, catalogue: PostgresCatalogue, number: int) -> Iterator[Future[None]]:
    """A row on its way to a server that the network has swallowed; afterwards nothing is held up."""
    with ThreadPoolExecutor(1) as pool:
        door.hold()
        try:
            yield pool.submit(catalogue.record, [sample_row(number)], ())
        finally:
            door.let_go()


def test_a_server_that_stays_away_is_given_up_when_the_end_has_come() -> None:
    """N4, F10: Ctrl-C does not wait for a database; what the catalogue lacks is in the archive."""
    with running() as own:
        catalogue = PostgresCatalogue(own.settings, "hurry", own.environ)
        catalogue.record([sample_row(1)], ())
        own.stop()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(catalogue.record, [sample_row(2)], ())
            assert not waiting.done()
            catalogue.hurry(0.2)
            with pytest.raises(DatabaseAwayError) as caught:
                waiting.result(30)
        assert "archive" in caught.value.hint
        with pytest.raises(DatabaseAwayError):
            catalogue.record([sample_row(3)], ())
        own.start()
        catalogue.close()
        again = PostgresCatalogue(own.settings, "hurry", own.environ)
        assert again.upto(SEGMENT) == 2_000
        again.close()


def test_a_server_that_is_not_there_is_told_in_a_sentence(server: Postgres, open_one: Open) -> None:
    """N4, C4: the start waits for it, but not for ever; what will not change by waiting is told at once."""

    def refused(**changes: object) -> NephilaError:
        with pytest.raises(NephilaError) as caught:
            PostgresCatalogue(replace(server.settings, open_s=0.1, **changes), "x", server.environ)  # type: ignore[arg-type]  # tests
        assert PASSWORD not in f"{caught.value} {caught.value.hint}"
        return caught.value

    own = f"{USER}@127.0.0.1:{server.port}"
    assert isinstance(refused(url="postgresql://spider@127.0.0.1:1/crawls"), DatabaseAwayError)
    assert isinstance(refused(url=f"postgresql://{own}/nowhere"), DatabaseRefusedError)
    assert "password" in str(refused(url=f"postgresql://stranger@127.0.0.1:{server.port}/{DATABASE}"))
    assert "has a password in it" in str(refused(url=f"postgresql://u:{PASSWORD}@h/d"))
    assert "not with postgresql" in str(refused(url="mysql://u@h/d"))
    assert "names no database" in str(refused(url=f"postgresql://{own}"))
    assert "names no user" in str(refused(url="postgresql://127.0.0.1/crawls"))
    assert "cannot be read" in str(refused(password_file=str(Path("/nonexistent"))))
    with pytest.raises(UsageError, match="cannot be the name"):
        open_one(crawl="Robert'); DROP")


def test_passwords_come_from_a_file_and_are_shown_nowhere(server: Postgres, tmp_path: Path) -> None:
    """N4, K4: a file goes before the environment."""
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    settings = replace(server.settings, password_file=str(file))
    catalogue = PostgresCatalogue(settings, "filed", {"PGPASSWORD": "wrong"})
    assert catalogue.capture_count() == 0
    assert PASSWORD not in repr(vars(catalogue)) + repr(catalogue._database.address)
    catalogue.close()


# TLS


def test_lines_are_secured_and_certificates_verified(server: Postgres, tmp_path: Path) -> None:
    """N4, K4: by the authorities of the settings; what is not trusted is refused, what is not encrypted too."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    stranger.cert_pem.write_to_path(tmp_path / "stranger.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with pytest.raises(StorageError, match="does not speak TLS"):
        PostgresCatalogue(replace(server.settings, tls="verified", open_s=0), "secured", server.environ)
    front = SecuredFront(server.port, context, asked=True)
    with front.running() as port:
        known = replace(
            server.settings,
            url=f"postgresql://{USER}@127.0.0.1:{port}/{DATABASE}",
            tls="verified",
            authorities=str(tmp_path / "ca.pem"),
        )
        catalogue = PostgresCatalogue(known, "secured", server.environ)
        catalogue.record([sample_row(1)], ())
        assert catalogue.capture_count() == 1
        assert front.secured == 1
        catalogue.close()
        for authorities in ("", str(tmp_path / "stranger.pem")):
            with pytest.raises(DatabaseRefusedError, match="not trusted"):
                PostgresCatalogue(replace(known, authorities=authorities), "secured", server.environ)
        PostgresCatalogue(replace(known, tls="unverified", authorities=""), "secured", server.environ).close()
        assert front.secured == 2


def test_only_this_machine_is_spoken_to_in_the_clear() -> None:
    """K4: unless somebody says so."""
    for host, clear in (("localhost", True), ("127.0.0.1", True), ("[::1]", True), ("db.example", False)):
        settings = CatalogueSettings(url=f"postgresql://u@{host}/d")
        assert (PostgresAddress.of(settings, {}).tls is None) == clear
        assert PostgresAddress.of(replace(settings, tls="off"), {}).tls is None
        assert PostgresAddress.of(replace(settings, tls="verified"), {}).tls is not None
    assert PostgresAddress.of(CatalogueSettings(url="postgresql://u@/d?host=/run/postgresql"), {}).tls is None

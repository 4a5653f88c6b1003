"""Questions of people in SQL, to the catalogue in SQLite and in PostgreSQL: answered, and nothing is changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from postgres import Postgres, running

from nephila.interfaces.queries import CatalogueQueries
from nephila.model.errors import DatabaseAwayError, DatabaseRefusedError, NephilaError, QueryError, StorageError
from nephila.store import SqliteCatalogue
from nephila.store.postgres import PostgresCatalogue
from nephila.store.postgres.query import PostgresQueries
from nephila.store.query import SqliteQueries
from nephila.testing.contracts.catalogue import sample_error, sample_row

ROWS = [sample_row(number) for number in range(1_200)]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as started:
        yield started


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[CatalogueQueries]:
    catalogue = SqliteCatalogue(tmp_path / "catalogue.sqlite")
    catalogue.record(ROWS, [sample_error(1)])
    queries = SqliteQueries(tmp_path / "catalogue.sqlite")
    yield queries
    queries.close()
    assert catalogue.capture_count() == len(ROWS)
    assert sorted(path.name for path in tmp_path.iterdir() if "wal" not in path.name and "shm" not in path.name) == [
        "catalogue.sqlite"
    ]
    catalogue.close()


@pytest.fixture(scope="module")
def filled(server: Postgres) -> Iterator[PostgresCatalogue]:
    catalogue = PostgresCatalogue(server.settings, "asked", server.environ)
    catalogue.record(ROWS, [sample_error(1)])
    yield catalogue
    catalogue.close()


@pytest.fixture
def on_postgres(server: Postgres, filled: PostgresCatalogue) -> Iterator[CatalogueQueries]:
    queries = PostgresQueries(server.settings, "asked", server.environ)
    yield queries
    queries.close()
    assert filled.capture_count() == len(ROWS)


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def queries(request: pytest.FixtureRequest) -> CatalogueQueries:
    found: CatalogueQueries = request.getfixturevalue(request.param)
    return found


def test_what_is_asked_is_answered(queries: CatalogueQueries) -> None:
    """W6: names and rows, of views too, however many there are."""
    answer = queries.ask('SELECT status, count(*) AS n, max("offset") FROM captures GROUP BY status -- so')
    assert list(answer.columns)[:2] == ["status", "n"]
    assert list(answer.rows) == [(200, 1_200, 1_199_000)]
    assert len(list(queries.ask("SELECT url FROM pages").rows)) == 1_200
    assert list(queries.ask("SELECT sum(length) FROM pages").rows) == [(6_000_000,)]
    [(hash_,)] = queries.ask("SELECT url_hash FROM errors").rows
    assert hash_ == sample_row(1).fingerprint
    assert list(queries.ask("SELECT url FROM dead_letters").rows) == []


def test_an_answer_may_be_left_for_another(queries: CatalogueQueries) -> None:
    """W6: who has seen enough asks the next question."""
    first = queries.ask("SELECT url FROM pages")
    next(first.rows)
    assert list(queries.ask("SELECT 1").rows) == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM captures",
        "UPDATE domains SET blocked = 1",
        "INSERT INTO totals VALUES (1, 2)",
        "DROP TABLE errors",
        "CREATE TABLE mine (a integer)",
        "CREATE TEMP TABLE mine (a integer)",
        "ATTACH 'other.sqlite' AS other",
        "PRAGMA journal_mode = DELETE",
        "VACUUM INTO 'copy.sqlite'",
        "BEGIN",
        "COMMIT",
        "SET search_path TO public",
        "COPY captures TO '/tmp/out'",
        "WITH gone AS (DELETE FROM captures RETURNING 1) SELECT * FROM gone",
        "SELECT load_extension('x')",
    ],
)
def test_what_would_change_something_is_refused(queries: CatalogueQueries, statement: str) -> None:
    """W6: whatever it is, and the next question is answered."""
    with pytest.raises(QueryError):
        list(queries.ask(statement).rows)
    assert list(queries.ask("SELECT 1").rows) == [(1,)]


@pytest.mark.parametrize("statement", ["SELEC 1", "SELECT nothing FROM pages", "SELECT 1; SELECT 2", "SELECT 'a", "--"])
def test_a_mistake_is_told_in_a_sentence(queries: CatalogueQueries, statement: str) -> None:
    """W6: what the engine says of it; the next question is answered."""
    with pytest.raises(QueryError):
        list(queries.ask(statement).rows)
    assert list(queries.ask("SELECT 1").rows) == [(1,)]


def test_tables_and_their_columns_are_listed(queries: CatalogueQueries) -> None:
    """W6, W3: the documented ones, without partitions."""
    tables = {table.name: dict(table.columns) for table in queries.tables()}
    assert {"captures", "pages", "domains", "errors", "dead_letters", "tasks"} <= tables.keys()
    assert {"url", "status", "storage_key"} <= tables["pages"].keys()
    assert not [name for name in tables if name.startswith("captures_")]
    assert tables["captures"]["url"] == "text"


def test_a_catalogue_that_is_none_is_told(tmp_path: Path, server: Postgres) -> None:
    """W6: no file, a file of another kind, a crawl that the database does not have."""
    (tmp_path / "text").write_text("no database")
    for path in (tmp_path / "none", tmp_path / "text"):
        with pytest.raises(StorageError):
            SqliteQueries(path)
    with pytest.raises((DatabaseRefusedError, DatabaseAwayError, NephilaError)):
        PostgresQueries(server.settings, "never-crawled", server.environ)


FOR_EVER = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT max(a) FROM n",
    "postgres": "SELECT max(a) FROM (SELECT pg_sleep(0.01), a FROM generate_series(1, 1000000) AS a) AS n",
}


def test_a_statement_that_takes_for_ever_ends_with_ctrl_c(
    tmp_path: Path, server: Postgres, filled: PostgresCatalogue
) -> None:
    """W6: at once, in either engine; the server is told to stop, and the next question is answered."""
    SqliteCatalogue(tmp_path / "catalogue.sqlite").close()
    opening = {
        "sqlite": "from nephila.store.query import SqliteQueries as Q;"
        f"q = Q(Path({str(tmp_path / 'catalogue.sqlite')!r}))",
        "postgres": "from nephila.store.postgres.query import PostgresQueries as Q;"
        "from nephila.model.settings import CatalogueSettings;"
        f"q = Q(CatalogueSettings(url={server.settings.url!r}), 'asked', os.environ)",
    }
    for engine, script in opening.items():
        program = (
            f"import os, sys; from pathlib import Path; {script}\n"
            f"try:\n print('asking', flush=True); list(q.ask({FOR_EVER[engine]!r}).rows)\n"
            "except KeyboardInterrupt:\n assert list(q.ask('SELECT 1').rows) == [(1,)]; q.close(); sys.exit(7)"
        )
        environment = {**os.environ, **server.environ}
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        _wait_for(partial(_is_busy, process.pid, engine, filled))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 7
        process.stdout.close()
    _wait_for(lambda: not _asked(filled))


def _asked(catalogue: PostgresCatalogue) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'nephila sql' AND state = 'active'"
    return bool(catalogue._rows(query))


def _is_busy(pid: int, engine: str, catalogue: PostgresCatalogue) -> bool:
    """Whether a process computes, or has asked the server."""
    if engine == "postgres":
        return _asked(catalogue)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) > 30


def _wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)

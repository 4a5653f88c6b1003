"""The catalogue's promises, on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres import VERSIONS, Postgres, running

from nephila.store import SqliteCatalogue
from nephila.store.postgres import PostgresCatalogue
from nephila.testing.contracts.catalogue import CHECKS, OpenCatalogue

Check = Callable[[OpenCatalogue], None]


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[OpenCatalogue]:
    opened: list[SqliteCatalogue] = []

    def open_one() -> SqliteCatalogue:
        opened.append(SqliteCatalogue(tmp_path / "catalogue.sqlite"))
        return opened[-1]

    yield open_one
    for catalogue in opened:
        catalogue.close()


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with running(request.param) as started:
        yield started


@pytest.fixture
def on_postgres(server: Postgres, request: pytest.FixtureRequest) -> Iterator[OpenCatalogue]:
    opened: list[PostgresCatalogue] = []
    crawl = f"c{hash(request.node.name) % 10**9}"

    def open_one() -> PostgresCatalogue:
        opened.append(PostgresCatalogue(server.settings, crawl, server.environ))
        return opened[-1]

    yield open_one
    for catalogue in opened:
        catalogue.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sqlite_catalogue_keeps_the_contract(check: Check, on_sqlite: OpenCatalogue) -> None:
    """W3: every check of the suite."""
    check(on_sqlite)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_postgres_catalogue_keeps_the_contract(check: Check, on_postgres: OpenCatalogue) -> None:
    """W3, N2: every check of the suite, on the oldest and the newest version that there is a server of."""
    check(on_postgres)

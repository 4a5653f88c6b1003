"""The catalogue's promises, on SQLite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nephila.store import SqliteCatalogue
from nephila.testing.contracts.catalogue import CHECKS, OpenCatalogue


@pytest.fixture
def open_catalogue(tmp_path: Path) -> Iterator[OpenCatalogue]:
    opened: list[SqliteCatalogue] = []

    def open_one() -> SqliteCatalogue:
        opened.append(SqliteCatalogue(tmp_path / "catalogue.sqlite"))
        return opened[-1]

    yield open_one
    for catalogue in opened:
        catalogue.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sqlite_catalogue_keeps_the_contract(
    check: Callable[[OpenCatalogue], None], open_catalogue: OpenCatalogue
) -> None:
    """W3: every check of the suite."""
    check(open_catalogue)

"""Webs that the end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import QUICK, crawl_json, served
from webs import DELAY_S, Crawled, standard_served


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The standard web (50 hosts, 2,000 pages), crawled once by the command line."""
    folder = tmp_path_factory.mktemp("standard")
    spec, arguments = standard_served(1)
    with served(folder / "web", spec, *arguments) as web:
        summary = crawl_json(web, folder / "crawl", "--delay", str(DELAY_S), *QUICK, "--max-wait", "10")
        yield Crawled(web, folder / "crawl", summary, web.audit())

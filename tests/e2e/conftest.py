"""What the end-to-end tests share: a web that is crawled once, and the engines of fleets.

A process of pytest starts each server once: every fleet has a crawl of its own name, so that keys, tables and objects
of two never meet. A test that harms a server starts one for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import postgres
import pytest
from fleet_engines import Engines
from gate import gate
from postgres import Postgres
from seaweed import Seaweed
from served import QUICK, crawl_json, served
from valkey_servers import ValkeySingle
from webs import DELAY_S, Crawled, standard_served


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The standard web (50 hosts, 2,000 pages), crawled once by the command line."""
    folder = tmp_path_factory.mktemp("standard")
    spec, arguments = standard_served(1)
    with served(folder / "web", spec, *arguments) as web:
        summary = crawl_json(web, folder / "crawl", "--delay", str(DELAY_S), *QUICK, "--max-wait", "10")
        yield Crawled(web, folder / "crawl", summary, web.audit())


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """One for all: each crawl has tables of its own."""
    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeySingle]:
    """One for all: each crawl has keys of its own."""
    with ValkeySingle("--appendonly", "yes") as server:
        yield server


@pytest.fixture
def engines(valkey: ValkeySingle, database: Postgres, object_server: Seaweed) -> Iterator[Engines]:
    """The usual ones, with a door in front of the store for each test."""
    with gate(object_server.ports[0]) as door:
        yield Engines(valkey.names, database, object_server, door)


@pytest.fixture(scope="module")
def lasting_engines(valkey: ValkeySingle, database: Postgres, object_server: Seaweed) -> Iterator[Engines]:
    """The same for a crawl that all tests of a file look at."""
    with gate(object_server.ports[0]) as door:
        yield Engines(valkey.names, database, object_server, door)


@pytest.fixture
def hold() -> Iterator[ExitStack]:
    """Ends what a test has begun, the last first."""
    with ExitStack() as stack:
        yield stack

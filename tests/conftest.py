"""What all tests share: figures that are listed at the end of the run, and a server that several want."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from seaweed import Seaweed, make_bucket, running

FIGURES: pytest.StashKey[list[str]] = pytest.StashKey()


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Put a line on the list that is printed at the end, under the name of the test."""
    figures = request.config.stash.setdefault(FIGURES, [])
    return lambda line: figures.append(f"{request.node.name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was said."""
    if figures := terminalreporter.config.stash.get(FIGURES, None):
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def object_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    """A real S3 server with one bucket, for all tests that want one."""
    with running(tmp_path_factory.mktemp("seaweed")) as server:
        make_bucket(server)
        yield server

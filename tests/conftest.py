"""Figures that tests measured, listed at the end of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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

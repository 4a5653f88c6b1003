"""Where the material that others made lies, and what our parts scored on it.

The material is not part of the project: `$NEPHILA_MATERIAL` names its folder, else it is looked for beside the project.
Where it is absent no suite of this folder runs, and one line at the end says which did not; where it is there, the
figures are listed at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MATERIAL = Path(os.environ.get("NEPHILA_MATERIAL") or HERE.parents[2] / "shared" / "material")

FIGURES: pytest.StashKey[list[str]] = pytest.StashKey()
NOT_RUN: pytest.StashKey[set[str]] = pytest.StashKey()

Tell = Callable[[str, int, int], None]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave this folder's tests out where there is nothing to compare with."""
    if MATERIAL.is_dir():
        return
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    config.stash[NOT_RUN] = {item.path.stem.removeprefix("test_conformance_") for item in ours}
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was scored, or what did not run."""
    stash = terminalreporter.config.stash
    if names := stash.get(NOT_RUN, None):
        terminalreporter.write_line(
            f"conformance suites that did not run, as there is no material at {MATERIAL}: {', '.join(sorted(names))}"
        )
    if figures := stash.get(FIGURES, None):
        terminalreporter.section("conformance")
        for line in figures:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def material() -> Path:
    return MATERIAL


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Tell:
    """Put a figure on the list that is printed at the end."""
    figures = pytestconfig.stash.setdefault(FIGURES, [])

    def told(name: str, hits: int, cases: int) -> None:
        figures.append(f"{name}: {hits}/{cases} = {hits / max(1, cases):.4f}")

    return told

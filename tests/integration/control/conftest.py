"""A crawl of a small simulated web that has ended, and the API on a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from control import InProcess, controlled
from simulation import PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.testing.web import SimulatedWeb, WebSpec

SETTINGS = replace(
    PATIENT,
    politeness=replace(PATIENT.politeness, delay_s=0.01),
    robots=replace(PATIENT.robots, fresh_s=1e9),
)
"""The crawl was in simulated January, and is looked at today: its robots.txt are still in force."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Twelve hosts of all kinds: redirects, robots, duplicates, failures."""
    web = SimulatedWeb(WebSpec(5, 12, 150))
    ended = simulate(web, tmp_path_factory.mktemp("control") / "crawl", SETTINGS)
    write_stored(ended.out, SETTINGS)
    return ended


@pytest.fixture
def out(finished: Simulated, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(finished.out, tmp_path / "crawl")
    return tmp_path / "crawl"


@pytest.fixture
def api(out: Path) -> Iterator[InProcess]:
    with controlled(out) as found:
        yield found

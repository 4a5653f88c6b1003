"""The API held against its own description, by requests that nobody has thought of (schemathesis)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from control import InProcess, controlled
from described import description_of, each_mode, each_operation, hold_to_description
from schemathesis import GenerationMode
from simulation import Simulated

EXAMPLES = 8


@pytest.fixture(scope="module")
def served(finished: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    out = tmp_path_factory.mktemp("contract") / "crawl"
    shutil.copytree(finished.out, out)
    with controlled(out) as api:
        yield api


@pytest.fixture(scope="module")
def description(served: InProcess) -> Any:
    return description_of(served)


@each_operation
@each_mode
def test_no_answer_departs_from_the_description(description: Any, method: str, path: str, mode: GenerationMode) -> None:
    """C1: no server error; no status, type or shape that is not described; what does not fit is refused."""
    hold_to_description(description, method, path, mode, EXAMPLES)

"""The API held against its own description, by requests that nobody has thought of (schemathesis)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from control import InProcess, controlled
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode, checks
from simulation import Simulated

from nephila.control.app import ENDPOINTS
from nephila.control.description import describe

OPERATIONS = [
    (method, path) for path, methods in describe(ENDPOINTS, tokens=False)["paths"].items() for method in methods
]
NOT_ASKED = [
    checks.positive_data_acceptance,  # "a" fits the type of a domain, and is none: that is told with a 422
]
EXAMPLES = 8


@pytest.fixture(scope="module")
def served(finished: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    out = tmp_path_factory.mktemp("contract") / "crawl"
    shutil.copytree(finished.out, out)
    with controlled(out) as api:
        yield api


@pytest.fixture(scope="module")
def description(served: InProcess) -> Any:
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", served.bridge)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "unfitting"])
def test_no_answer_departs_from_the_description(description: Any, method: str, path: str, mode: GenerationMode) -> None:
    """C1: no server error; no status, type or shape that is not described; what does not fit is refused."""
    operation = description[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        mode = GenerationMode.POSITIVE  # there is nothing about it that a type could find wrong

    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def hold(case: Any) -> None:
        case.validate_response(case.call(), excluded_checks=NOT_ASKED)

    hold()

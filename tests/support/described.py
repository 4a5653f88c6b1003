"""The control API held against its own description, by requests that nobody has thought of (schemathesis)."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from control import InProcess
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode, checks

from nephila.control.app import ENDPOINTS
from nephila.control.description import describe

OPERATIONS = [
    (method, path) for path, methods in describe(ENDPOINTS, tokens=False)["paths"].items() for method in methods
]
NOT_ASKED = [
    checks.positive_data_acceptance,  # "a" fits the type of a domain, and is none: that is told with a 422
]
each_operation = pytest.mark.parametrize(
    ("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS]
)
each_mode = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "unfitting"]
)


def description_of(served: InProcess) -> Any:
    """What an API says of itself."""
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", served.bridge)


def hold_to_description(description: Any, method: str, path: str, mode: GenerationMode, examples: int) -> None:
    """Ask so many things of one operation; every answer is as described, and what does not fit is refused."""
    operation = description[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        mode = GenerationMode.POSITIVE  # there is nothing about it that a type could find wrong

    @seed(7)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def hold(case: Any) -> None:
        case.validate_response(case.call(), excluded_checks=NOT_ASKED)

    hold()

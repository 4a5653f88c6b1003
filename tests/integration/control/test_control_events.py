"""What is said of events in docs/ is held against real ones."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from simulation import Simulated

from nephila.model.events import EventKind
from nephila.observe.line import EventLine

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA = json.loads((DOCS / "events.schema.json").read_text())


def lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted((out / "events").iterdir()) for line in path.read_text().splitlines()]


def test_real_events_fit_the_schema(finished: Simulated) -> None:
    """O1: every line of a whole crawl of a web with redirects, robots, duplicates and failures."""
    validator = jsonschema_rs.validator_for(SCHEMA)
    found = lines(finished.out)
    for line in found:
        assert validator.is_valid(line), (line, [error.message for error in validator.iter_errors(line)])
    kinds = {line["event"] for line in found}
    usual = {"crawl_start", "crawl_end", "fetch_ok", "error", "retry", "robots_fetched", "robots_disallow", "redirect"}
    assert usual | {"dead_letter", "heartbeat", "duplicate", "excluded_by_rule"} <= kinds


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"event": "nonsense"},
        {"event": "fetch_ok"},
        {"event": "heartbeat", "fetched": "many"},
        {"event": "warning", "reason": "x"},
        {"event": "warning", "reason": "x", "detail": "y", "ts": "today"},
    ],
)
def test_the_schema_refuses_what_is_no_event(wrong: dict[str, object]) -> None:
    """O1: it says something."""
    whole = {"ts": "2026-11-16T13:48:09.530Z", "t_ms_from_start": 1, **wrong}
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(whole)


def test_kinds_and_fields_are_all_documented() -> None:
    """O1: schema, page and source name the same."""
    page = (DOCS / "events.md").read_text()
    kinds = {str(kind) for kind in EventKind}
    assert set(SCHEMA["properties"]["event"]["enum"]) == kinds
    assert {one["if"]["properties"]["event"]["const"] for one in SCHEMA["allOf"]} == kinds
    assert set(SCHEMA["properties"]) == set(EventLine.__struct_fields__)
    assert all(f"`{name}`" in page for name in (*kinds, *EventLine.__struct_fields__))

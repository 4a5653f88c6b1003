"""docs/exports.md has the fields that exports have."""

from __future__ import annotations

from pathlib import Path

from nephila.export.columns import COLUMNS, EDGE_COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")


def test_every_field_is_documented_in_its_order() -> None:
    """W6, W4: name, type and meaning, word for word, and no other."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4]
    pages = [f"| `{column.name}` | {column.kind} | {column.meaning} |" for column in COLUMNS]
    edges = [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in EDGE_COLUMNS]
    assert rows == [*pages, *edges]

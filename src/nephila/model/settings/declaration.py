"""How a setting is declared: a field that says all that is to be said of it."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def setting(
    default: Any,  # noqa: ANN401 - the field's annotation is the type
    help_text: str,
    *,
    flag: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """A field that knows its help text, its range and its flag (without the leading dashes)."""
    metadata = {"help": help_text, "flag": flag, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)

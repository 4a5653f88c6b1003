"""Settings as TOML text, which read back gives the same settings, exactly.

Written by hand because the standard library only reads TOML; the values are five plain types, so it is a page. Floats
are written as `repr` does (shortest text that reads back the same), strings as basic strings with every control
character escaped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from nephila.model.settings import Settings

from .declared import Declared, Value, declarations, groups, value_of


def dump_toml(settings: Settings, *, full: bool = False) -> str:
    """Only what differs from the defaults; with `full` everything, each with its meaning as a comment."""

    def wanted(one: Declared) -> bool:
        return full or value_of(settings, one) != one.default

    def note(one: Declared) -> str:
        return one.help if full else ""

    return render(settings, wanted=wanted, above=note, beside=lambda _one: "")


def render(
    settings: Settings,
    *,
    wanted: Callable[[Declared], bool],
    above: Callable[[Declared], str],
    beside: Callable[[Declared], str],
) -> str:
    """The settings that are wanted, with comments above or beside each where those functions give a text."""
    chosen = [one for one in declarations().values() if wanted(one)]
    lines: list[str] = []
    for group in ("", *groups()):
        members = [one for one in chosen if one.group == group]
        if not members:
            continue
        if group:
            lines += ["", f"[{group}]"] if lines else [f"[{group}]"]
        for one in members:
            lines += [f"# {comment}" for comment in above(one).splitlines()]
            comment = beside(one)
            lines.append(f"{one.name} = {toml_value(value_of(settings, one))}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines) + "\n" if lines else ""


def toml_value(value: Value) -> str:
    """One value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are a subset of TOML's; only DEL needs one there and gets none from JSON.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return "[" + ", ".join(toml_value(item) for item in value) + "]"

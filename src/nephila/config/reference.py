"""The settings reference as Markdown, written from the declarations: `docs/settings.md` is this and nothing else."""

from __future__ import annotations

from .declared import Declared, declarations, groups
from .toml import toml_value
from .values import expected, plain

INTRODUCTION = """\
# Settings

This page is made from the declarations in the source by `nephila config reference`; change those, not this.

Every setting can be given in four ways. In rising order of precedence, above its default and above what the crawl
directory remembers from an earlier run:

1. a TOML file, `nephila crawl --config crawl.toml`: `[fetch]` and below it `timeout_s = 20`;
2. the environment: `NEPHILA_FETCH_TIMEOUT_S=20`;
3. `--set fetch.timeout_s=20`;
4. its flag, where it has one: `--timeout 20`.

Durations are seconds or have a unit: `"90s"`, `"5m"`, `"2h"`, `"1d"`. Sizes are bytes or have one: `"10MB"`,
`"512KiB"`, `"1GB"`. Lists are TOML arrays; in the environment and in `--set` items are separated by commas, or the
whole is a TOML array where an item holds a comma; a flag is repeated instead. A list replaces the one below it.

`nephila config show` prints what is in force and where each value came from.
"""


def reference() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for group, sentence in groups().items():
        parts.append(f"## {group}\n\n{sentence}\n")
        parts.append(_table([one for one in declarations().values() if one.group == group]))
    parts.append("## Of no group\n\nThese stand at the top of the file, before the first table.\n")
    parts.append(_table([one for one in declarations().values() if not one.group]))
    return "\n".join(parts)


def _table(members: list[Declared]) -> str:
    lines = ["| key | default | what it is | allowed | flag |", "|---|---|---|---|---|"]
    lines += [
        f"| `{one.key}` | `{toml_value(one.default)}` | {_cell(one.help)} | {_cell(_allowed(one))} | {_flag(one)} |"
        for one in members
    ]
    return "\n".join(lines) + "\n"


def _allowed(one: Declared) -> str:
    text = expected(one)
    if one.low is not None:
        text += f", at least {plain(one.low)}"
    if one.high is not None:
        text += f", at most {plain(one.high)}"
    return text + (", or inf" if one.endless else "")


def _flag(one: Declared) -> str:
    if not one.flag:
        return ""
    return f"`--[no-]{one.flag}`" if one.type is bool else f"`--{one.flag}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")

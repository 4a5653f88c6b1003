"""The flags of `crawl`, made from the settings that have one, and help that shows them in sections.

A flag that was not given must not count as given: every default is None (or no items), and the real default stands in
the help text. What a flag gives is read by `config`, so that `--timeout 5m`, `timeout_s = "5m"` and
``NEPHILA_FETCH_TIMEOUT_S=5m`` mean the same and fail with the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import click

from nephila.config import Declared, Given, Unit, declarations, given_by_flag

from .figures import size

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "concurrency": ("workers",),
        "include": ("include-pattern",),
        "exclude": ("exclude-pattern",),
        "cooldown": ("cooldown-sec",),
        "target-domains": ("target-unique-domains",),
        "pdf-links": ("parse-pdf-links",),
    }
)
"""Second names of flags (C4)."""

_METAVARS: Mapping[Unit, str] = MappingProxyType(
    {Unit.SECONDS: "SECONDS", Unit.MILLISECONDS: "MS", Unit.BYTES: "BYTES", Unit.PLAIN: "N"}
)
_TEXT_METAVARS: Mapping[str, str] = MappingProxyType(
    {
        "include": "REGEX",
        "exclude": "REGEX",
        "allow-address": "CIDR",
        "resolver": "HOST:PORT",
        "scope-domain": "DOMAIN",
        "type": "TYPE",
        "proxy": "URL",
        "ca-file": "FILE",
        "plugin": "NAME",
        "plugin-option": "NAME.OPTION=VALUE",
        "archive": "URL",
        "s3-endpoint": "URL",
        "s3-region": "NAME",
        "catalogue": "URL",
        "stream": "URL",
    }
)


class Section(StrEnum):
    """Headings of the help, in the order in which they stand."""

    START = "Where to start"
    TARGET = "Where to store"
    SCOPE = "What to follow"
    LIMITS = "When to end"
    POLITENESS = "How gently"
    FETCH = "How to fetch"
    QUEUE = "How to queue and write"
    COMMAND = "This command"


SECTIONS: Mapping[str, Section] = MappingProxyType(
    {
        "scope": Section.SCOPE,
        "limits": Section.LIMITS,
        "politeness": Section.POLITENESS,
        "robots": Section.POLITENESS,
        "fetch": Section.FETCH,
        "dns": Section.FETCH,
        "sitemaps": Section.SCOPE,
        "pdf": Section.SCOPE,
        "office": Section.SCOPE,
        "render": Section.FETCH,
        "archive": Section.TARGET,
        "s3": Section.TARGET,
    }
)
"""Under which heading the flags of a group of settings stand; those of all others under QUEUE."""


class SectionOption(click.Option):
    """An option that knows under which heading of the help it stands."""

    def __init__(self, names: list[str], section: Section, **given: Any) -> None:  # noqa: ANN401 - click's own options
        super().__init__(names, **given)
        self.section = section


class SectionCommand(click.Command):
    """A command whose help shows its options section by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        sections: dict[Section, list[tuple[str, str]]] = {heading: [] for heading in Section}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                sections[option.section if isinstance(option, SectionOption) else Section.COMMAND].append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def setting_options() -> list[click.Parameter]:
    """An option for every setting that has a flag."""
    return [_option(one) for one in declarations().values() if one.flag]


def given_flags(params: Mapping[str, Any]) -> Iterator[Given]:
    """What the parsed parameters of a command set."""
    for one in declarations().values():
        raw = params.get(_parameter(one)) if one.flag else None
        if raw not in (None, ()):
            yield given_by_flag(one, f"--{one.flag}", raw)


def _parameter(one: Declared) -> str:
    """The name under which click hands the value over: no flag of another kind can collide with it."""
    return "setting_" + one.key.replace(".", "__")


def _option(one: Declared) -> SectionOption:
    spellings = [one.flag, *ALIASES.get(one.flag, ())]
    given: dict[str, Any] = {"default": None, "help": f"{one.help}  [{_default(one)}]"}
    if one.type is bool:
        names = [f"--{name}/--no-{name}" for name in spellings]
    else:
        names = [f"--{name}" for name in spellings]
        given |= {"multiple": one.many, "type": click.Choice(one.choices) if one.choices else str}
        if not one.choices:
            given["metavar"] = _metavar(one)
    if one.many:
        given |= {"default": ()}
        given["help"] += "  (repeatable)"
    return SectionOption([*names, _parameter(one)], SECTIONS.get(one.group, Section.QUEUE), **given)


def _metavar(one: Declared) -> str:
    if one.automatic:
        return "N|auto"
    return _TEXT_METAVARS.get(one.flag, "TEXT") if one.type is str else _METAVARS[one.unit]


def _default(one: Declared) -> str:
    """The default in few words."""
    match one.default:
        case bool():
            return "on" if one.default else "off"
        case int() | float() if one.default == 0 and one.group == "limits":
            return "no limit"
        case int() if one.unit is Unit.BYTES:
            return size(one.default)
        case int() | float():
            return f"{one.default:,g}" if isinstance(one.default, float) else f"{one.default:,}"
        case tuple():
            return ", ".join(str(item) for item in one.default) or "none"
        case str():
            return one.default or "none"

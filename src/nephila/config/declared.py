"""What settings there are, read from the declarations in `model.settings`.

Nothing is listed a second time: keys, environment variables, flags, types and ranges all follow from the fields of
`Settings`, so that a new field is at once settable everywhere and documented.

A setting's *unit* follows from its name, as everywhere in the project: `_s` seconds, `_ms` milliseconds, `_bytes`
bytes. Its *key* is ``group.name`` (or the bare name for the few that belong to no group), and its environment variable
``NEPHILA_GROUP_NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias, cast, get_args, get_origin, get_type_hints

from nephila.model.settings import Settings

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | tuple[float, ...]
"""What a setting can hold."""

_IDS = re.compile(r" \([A-Z]\d+(?:(?:-|, )[A-Z]\d+)*\)")
"""Requirements that a declaration names for those who work on it; they say nothing to those who set it."""
MAY_BE_ENDLESS = frozenset({"limits.max_wait_s"})
"""Settings whose value may be infinite: a crawl that never ends by itself is asked for with `--forever`."""

MAY_BE_AUTOMATIC = frozenset({"processes"})
"""Settings for which the word auto may be written: it stands for 0, and the machine decides."""


class Unit(Enum):
    """What the number of a setting counts. Decides which suffixes its value may have."""

    PLAIN = ""
    SECONDS = "s"
    MILLISECONDS = "ms"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting: all that its field says."""

    group: str
    """Empty for a setting of the whole crawl."""
    name: str
    type: type
    """bool, int, float or str: of the items where `many`."""
    many: bool
    default: Value
    help: str
    flag: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]

    @property
    def key(self) -> str:
        """How the setting is called in `--set` and in messages."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "NEPHILA_" + self.key.replace(".", "_").upper()

    @property
    def unit(self) -> Unit:
        """What its number counts."""
        if self.type in (bool, str):
            return Unit.PLAIN
        counted = self.name.partition("_per_")[0]  # pages_per_s are pages, and no seconds
        if counted.endswith("_ms"):
            return Unit.MILLISECONDS
        if counted.endswith("_s"):
            return Unit.SECONDS
        return Unit.BYTES if counted.endswith("_bytes") else Unit.PLAIN

    @property
    def endless(self) -> bool:
        """Whether it may be infinite."""
        return self.key in MAY_BE_ENDLESS

    @property
    def automatic(self) -> bool:
        """Whether the word auto may stand for its 0."""
        return self.key in MAY_BE_AUTOMATIC


@cache
def declarations() -> Mapping[str, Declared]:
    """Every setting by its key; those of no group first, then group by group in the order of `Settings`."""
    hints = get_type_hints(Settings)
    found: list[Declared] = []
    for member in fields(Settings):
        kind = hints[member.name]
        if is_dataclass(kind):
            inner = get_type_hints(kind)
            found += [_declared(member.name, part, inner[part.name]) for part in fields(kind)]
        else:
            found.append(_declared("", member, kind))
    found.sort(key=lambda one: bool(one.group))  # stable: TOML wants bare keys before the first table
    return MappingProxyType({one.key: one for one in found})


def groups() -> Mapping[str, str]:
    """The groups in order, each with the sentence that describes it."""
    hints = get_type_hints(Settings)
    members = {member.name: hints[member.name] for member in fields(Settings)}
    return {name: _IDS.sub("", kind.__doc__ or "").strip() for name, kind in members.items() if is_dataclass(kind)}


def value_of(settings: Settings, one: Declared) -> Value:
    """What `settings` holds for a declaration."""
    holder: object = getattr(settings, one.group) if one.group else settings
    value: Value = getattr(holder, one.name)
    return value


def _declared(group: str, member: Field[Any], kind: Any) -> Declared:  # noqa: ANN401 - an annotation, evaluated
    many = get_origin(kind) is tuple
    meta = member.metadata
    return Declared(
        group=group,
        name=member.name,
        type=get_args(kind)[0] if many else kind,
        many=many,
        default=cast("Value", member.default),  # every field has one
        help=_IDS.sub("", meta["help"]),
        flag=meta["flag"],
        low=meta["low"],
        high=meta["high"],
        choices=meta["choices"],
    )

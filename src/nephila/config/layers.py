"""Where values come from: TOML text, the environment, `--set`, flags. Each way in yields `Given`s.

A `Given` is a value that already fits its setting, with its source in words. Whatever does not fit is a `UsageError`
that names the place (line and key, variable, flag), says what was expected, and suggests the nearest name where a
name is unknown.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nephila.model.errors import UsageError

from .declared import Declared, Value, declarations, groups
from .lines import key_lines
from .values import BadValueError, expected, from_items, from_text, from_toml

Raw = TypeVar("Raw")

NOT_SETTINGS = frozenset(
    {"NEPHILA_COMMAND", "NEPHILA_DEBUG", "NEPHILA_MATERIAL", "NEPHILA_PYTHON", "NEPHILA_STREAM_PASSWORD"}
)
"""Variables of ours that are switches of the program, or secrets, and not settings of a crawl."""
OPTIONS = "options"
"""The setting that the tables of plugins become."""
NEAR = 0.6
"""difflib's own default: how alike a name must be to be suggested."""
NEARLY_SAME = 0.85
"""How alike an unknown NEPHILA_ variable must be to a setting's to be a slip of the pen and not somebody else's."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value for a setting, and who gave it."""

    key: str
    value: Value
    source: str


def given_in_toml(text: str, place: str) -> list[Given]:
    """What a TOML document sets. `place` names it in messages, e.g. ``file crawl.toml``."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError; or an integer of thousands of digits
        raise UsageError(f"{place} is not valid TOML: {error}.", "Mend that line.") from error
    lines = key_lines(text)
    known = declarations()
    given = []
    if tables := _plugin_tables(document):
        options = document["plugins"].setdefault(OPTIONS, [])
        if not isinstance(options, list):
            raise UsageError(f"{place}: plugins.{OPTIONS} is a list.", 'Write it as ["NAME.OPTION=VALUE"].')
        options += tables
    for path, value in _leaves(document):
        source = f"{place} line {_line(lines, path)}"
        key = ".".join(path)
        if key not in known:
            raise _unknown(key, source)
        given.append(_fit(known[key], source, key, from_toml, value))
    return given


def given_in_environment(environ: Mapping[str, str]) -> list[Given]:
    """What NEPHILA_ variables set. One that is almost a setting's is refused; other programs' are left alone."""
    variables = {one.variable: one for one in declarations().values()}
    prefixes = tuple(f"NEPHILA_{group.upper()}_" for group in groups())
    given = []
    for name in sorted(environ):
        if not name.startswith("NEPHILA_") or name in NOT_SETTINGS:
            continue
        source = f"environment {name}"
        if name in variables:
            given.append(_fit(variables[name], source, name, from_text, environ[name]))
        elif name.startswith(prefixes) or difflib.get_close_matches(name, variables, 1, NEARLY_SAME):
            raise UsageError(f"The environment variable {name} names no setting.", _did_you_mean(name, variables))
    return given


def given_by_assignments(assignments: Iterable[str]) -> list[Given]:
    """What `--set group.name=value` sets."""
    given = []
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        key = key.strip()
        if not sign:
            raise UsageError(f"--set {assignment}: expected group.name=value.", "For example --set fetch.timeout_s=20")
        if key not in declarations():
            raise _unknown(key, "--set")
        given.append(_fit(declarations()[key], "--set", f"--set {key}", from_text, text))
    return given


def given_by_flag(one: Declared, flag: str, raw: object) -> Given:
    """What a flag of `crawl` sets: a bool, a string, or the strings of a flag that was repeated."""
    match raw:
        case bool():
            return Given(one.key, raw, flag)
        case str():
            return _fit(one, flag, flag, from_text, raw)
        case list() | tuple():
            return _fit(one, flag, flag, from_items, [str(item) for item in raw])
        case _:
            raise TypeError(f"{flag}: a flag gives a bool, a string or strings, not {type(raw).__name__}")


def _fit(one: Declared, source: str, name: str, read: Callable[[Declared, Raw], Value], raw: Raw) -> Given:
    try:
        return Given(one.key, read(one, raw), source)
    except BadValueError as error:
        where = f" ({source})" if source not in name and name not in source else ""
        raise UsageError(f"{name} {error}{where}.", f"It is: {one.help}; expected {expected(one)}.") from error


def _plugin_tables(document: dict[str, Any]) -> list[str]:
    """The tables ``[plugins.NAME]``, taken out of a document: each of their keys as an option of that plugin (E1)."""
    plugins = document.get("plugins")
    if not isinstance(plugins, dict):
        return []
    tables = {name: plugins.pop(name) for name, table in list(plugins.items()) if isinstance(table, dict)}
    return [
        f"{name}.{option}={json.dumps(value, default=str)}"
        for name, table in tables.items()
        for option, value in table.items()
    ]


def _leaves(document: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Paths and values, one level of tables deep; what is deeper keeps its whole path so that it is named in full."""
    for name, value in document.items():
        if isinstance(value, dict):
            for path, leaf in _leaves(value):
                yield (name, *path), leaf
            if not value and name not in groups():
                yield (name,), value
        else:
            yield (name,), value


def _line(lines: Mapping[tuple[str, ...], int], path: tuple[str, ...]) -> int:
    """The line of a key; of the statement around it when it stands in an inline table."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _unknown(key: str, source: str) -> UsageError:
    hint = _did_you_mean(key, declarations())
    return UsageError(f"There is no setting {key!r} ({source}).", hint)


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    """The nearest name; one that only lacks or mistakes its group is found by its last part."""
    pool: Sequence[str] = list(names)
    last = name.rsplit(".", 1)[-1]
    same = [one for one in pool if one.rsplit(".", 1)[-1] == last]
    near = same or difflib.get_close_matches(name, pool, 1, NEAR)
    if not near:
        return "`nephila config show` lists every setting."
    return "Did you mean " + " or ".join(near[:3]) + "?"

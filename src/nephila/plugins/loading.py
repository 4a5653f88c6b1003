"""Plugins by name: entry points of the group ``nephila.plugins``, made with the options that the settings give them.

An entry point is a class or a function that returns the plugin; its options are its keyword arguments. Options are
written as ``NAME.OPTION=VALUE``: a value that reads as JSON (a number, true, a list, a quoted text) is that, any other
is a text. Importing and making happen here, in the crawl's own process, before the crawl begins: what fails is told as
a mistake of the command, with the plugin's name.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nephila.model.errors import UsageError

from .child import complaint

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "nephila.plugins"


def load_plugins(names: Sequence[str], options: Sequence[str]) -> list[tuple[str, object]]:
    """The plugins of these names, in order, each once. Raises `UsageError`."""
    given = read_options(options)
    wanted = list(dict.fromkeys(names))
    if strangers := sorted(given.keys() - set(wanted)):
        raise UsageError(
            f"there are options for the plugin {strangers[0]}, which is not switched on",
            hint=f"add --plugin {strangers[0]}",
        )
    if not wanted:
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - start-up: a crawl without plugins needs none of it

    known = {point.name: point for point in entry_points(group=GROUP)}
    return [(name, _made(name, known, given.get(name, {}))) for name in wanted]


def read_options(options: Sequence[str]) -> dict[str, dict[str, object]]:
    """Options by plugin and name."""
    given: dict[str, dict[str, object]] = {}
    for option in options:
        left, sign, text = option.partition("=")
        name, dot, key = left.strip().rpartition(".")
        if not sign or not dot or not name or not key.isidentifier():
            raise UsageError(
                f"{option!r} is no option of a plugin", hint="write NAME.OPTION=VALUE, as in articles.pattern=/news/"
            )
        given.setdefault(name, {})[key] = _value(text)
    return given


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def _made(name: str, known: Mapping[str, EntryPoint], options: Mapping[str, object]) -> object:
    point = known.get(name)
    if point is None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else _installed(known)
        raise UsageError(f"there is no plugin {name}", hint=hint)
    try:
        factory = point.load()
    except (Exception, SystemExit) as error:  # a module may end the program: it is not the one that does
        raise UsageError(
            f"the plugin {name} cannot be loaded: {complaint(error)}", hint=f"mend or reinstall {point.value}"
        ) from error
    try:
        return factory(**options)
    except (Exception, SystemExit) as error:
        told = ", ".join(options) or "none"
        raise UsageError(
            f"the plugin {name} cannot be made: {complaint(error)}", hint=f"its options are at present: {told}"
        ) from error


def _installed(known: Mapping[str, EntryPoint]) -> str:
    if not known:
        return f"no installed package has an entry point in the group {GROUP}"
    return f"installed are {', '.join(sorted(known))}"

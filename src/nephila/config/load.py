"""Putting the layers together: the later one wins, and every value remembers where it came from.

In rising order: defaults, the crawl directory's stored configuration (when going on), a TOML file, the environment,
`--set`, flags. A list is replaced as a whole, never merged: what is in force must be readable in one place.

Last of all the settings are checked against each other, because some pairs cannot work: with a lease no longer than
a fetch, no request could ever be sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from nephila.model.errors import UsageError
from nephila.model.settings import Settings

from .declared import declarations
from .layers import Given, given_by_assignments, given_in_environment, given_in_toml
from .stored import CONFIG_NAME

DEFAULT = "default"
_STORED = "crawl directory"
_MEDIA_TYPE = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


@dataclass(frozen=True, slots=True)
class Configured:
    """Settings in force, and the source of each in words, by key."""

    settings: Settings
    sources: Mapping[str, str]


def load(
    *,
    stored: str | None = None,
    file: Path | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
    assignments: Iterable[str] = (),
    flags: Sequence[Given] = (),
) -> Configured:
    """The settings in force. `stored` is the text of the crawl directory's configuration; raises `UsageError`."""
    kept = given_in_toml(stored or "", f"{CONFIG_NAME} of the crawl directory")
    below = [Given(given.key, given.value, _STORED) for given in kept]
    written = given_in_toml(_read(file), f"file {file}") if file is not None else []
    layers = (below, written, given_in_environment(environ), given_by_assignments(assignments), flags)
    inforce = _without_leftovers({given.key: given for given in chain.from_iterable(layers)})
    settings = _lower_types(_build(inforce))
    sources = {key: inforce[key].source if key in inforce else DEFAULT for key in declarations()}
    _check_together(settings, sources)
    _check_types(settings.fetch.types, sources["fetch.types"])
    return Configured(settings, MappingProxyType(sources))


def _without_leftovers(inforce: dict[str, Given]) -> dict[str, Given]:
    """Without what the directory remembers of a choice that is given up now: it would stand in the way of the new one.

    That is the key of file names under another layout, and the options of plugins that are switched off.
    """

    def is_new(key: str) -> bool:
        return key in inforce and inforce[key].source != _STORED

    if is_new("archive.layout") and not is_new("archive.key") and inforce["archive.layout"].value != "key":
        inforce.pop("archive.key", None)
    options = inforce.get("plugins.options")
    if options is not None and is_new("plugins.enabled") and not is_new("plugins.options"):
        enabled = _texts(inforce["plugins.enabled"])
        kept = tuple(one for one in _texts(options) if one.partition("=")[0].strip().rpartition(".")[0] in enabled)
        inforce["plugins.options"] = replace(options, value=kept)
    return inforce


def _texts(given: Given) -> tuple[str, ...]:
    return tuple(map(str, given.value)) if isinstance(given.value, tuple) else ()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"The configuration file {file} cannot be read: {error.strerror}.", "Check the name given with --config."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The configuration file {file} is not UTF-8 text.", "Settings are written in TOML."
        ) from error


def _build(inforce: Mapping[str, Given]) -> Settings:
    settings = Settings()
    bare = {given.key: given.value for given in inforce.values() if "." not in given.key}
    grouped = {}
    for member in fields(Settings):
        group = getattr(settings, member.name)
        if is_dataclass(group) and not isinstance(group, type):
            prefix = member.name + "."
            changes = {key.removeprefix(prefix): one.value for key, one in inforce.items() if key.startswith(prefix)}
            grouped[member.name] = replace(group, **changes)
    return replace(settings, **grouped, **bare)  # type: ignore[arg-type]  # values were fitted to their fields


def _check_together(settings: Settings, sources: Mapping[str, str]) -> None:
    for lesser, value, greater, bound, reason in (
        (
            "fetch.timeout_s",
            settings.fetch.timeout_s,
            "frontier.lease_s",
            settings.frontier.lease_s,
            "a request leaves only while its lease outlasts a whole fetch",
        ),
        (
            "dns.min_ttl_s",
            settings.dns.min_ttl_s,
            "dns.max_ttl_s",
            settings.dns.max_ttl_s + 1e-9,
            "an answer cannot be kept at least longer than at most",
        ),
    ):
        if value >= bound:
            raise UsageError(
                f"{lesser} ({value:g}, {sources[lesser]}) must be below {greater} ({bound:g}, {sources[greater]}): "
                f"{reason}.",
                f"Set the other one too, for example --set {greater}={value * 2:g}",
            )


def _lower_types(settings: Settings) -> Settings:
    """Media types are the same in any case, and compared in lower case."""
    lower = tuple(map(str.lower, settings.fetch.types))
    return replace(settings, fetch=replace(settings.fetch, types=lower))


def _check_types(types: Sequence[str], source: str) -> None:
    """A type that no answer can have would store nothing; what a crawl was begun with may still be looked at."""
    for one in types:
        if source != _STORED and not _MEDIA_TYPE.fullmatch(one):
            raise UsageError(
                f"{one!r} (fetch.types, {source}) is no media type.",
                "Write it like text/html, text/* or */*",
            )

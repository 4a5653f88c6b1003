"""`nephila status`: where a crawl stands, also while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import click

from .backend import backend_of
from .figures import clock, count, moment, size
from .looking import directory_argument, json_option, print_labelled
from .output import plain, print_json


@click.command("status", short_help="Show where a crawl stands.")
@directory_argument
@json_option
@click.pass_context
def status(ctx: click.Context, directory: Path, *, as_json: bool) -> None:
    """Show where the crawl in DIR stands: what is stored, what is queued, what waits and for what."""
    document = plain(backend_of(ctx).open_view(directory).status())
    if not isinstance(document, dict):
        raise TypeError("a status is a record")
    if as_json:
        print_json(document)
    else:
        print_labelled(status_rows(document))


def status_rows(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Label and text of every figure; records within the record under their own name, empty ones left out."""
    for name, value in document.items():
        label = f"{prefix}{name.removesuffix('_at').removesuffix('_s').removesuffix('_ms')}".replace("_", " ")
        if isinstance(value, Mapping):
            counts = {key: number for key, number in value.items() if isinstance(number, int)}
            if len(counts) == len(value):
                ordered = sorted(((key, number) for key, number in counts.items() if number), key=lambda item: -item[1])
                if ordered:
                    yield label, ", ".join(f"{key} {count(number)}" for key, number in ordered)
            else:
                yield from status_rows(value, f"{label} ")
        elif value not in (None, "", []):
            yield label, figure(name, value)


def figure(name: str, value: object) -> str:
    """A value as its name asks for: the project's names carry their units."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    suffix = name.rpartition("_")[2]
    if suffix in _FIGURES:
        return _FIGURES[suffix](int(value))
    return count(value) if isinstance(value, int) else f"{value:,.2f}"


_FIGURES: Mapping[str, Callable[[int], str]] = MappingProxyType(
    {"s": clock, "ms": "{:,} ms".format, "at": moment, "bytes": size}
)
"""How a number is written, by the last part of its name."""

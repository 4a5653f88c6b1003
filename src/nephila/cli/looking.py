"""What the commands that only look at a crawl have in common: their arguments, and a list of labels with texts."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from nephila.config import Configured, Given, load
from nephila.model.errors import UsageError

from .backend import backend_of
from .needs import Insight, Operator
from .output import printable

_GIVEN = "nephila.place"


class _Place(click.Path):
    """A directory, or what stands in its place with --config: then its spelling counts, and a path would change it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        if ctx is not None:
            ctx.meta[_GIVEN] = str(value)
        return super().convert(value, param, ctx)


directory_argument = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
place_argument = click.argument(
    "directory", metavar="[DIR]", required=False, type=_Place(file_okay=False, path_type=Path)
)
fleet_option = click.option(
    "--config",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings of a fleet, in place of DIR.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

group_option = click.option("--group", default="", metavar="NAME", help="For a fleet: the region.")

LEAST_TEXT = 30


def view_of(ctx: click.Context, directory: Path | None, file: Path | None, group: str = "") -> Insight:
    """The crawl in a directory, or that of a fleet or of one of its regions."""
    crawl, backend = crawl_of(ctx, directory, file, group), backend_of(ctx)
    return backend.open_view(crawl) if isinstance(crawl, Path) else backend.open_fleet_view(crawl)


def crawl_of(
    ctx: click.Context, directory: Path | None, file: Path | None, group: str = "", more: Sequence[Given] = ()
) -> Path | Configured:
    """The crawl that is meant: its directory, or the settings of a fleet, with what flags say of them."""
    if (directory is None) == (file is None):
        raise UsageError("Name one crawl: DIR, or --config FILE of a fleet.")
    if directory is not None:
        if group:
            raise UsageError("--group names a region of a fleet.", "Leave it out, or name the fleet: --config FILE.")
        return directory
    flags = [Given("fleet.group", group, "--group")] if group else []
    return load(file=file, environ=backend_of(ctx).environ, flags=[*flags, *more])


def crawl_name(crawl: Path | Configured) -> str:
    """What it is called towards people."""
    return str(crawl) if isinstance(crawl, Path) else f"the crawl {crawl.settings.fleet.crawl}"


def operator_of(ctx: click.Context, directory: Path | None, file: Path | None, group: str = "") -> Operator:
    """Who may change the crawl in a directory, or that of a fleet."""
    crawl, backend = crawl_of(ctx, directory, file, group), backend_of(ctx)
    return backend.open_operator(crawl) if isinstance(crawl, Path) else backend.open_fleet_operator(crawl)


def without_directory(directory: Path | None, name: str, file: Path | None) -> tuple[Path | None, str]:
    """The directory and the name that were meant: with --config there is no directory, and the name comes first."""
    if file is None or directory is None:
        return directory, name
    if name:
        raise UsageError("Name one crawl: DIR, or --config FILE of a fleet.")
    return None, str(click.get_current_context().meta[_GIVEN])


def host_named(text: str) -> str:
    """The host that somebody names, as it is spelled or by a URL, in the spelling that a crawl knows it by.

    Empty where none is named; `UsageError` for what can be no host.
    """
    from nephila.urls import host_of, resolve  # noqa: PLC0415 - start-up

    if not text:
        return ""
    bare = f"[{text}]" if text.count(":") > 1 and "[" not in text else text
    url = resolve(None, text if "://" in text else f"http://{bare}/")
    host = host_of(url) if url is not None else ""
    if not host:
        raise UsageError(f"{text!r} is no host.", "Write it like example.org.")
    return host


def print_labelled(rows: Iterable[tuple[str, str]], width: int | None = None) -> None:
    """Print labels and texts in two columns, long texts wrapped; addresses stay whole, to be copied."""
    for line in labelled(rows, width or shutil.get_terminal_size().columns):
        click.echo(line)


def labelled(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """The lines of such a list."""
    known = [(printable(label), printable(text)) for label, text in rows]
    indent = max((len(label) for label, _ in known), default=0) + 2
    room = max(LEAST_TEXT, width - indent)
    for label, text in known:
        first, *further = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
        yield f"{label:<{indent}}{first}".rstrip()
        yield from (" " * indent + line for line in further)

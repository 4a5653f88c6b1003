"""What the commands that only look at a crawl have in common: their arguments, and a list of labels with texts."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from .output import printable

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")

LEAST_TEXT = 30


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

"""`nephila frontier`: takes what a crawl knows out of its engine as a file, and puts it into another (N2, N8)."""

from __future__ import annotations

from pathlib import Path

import click

from .looking import json_option
from .output import print_json, printable


@click.group("frontier", short_help="Move what a crawl knows to another engine, or rebuild it.")
def frontier() -> None:
    """Move what a crawl knows to another engine, or rebuild it."""


@frontier.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--to",
    "file",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write it: a new file.",
)
@json_option
def export(*, directory: Path, file: Path, as_json: bool) -> None:
    """Write all that the frontier of the crawl in DIR knows to FILE: JSON lines under gzip (docs/moving.md).

    No crawl may be running there. FILE is there when it is whole, and says at its end what it holds.
    """
    from nephila.node.clock import SystemClock  # noqa: PLC0415 - start-up
    from nephila.node.moving import export_directory  # noqa: PLC0415 - start-up

    moved = export_directory(directory, file, SystemClock())
    if as_json:
        print_json({"file": str(file), "rows": moved.rows, "left_out": moved.unnamed})
        return
    click.echo(printable(f"{moved.sentence} are in {file}."))
    if moved.unnamed:
        click.echo(f"Left out: {moved.unnamed:,} notes on refused URLs that were taken down.")


@frontier.command("import")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--into",
    "directory",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="A crawl directory without a frontier, or a new one.",
)
@json_option
def import_(*, file: Path, directory: Path, as_json: bool) -> None:
    """Put what FILE holds into the crawl in DIR, which must not know any URL yet.

    All of it or nothing: until the last row is there the frontier cannot be opened, and an import that was interrupted
    begins anew. Afterwards every host rests one full delay.
    """
    from nephila.node.clock import SystemClock  # noqa: PLC0415 - start-up
    from nephila.node.moving import import_directory  # noqa: PLC0415 - start-up

    moved = import_directory(file, directory, SystemClock())
    if as_json:
        print_json({"directory": str(directory), "rows": moved.rows})
    else:
        click.echo(printable(f"{moved.sentence} are in {directory}."))

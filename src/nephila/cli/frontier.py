"""`nephila frontier`: takes what a crawl knows out of its engine as a file, and puts it into another (N2, N8)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import Given, load
from nephila.model.errors import UsageError

from .backend import backend_of
from .fleet import group_option
from .looking import json_option
from .output import print_json, printable

if TYPE_CHECKING:
    from nephila.model.settings import Settings

config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings of a fleet, in place of a directory.",
)


@click.group("frontier", short_help="Move a frontier to another engine, or rebuild it.")
def frontier() -> None:
    """Move a frontier to another engine, or rebuild it."""


@frontier.command("export", short_help="Write everything a frontier knows to a file.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@config_option
@click.option(
    "--to",
    "file",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write it: a new file.",
)
@group_option
@json_option
@click.pass_context
def export(
    ctx: click.Context, *, directory: Path | None, config: Path | None, file: Path, group: str | None, as_json: bool
) -> None:
    """Write everything a frontier knows to FILE, as JSON lines under gzip (docs/moving.md).

    The frontier is that of the crawl in DIR, or of the fleet that --config describes. No crawl and no worker may be
    running. FILE appears only when it is whole, and says at its end what it holds.
    """
    from nephila.node.clock import SystemClock  # noqa: PLC0415 - start-up

    if str(file) == "-":
        raise UsageError(
            "A frontier is written to a file, not to standard output.", "It is read to its end before it is imported."
        )
    fleet = _fleet(ctx, directory, config, "DIR", group)
    if fleet is not None:
        from nephila.node.fleet.moving import export_fleet  # noqa: PLC0415 - start-up

        moved = export_fleet(fleet, file, SystemClock())
    else:
        from nephila.node.moving import export_directory  # noqa: PLC0415 - start-up

        moved = export_directory(directory or Path(), file, SystemClock())
    if as_json:
        print_json({"file": str(file), "rows": moved.rows, "left_out": moved.unnamed})
        return
    click.echo(printable(f"{moved.sentence} are in {file}."))
    if moved.unnamed:
        click.echo(f"Left out: {moved.unnamed:,} notes on refused URLs that were taken down.")


@frontier.command("import", short_help="Load an exported frontier into a crawl or a fleet.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--into",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="A crawl directory without a frontier, or a new one.",
)
@config_option
@click.option(
    "--trust-settings",
    "trusted",
    is_flag=True,
    help="Take over settings that open addresses, switch off rules, or name servers or programs.",
)
@group_option
@json_option
@click.pass_context
def import_(
    ctx: click.Context,
    *,
    file: Path,
    directory: Path | None,
    config: Path | None,
    trusted: bool,
    group: str | None,
    as_json: bool,
) -> None:
    """Load FILE into a crawl that does not know any URL yet.

    That is the crawl in DIR, or the one that the settings of a fleet name; seeds that this one was given, and that
    nobody has asked for yet, give way. It is all or nothing: the frontier cannot be
    opened until the last row is there, and an interrupted import starts again from nothing. Afterwards every host rests
    one full delay.
    """
    from nephila.node.clock import SystemClock  # noqa: PLC0415 - start-up

    fleet = _fleet(ctx, directory, config, "--into DIR", group)
    if fleet is not None:
        from nephila.node.fleet.moving import import_fleet  # noqa: PLC0415 - start-up

        moved, place = import_fleet(file, fleet, SystemClock()), f"the crawl {fleet.fleet.crawl}"
    else:
        from nephila.node.moving import import_directory  # noqa: PLC0415 - start-up

        moved = import_directory(file, directory or Path(), SystemClock(), trusted=trusted)
        place = str(directory)
    if as_json:
        print_json({"into": place, "rows": moved.rows, "dropped": moved.dropped})
        return
    click.echo(printable(f"{moved.sentence} are in {place}."))
    if moved.dropped:
        gave_way = "URLs that it was given before, and had not asked for, are dropped: give them again."
        click.echo(f"{moved.dropped:,} {gave_way}")


def _fleet(
    ctx: click.Context, directory: Path | None, config: Path | None, name: str, group: str | None = None
) -> Settings | None:
    """The settings of a fleet, None where a directory was named; one of the two must be."""
    if (directory is None) == (config is None):
        raise UsageError(f"Either {name} or --config FILE is needed, and not both.", "Say which crawl is meant.")
    if directory is not None and group is not None:
        raise UsageError("--group means a region of a fleet, and a directory has none.", "Leave it out.")
    flags = [] if group is None else [Given("fleet.group", group, "--group")]
    return None if config is None else load(file=config, environ=backend_of(ctx).environ, flags=flags).settings


@frontier.command("rebuild", short_help="Rebuild a lost frontier from the archive.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With DIR: settings, where DIR has none. Alone: those of a fleet that has lost its engine.",
)
@click.option(
    "--work",
    "work",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("nephila-rebuild"),
    show_default=True,
    help="For a fleet: where to copy its archive meanwhile.",
)
@group_option
@json_option
@click.pass_context
def rebuild(
    ctx: click.Context, *, directory: Path | None, config: Path | None, work: Path, group: str | None, as_json: bool
) -> None:
    """Rebuild the lost frontier of the crawl in DIR, or of a fleet, from its archive.

    Nothing is fetched: every answer in the archive is settled once more. What was fetched is known again, what was
    found but not fetched is queued, and robots.txt files are in force. The catalogue is written anew and the old one
    kept beside it. The command says what no archive holds and is therefore lost.
    """
    from nephila.node.clock import SystemClock  # noqa: PLC0415 - start-up

    if directory is None:
        settings = _fleet(ctx, None, config, "DIR", group)
        from nephila.node.fleet.rebuilding import rebuild_fleet  # noqa: PLC0415 - start-up

        if settings is None or config is None:
            raise UsageError("Either DIR or --config FILE is needed.", "Say which crawl is meant.")
        rebuilt = rebuild_fleet(settings, config, work, SystemClock())
        directory = work
    else:
        from nephila.node.rebuilding import rebuild_directory  # noqa: PLC0415 - start-up

        if group is not None:
            raise UsageError("--group means a region of a fleet, and a directory has none.", "Leave it out.")
        rebuilt = rebuild_directory(directory, SystemClock(), config)
    if as_json:
        print_json({"directory": str(directory), **asdict(rebuilt)})
        return
    click.echo(
        f"{rebuilt.captures:,} answers in {rebuilt.segments:,} files were settled again: "
        f"{rebuilt.pages:,} pages are known, {rebuilt.queued:,} URLs of {rebuilt.hosts:,} hosts wait."
    )
    if rebuilt.unowned:
        click.echo(f"{rebuilt.unowned:,} answers belong to nobody and are left out.")
    click.echo("Lost: " + "; ".join(rebuilt.lost) + ".")

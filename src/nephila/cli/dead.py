"""`nephila dead`: URLs that were given up after all their retries (F9)."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from nephila.model.errors import UsageError

from .figures import moment
from .looking import fleet_option, group_option, json_option, place_argument, view_of
from .naming import command_name
from .output import print_json, printable


@click.command("dead", short_help="List URLs that were given up, or queue them again.")
@place_argument
@fleet_option
@group_option
@click.option("--retry", "urls", multiple=True, metavar="URL", help="Queue this one again.  (repeatable)")
@click.option("--retry-all", is_flag=True, help="Queue all of them again.")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(min=1), metavar="N", help="List at most N."
)
@json_option
@click.pass_context
def dead(
    ctx: click.Context,
    directory: Path | None,
    *,
    file: Path | None,
    group: str,
    urls: tuple[str, ...],
    retry_all: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List the dead letters of the crawl in DIR and why each failed, or queue them again with all their retries."""
    if urls and retry_all:
        raise UsageError("--retry and --retry-all exclude each other.", "Give one of them.")
    view = view_of(ctx, directory, file, group)
    if urls or retry_all:
        revived = view.revive(None if retry_all else urls)
        if as_json:
            print_json({"revived": revived})
        else:
            crawl = (
                f"crawl --out {shlex.quote(str(directory))}"
                if directory
                else f"worker --config {shlex.quote(str(file))}" + (f" --group {shlex.quote(group)}" if group else "")
            )
            click.echo(f"{revived:,} put back. To fetch: {command_name()} {crawl}")
        ctx.exit(0 if revived or retry_all else 1)
    letters = view.dead(limit)
    if as_json:
        print_json({"dead": letters, "count": len(letters), "limit": limit})
        return
    for letter in letters:
        told = letter.detail.removeprefix(f"{letter.reason}: ")  # the reason stands before it
        detail = f" ({told})" if told else ""
        click.echo(printable(f"{moment(letter.settled_at)}  {letter.reason:<12}  {letter.url}{detail}"))
    if not letters:
        click.echo("No dead letters.", err=True)
    elif len(letters) == limit:
        click.echo(f"The first {limit:,}; --limit shows more.", err=True)

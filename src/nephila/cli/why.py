"""`nephila why`: the story of one URL."""

from __future__ import annotations

from pathlib import Path

import click

from .looking import fleet_option, json_option, print_labelled, view_of
from .output import print_json

NEVER_MET = 1


@click.command("why", short_help="Tell what became of a URL, and which rule decided.")
@click.argument("places", nargs=-1, required=True, metavar="[DIR] URL")
@fleet_option
@json_option
@click.pass_context
def why(ctx: click.Context, places: tuple[str, ...], *, file: Path | None, as_json: bool) -> None:
    """Tell what became of URL in the crawl in DIR: where it was found, what was decided and by which rule.

    Ends with exit code 1 when the crawl has never met the URL.
    """
    *named, url = places
    if len(named) > 1 or bool(named) == bool(file):
        raise click.UsageError("Name one crawl and one URL: DIR URL, or --config FILE URL.")
    answer = view_of(ctx, Path(named[0]) if named else None, file).why(url)
    if as_json:
        print_json({"url": url, "found": answer.found, **answer.data})
    else:
        print_labelled(answer.lines)
    ctx.exit(0 if answer.found else NEVER_MET)

"""`nephila why`: the story of one URL."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from .looking import fleet_option, json_option, print_labelled, view_of
from .output import as_called, print_json

NEVER_MET = 1
TO_TYPE = "to try again"
"""The line of a story that is a command."""


@click.command("why", short_help="Explain what became of a URL, and which rule decided.")
@click.argument("places", nargs=-1, required=True, metavar="[DIR] URL")
@fleet_option
@json_option
@click.pass_context
def why(ctx: click.Context, places: tuple[str, ...], *, file: Path | None, as_json: bool) -> None:
    """Explain what became of URL in the crawl in DIR: where it was found, what was decided and by which rule.

    Ends with exit code 1 when the crawl has never met the URL.
    """
    *named, url = places
    if len(named) > 1 or bool(named) == bool(file):
        raise click.UsageError("Name one crawl and one URL: DIR URL, or --config FILE URL.")
    answer = view_of(ctx, Path(named[0]) if named else None, file).why(url)
    if as_json:
        print_json({"url": url, "found": answer.found, **answer.data})
    else:
        crawl = shlex.quote(named[0]) if named else f"--config {shlex.quote(str(file))}"
        print_labelled([(label, _typed(text, crawl) if label == TO_TYPE else text) for label, text in answer.lines])
    ctx.exit(0 if answer.found else NEVER_MET)


def _typed(text: str, crawl: str) -> str:
    """A command with the crawl that was asked about, as it can be copied."""
    return as_called(text).replace(" DIR ", f" {crawl} ", 1)

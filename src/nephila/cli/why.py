"""`nephila why`: the story of one URL."""

from __future__ import annotations

from pathlib import Path

import click

from .backend import backend_of
from .looking import directory_argument, json_option, print_labelled
from .output import print_json

NEVER_MET = 1


@click.command("why", short_help="Tell what became of a URL, and which rule decided.")
@directory_argument
@click.argument("url")
@json_option
@click.pass_context
def why(ctx: click.Context, directory: Path, url: str, *, as_json: bool) -> None:
    """Tell what became of URL in the crawl in DIR: where it was found, what was decided and by which rule.

    Ends with exit code 1 when the crawl has never met the URL.
    """
    answer = backend_of(ctx).open_view(directory).why(url)
    if as_json:
        print_json({"url": url, "found": answer.found, **answer.data})
    else:
        print_labelled(answer.lines)
    ctx.exit(0 if answer.found else NEVER_MET)

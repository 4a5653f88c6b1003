"""`nephila pages`: what was stored, one line a page."""

from __future__ import annotations

from pathlib import Path

import click

from .figures import moment, size
from .looking import fleet_option, group_option, host_named, json_option, place_argument, view_of
from .output import print_json, printable


@click.command("pages", short_help="List the pages that were stored.")
@place_argument
@fleet_option
@group_option
@click.option("--host", default="", metavar="HOST", help="Only this host.")
@click.option("--status", type=click.IntRange(100, 599), metavar="CODE", help="Only this HTTP status.")
@click.option("--like", default="", metavar="TEXT", help="Only URLs that contain this text; % stands for anything.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), metavar="N", help="At most N.")
@json_option
@click.pass_context
def pages(  # noqa: PLR0913 - the flags are named one by one
    ctx: click.Context,
    directory: Path | None,
    *,
    file: Path | None,
    group: str,
    host: str,
    status: int | None,
    like: str,
    limit: int,
    as_json: bool,
) -> None:
    """List the pages of the crawl in DIR, the newest capture first: status, size, time (UTC), URL and title."""
    rows = list(view_of(ctx, directory, file, group).pages(host_named(host), status, like, limit))
    if as_json:
        print_json({"pages": rows, "count": len(rows), "limit": limit})
        return
    for row in rows:
        title = f"  {row.title}" if row.title else ""
        click.echo(printable(f"{row.status}  {size(row.length):>8}  {moment(row.crawled_at)}  {row.url}{title}"))
    if len(rows) == limit:
        click.echo(f"The first {limit:,}; --limit shows more.", err=True)
    elif not rows:
        click.echo("No page fits.", err=True)

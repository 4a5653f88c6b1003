"""`nephila traps`: kinds of URLs that bring nothing new any more, with the evidence, and a way to let them go (T2)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.errors import UsageError

from .figures import count, moment
from .looking import (
    fleet_option,
    group_option,
    host_named,
    json_option,
    operator_of,
    place_argument,
    without_directory,
)
from .output import print_json, printable
from .rows import many, wrapped

if TYPE_CHECKING:
    from nephila.interfaces.frontier import Trap


@click.command("traps", short_help="List endless kinds of URLs that are held back, or release them.")
@place_argument
@click.argument("host", required=False, default="")
@fleet_option
@group_option
@click.option("--release", "pattern", metavar="PATTERN", help="Give this pattern of HOST a fresh start.")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(min=1), metavar="N", help="List at most N."
)
@json_option
@click.pass_context
def traps(
    ctx: click.Context,
    directory: Path | None,
    *,
    host: str,
    file: Path | None,
    group: str,
    pattern: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the patterns of URLs in the crawl in DIR that are slowed or quarantined, for one HOST or for all.

    A pattern is a URL's path without what varies in it ({n}, {date}, {hex}, ...), a part of a host, or * for all of it.
    A pattern whose pages bring nothing new is first slowed, then quarantined, and tried again from time to time.
    Nothing is lost: URLs held back are parked.

    `nephila traps DIR HOST --release PATTERN` gives one a fresh start, also while the crawl runs.
    """
    directory, host = without_directory(directory, host, file)
    host = host_named(host)
    operator = operator_of(ctx, directory, file, group)
    if pattern is not None:
        if not host:
            raise UsageError(
                "--release needs the host of the pattern.", "Write: nephila traps DIR HOST --release PATTERN"
            )
        waiting, back = operator.release_trap(host, pattern)
        if as_json:
            print_json({"released": pattern, "host": host, "parked": waiting, "back_at_once": back})
        else:
            click.echo(printable(f"{pattern} on {host} starts anew; {_coming_back(waiting, back)}."))
        return
    found, known = operator.traps(limit, host)
    if as_json:
        print_json({"traps": found, "count": len(found), "limit": limit, "in_all": known})
        return
    for line in trap_lines(found, shutil.get_terminal_size().columns):
        click.echo(line)
    if not found:
        click.echo(f"No traps{f' on {printable(host)}' if host else ''}.", err=True)
    elif len(found) == limit and not host:
        click.echo(f"The first {limit:,} of {known:,}; --limit shows more.", err=True)


def trap_lines(found: Sequence[Trap], width: int) -> Iterator[str]:
    """Each trap with its evidence: what, since when, what it brought, what is held back, when it is tried again."""
    for index, trap in enumerate(found):
        if index:
            yield ""
        yield printable(f"{trap.host}  {trap.pattern}")
        yield f"  {trap.state} since {moment(trap.since)}, tried again from {moment(trap.next_try_at)} (UTC)"
        yield from wrapped("  ", _brought(trap), width)
        more = " or more" if trap.parked_more else ""
        yield f"  {count(trap.parked)}{more} on its shelf"
        if trap.example:
            yield printable(f"  for example {trap.example}")


def _brought(trap: Trap) -> str:
    """What the fetches under a pattern came to."""
    wasted = {"known content": trap.duplicates, "a known text": trap.repeats, "an error": trap.errors}
    kinds = "".join(f", {count(number)} {kind}" for kind, number in wasted.items() if number)
    return f"{count(trap.fetched)} fetched: {count(trap.fresh)} brought something new{kinds}"


def _coming_back(waiting: int, back: int) -> str:
    if not waiting:
        return "nothing of it was parked"
    rest = waiting - back
    return f"{many(back, 'URL')} back in the queue" + (f", {count(rest)} more with the next claims" if rest > 0 else "")

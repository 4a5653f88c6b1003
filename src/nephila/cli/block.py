"""`nephila block`: what is not to be asked for any more, by a person's word and with a reason (T7)."""

from __future__ import annotations

from pathlib import Path

import click

from nephila.model.errors import UsageError

from .figures import moment
from .looking import fleet_option, json_option, operator_of, place_argument, without_directory
from .naming import command_name
from .needs import Operator
from .output import print_json, printable

NONE_SUCH = 1


@click.command("block", short_help="List, add or remove blocks on domains, hosts and URLs.")
@place_argument
@click.argument("pattern", required=False, default="")
@fleet_option
@click.option("--reason", metavar="TEXT", help="Why it is blocked; `why` shows it.")
@click.option("--remove", is_flag=True, help="Remove the block.")
@json_option
@click.pass_context
def block(
    ctx: click.Context,
    directory: Path | None,
    *,
    pattern: str,
    file: Path | None,
    reason: str | None,
    remove: bool,
    as_json: bool,
) -> None:
    """List the blocks of the crawl in DIR, or block PATTERN.

    PATTERN is a domain or host with all below it, or how URLs begin, such as https://example.org/part; with a $ at the
    end it is exactly that URL.

    A running crawl obeys from its next claim on. What was queued is not fetched; what was stored stays. Removing a
    block that does not exist ends with exit code 1.
    """
    directory, pattern = without_directory(directory, pattern, file)
    operator = operator_of(ctx, directory, file)
    if not pattern:
        if reason is not None or remove:
            raise UsageError("A pattern is missing.", "Write: nephila block DIR PATTERN --reason TEXT")
        _list(operator, as_json=as_json)
    elif remove:
        if reason is not None:
            raise UsageError("--remove and --reason exclude each other.", "A block that is taken back needs no reason.")
        _remove(ctx, operator, pattern, as_json=as_json)
    elif reason is None:
        raise UsageError(
            "A block needs a reason.", f"Write: nephila block {directory or '--config FILE'} {pattern} --reason TEXT"
        )
    else:
        added = operator.block(pattern, reason)
        if as_json:
            print_json({"blocked": added})
        else:
            click.echo(printable(f"{added.pattern} is blocked from the next claim on: {added.reason}"))


def _list(operator: Operator, *, as_json: bool) -> None:
    blocks = operator.blocks()
    if as_json:
        print_json({"blocks": blocks, "count": len(blocks)})
        return
    for entry in blocks:
        click.echo(printable(f"{moment(entry.at)}  {entry.pattern}: {entry.reason}"))
    if not blocks:
        click.echo("Nothing is blocked.", err=True)


def _remove(ctx: click.Context, operator: Operator, pattern: str, *, as_json: bool) -> None:
    removed = operator.unblock(pattern)
    if as_json:
        print_json({"removed": removed, "pattern": pattern})
    elif removed:
        click.echo(printable(f"{pattern} is no longer blocked. What was dropped comes back when it is found again."))
    else:
        click.echo(printable(f"There was no block on {pattern}; `{command_name()} block DIR` lists them."), err=True)
    ctx.exit(0 if removed else NONE_SUCH)

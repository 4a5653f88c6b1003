"""`nephila seed`: gives seeds to a fleet's crawl, whether workers run or not (S1)."""

from __future__ import annotations

from pathlib import Path

import click

from nephila.config import load
from nephila.model.errors import UsageError

from .backend import backend_of
from .looking import json_option
from .order import Order, seed_sources
from .output import print_json, printable
from .worker import config_option, domains_option, seeds_option, set_option


@click.command("seed", short_help="Add seeds to a fleet's crawl.")
@click.argument("seeds", nargs=-1, metavar="[SEEDS]...")
@config_option
@seeds_option
@domains_option
@set_option
@json_option
@click.pass_context
def seed(
    ctx: click.Context,
    *,
    seeds: tuple[str, ...],
    file: Path,
    seed_files: tuple[str, ...],
    domain_files: tuple[str, ...],
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add SEEDS, URLs or bare domains, to the crawl that FILE describes; workers take them up at once.

    Says how many were added, already known, and refused, and why. Ends with 1 when none could be used.
    """
    order = Order(seeds, seed_files, domain_files, None, None, (), (), False, as_json, 0, False)
    if not order.has_seeds:
        raise UsageError("There are no seeds.", "Give a URL, --seeds FILE or --domains CSV.")
    configured = load(file=file, environ=backend_of(ctx).environ, assignments=assignments)
    from nephila.node.fleet.run import run_seed  # noqa: PLC0415 - start-up

    report = run_seed(configured, seed_sources(order))
    if as_json:
        print_json(
            {"added": report.added, "known": report.known, "refused": report.refused, "examples": report.examples}
        )
    else:
        click.echo(printable(report.sentence()))
        for one in report.examples:
            click.echo(printable(f"  {one.text}: {one.detail or one.reason}"))
    ctx.exit(0 if report.added or report.known else 1)

"""`nephila demo`: crawls a simulated web on this machine, and lets the auditor on its side say how well it went."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from .backend import backend_of
from .crawl import Watch, print_summary, tell_trouble
from .display import choose, is_terminal
from .looking import json_option, print_labelled
from .naming import command_name
from .needs import DemoResult
from .next_steps import LIMITS
from .output import print_json, printable
from .summary import exit_code, summary_document

AUDIT_FAILED = 1


@click.command("demo", short_help="Crawl a simulated web on this machine and audit it.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the crawl here.  [a temporary directory]",
)
@click.option("--pages", default=0, type=click.IntRange(min=0), metavar="N", help="End after N pages.  [all]")
@json_option
@click.pass_context
def demo(ctx: click.Context, out: Path | None, *, pages: int, as_json: bool) -> None:
    """Crawl a simulated web, served on this machine only, and have its auditor judge the crawl.

    Nothing leaves the machine. Afterwards the crawl can be inspected like any other.
    """
    backend = backend_of(ctx)
    directory = out or Path(tempfile.mkdtemp(prefix="nephila-demo-"))
    click.echo(f"Crawling a simulated web into {printable(str(directory))}", err=as_json)
    choice = choose(
        as_json=as_json,
        quiet=False,
        verbose=False,
        out_terminal=is_terminal(sys.stdout),
        error_terminal=is_terminal(sys.stderr),
        environ=backend.environ,
    )
    watch = Watch(choice, title=f"nephila demo {directory}")
    result = backend.run_demo(directory, pages=pages, listeners=watch.listeners, view=watch.view)
    if as_json:
        print_json(
            summary_document(result.summary, watch.seeds) | {"audit": dict(result.verdict), "passed": result.passed}
        )
    else:
        _conclude(result, watch, directory, backend.environ)
    tell_trouble(result.summary)
    ended = 0 if result.summary.stopped_by in LIMITS else exit_code(result.summary)  # --pages is no failure here
    ctx.exit(ended if result.passed else AUDIT_FAILED)


def _conclude(result: DemoResult, watch: Watch, directory: Path, environ: Mapping[str, str]) -> None:
    print_summary(result.summary, watch.seeds, environ)
    click.echo()
    click.echo("The auditor on the servers' side says:")
    print_labelled((f"  {label}", text) for label, text in result.verdict)
    name, nephila = shlex.quote(str(directory)), command_name()
    click.echo(f"\nTry: {nephila} pages {name} --limit 5\n     {nephila} why {name} {shlex.quote(result.example)}")

"""`nephila worker`: joins a crawl whose frontier, catalogue and archive are on engines that all share (N1-N8)."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import Configured, Given, load
from nephila.model.errors import NephilaError
from nephila.model.summary import CrawlSummary, StoppedBy

from .alerts import WarningSink
from .backend import backend_of
from .crawl import ENDLESS_S, Watch
from .display import choose, is_terminal, write_quietly
from .looking import json_option
from .next_steps import worker_place
from .order import Order, seed_sources
from .output import print_json, tell
from .summary import exit_code, summary_document, summary_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephila.interfaces.events import EventSink

config_option = click.option(
    "--config",
    "file",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The fleet's settings, the same for all workers: see deploy/fleet.toml.",
)
set_option = click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting.  (repeatable)")
seeds_option = click.option(
    "--seeds", "seed_files", multiple=True, metavar="FILE", help="List of seeds; - is standard input.  (repeatable)"
)
domains_option = click.option(
    "--domains", "domain_files", multiple=True, metavar="CSV", help="CSV with domains.  (repeatable)"
)


HELP = """Work for the crawl that FILE describes, beside any number of other workers.

A worker keeps everything on the engines, except what waits in its own directory to be uploaded. It may be killed,
restarted or moved at any time. It ends when nothing can run anywhere within --max-wait, when it is drained (`nephila
fleet drain`), or at a signal: the first ends it cleanly, a second at once.

\b
Exit codes:
  0    done, or drained
  1    failed, also if part of the archive waits in the spool
  2    the command line or the configuration makes no sense
  3    stopped by a limit
  130  interrupted; the same command resumes it
"""


@click.command("worker", help=HELP, short_help="Work on a fleet's crawl, beside any number of others.")
@click.argument("seeds", nargs=-1, metavar="[SEEDS]...")
@config_option
@seeds_option
@domains_option
@click.option("--dir", "directory", metavar="DIR", help="The worker's own directory (fleet.directory).")
@click.option("--name", metavar="NAME", help="Its name in `fleet status` (fleet.worker).")
@click.option("--group", metavar="GROUP", help="The group it belongs to (fleet.group).")
@click.option("--max-wait", metavar="SECONDS", help="End when nothing can run within this time.")
@click.option("--forever", is_flag=True, help="Never end on its own.")
@set_option
@json_option
@click.option("-v", "--verbose", count=True, help="Log lines on standard error; -vv for every event.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; warnings and errors only.")
@click.pass_context
def worker(ctx: click.Context, /, *, as_json: bool, verbose: int, quiet: bool, **given: object) -> None:
    """As `HELP` says."""
    environ = backend_of(ctx).environ
    configured = _configured(given, environ)
    order = _order(given, as_json=as_json, verbose=verbose, quiet=quiet)
    choice = choose(
        as_json=as_json,
        quiet=quiet,
        verbose=bool(verbose),
        out_terminal=is_terminal(sys.stdout),
        error_terminal=is_terminal(sys.stderr),
        environ=environ,
    )
    watch = Watch(choice, title=f"nephila worker of {configured.settings.fleet.crawl}")
    from nephila.node.fleet.run import run_worker  # noqa: PLC0415 - start-up

    summary = run_worker(configured, seed_sources(order), listeners=[*watch.listeners, *_log(verbose)], view=watch.view)
    if as_json:
        print_json(summary_document(summary, watch.seeds) | {"exit_code": _code(summary)})
    elif not quiet:
        place = worker_place(str(given["file"]), configured.settings)
        for line in summary_lines(summary, watch.seeds if order.has_seeds else None, 100, place):
            write_quietly(click.echo, line)
    if summary.failure:
        tell(NephilaError(summary.failure))
    ctx.exit(_code(summary))


def _code(summary: CrawlSummary) -> int:
    """As a crawl's; but a worker that found nothing to do has not failed."""
    idle = summary.stopped_by is StoppedBy.DONE and not summary.responses and not summary.failure
    return 0 if idle else exit_code(summary)


def _configured(given: Mapping[str, object], environ: Mapping[str, str]) -> Configured:
    flags = [
        Given(key, value, flag)
        for key, value, flag in (
            ("fleet.directory", given["directory"], "--dir"),
            ("fleet.worker", given["name"], "--name"),
            ("fleet.group", given["group"], "--group"),
        )
        if isinstance(value, str)
    ]
    if given["forever"]:
        flags.append(Given("limits.max_wait_s", ENDLESS_S, "--forever"))
    assignments = given["assignments"]
    waiting = (f"limits.max_wait_s={given['max_wait']}",) if given["max_wait"] is not None else ()
    file = given["file"]
    return load(
        file=file if isinstance(file, Path) else None,
        environ=environ,
        assignments=(*(assignments if isinstance(assignments, tuple) else ()), *waiting),
        flags=flags,
    )


def _order(given: Mapping[str, object], *, as_json: bool, verbose: int, quiet: bool) -> Order:
    """The seeds that were named, read as `crawl` reads them."""

    def names(key: str) -> tuple[str, ...]:
        value = given[key]
        return value if isinstance(value, tuple) else ()

    return Order(
        seeds=names("seeds"),
        seed_files=names("seed_files"),
        domain_files=names("domain_files"),
        out=None,
        config=None,
        assignments=(),
        flags=(),
        new_cycle=False,
        as_json=as_json,
        verbose=verbose,
        quiet=quiet,
    )


def _log(verbose: int) -> list[EventSink]:
    write = partial(write_quietly, partial(click.echo, err=True))
    if not verbose:
        return [WarningSink(write)]
    from nephila.observe import LogSink  # noqa: PLC0415 - only when asked for

    return [LogSink(write, verbose, int(time.time() * 1000))]

"""`nephila flush`: brings what waits in the spool of a crawl to the archive's store, and fetches nothing (W2)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from nephila.config import load, read_stored
from nephila.model.errors import CrawlDirectoryError, NephilaError, UsageError

from .alerts import WarningSink
from .backend import backend_of
from .display import write_quietly
from .looking import directory_argument, json_option
from .output import print_json, printable, tell
from .summary import EXIT_CODES


@click.command("flush", short_help="Upload the part of an archive that waits in its spool.")
@directory_argument
@click.option("--max-wait", metavar="SECONDS", help="Give up after this time; the rest stays in the spool.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting, such as s3.uploads=8.")
@json_option
@click.pass_context
def flush(
    ctx: click.Context, directory: Path, *, max_wait: str | None, assignments: tuple[str, ...], as_json: bool
) -> None:
    """Upload what the crawl in DIR left in its spool because its store was away or the crawl was killed.

    Nothing is fetched. Resuming the crawl does the same while it crawls. Ends with 0 when nothing is left, and with 1
    when something is.
    """
    backend = backend_of(ctx)
    stored = read_stored(directory)
    if stored is None:
        raise CrawlDirectoryError(f"there is no crawl at {directory}", "name one that `nephila crawl --out` made")
    waiting = (f"limits.max_wait_s={max_wait}",) if max_wait is not None else ()
    configured = load(stored=stored, environ=backend.environ, assignments=(*assignments, *waiting))
    if not configured.settings.archive.url:
        raise UsageError(
            f"the archive of the crawl in {directory} lies in that directory", "there is nothing to upload"
        )
    warnings = WarningSink(partial(write_quietly, partial(click.echo, err=True)))
    summary = backend.run_flush(directory, configured, [warnings])
    code, spool = EXIT_CODES[summary.stopped_by], summary.spool  # nothing was to be fetched
    left = spool.segments if spool is not None else 0
    if as_json:
        print_json({"archive": configured.settings.archive.url, "left": left, "exit_code": code})
    elif not left:
        click.echo(printable(f"All of the archive is in {configured.settings.archive.url}."))
    if summary.failure:
        tell(NephilaError(summary.failure))
    ctx.exit(code)

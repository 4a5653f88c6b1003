"""`nephila retain` and `nephila indexed`: what of a crawl need not be kept any longer, and what downstream has (W5)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from nephila.config import load, read_stored
from nephila.model.errors import CrawlDirectoryError

from .alerts import WarningSink
from .backend import backend_of
from .display import write_quietly
from .figures import count, size
from .looking import directory_argument, json_option, print_labelled
from .naming import command_name
from .output import print_json, printable
from .rows import many

if TYPE_CHECKING:  # start-up
    from nephila.config import Configured
    from nephila.node.retention import Retained
    from nephila.store.retention import Choice

INTERRUPTED = 130


@click.command("retain", short_help="Keep the newest captures of every page, and let the others go.")
@directory_argument
@click.option("--captures", metavar="N", help="Captures of every page that stay; 0 is all of them.  [3]")
@click.option("--older-than", metavar="AGE", help="Take out what is older, such as 90d, and not marked as indexed.")
@click.option(
    "--archive-to",
    "elsewhere",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Move what goes into WARC files there, instead of deleting it.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@json_option
@click.pass_context
def retain(
    ctx: click.Context,
    directory: Path,
    *,
    captures: str | None,
    older_than: str | None,
    elsewhere: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take captures out of the archive of the crawl in DIR that need not be kept any longer.

    Of every page the 3 newest captures stay; with --older-than what is older and not marked by `nephila indexed` goes,
    too. What other captures refer to stays, and so does robots.txt. Archive files are rewritten under receipts, which
    `audit` accepts. Not while a crawl runs there. Broken off, it is done again by the same command.
    docs/retention.md tells the rest.
    """
    configured = _configured(ctx, directory, captures, older_than)
    backend = backend_of(ctx)
    if dry_run:
        _tell_choice(backend.foresee_retention(directory, configured), as_json=as_json)
        return
    warnings = WarningSink(partial(write_quietly, partial(click.echo, err=True)))

    def progress(done: int, files: int) -> None:
        if not as_json and done < files:
            write_quietly(partial(click.echo, err=True), f"{count(done)} of {count(files)} archive files are done")

    done = backend.retain(directory, configured, elsewhere, [warnings], progress)
    _tell_done(done, elsewhere, as_json=as_json)
    if not done.is_finished:
        click.echo("It was broken off. The same command goes on where it was.", err=True)
        ctx.exit(INTERRUPTED)


@click.command("indexed", short_help="Mark captures as indexed, which an age limit then spares.")
@directory_argument
@click.argument("file", metavar="[FILE]", type=click.File(encoding="utf-8", errors="replace"), default="-")
@json_option
def indexed(directory: Path, file: IO[str], *, as_json: bool) -> None:
    """Mark captures of the crawl in DIR as indexed: `retain --older-than` spares them.

    FILE, or standard input, has one a line: the id of a message of the stream, a storage key, or the message itself.
    All are marked, or none. A crawl may run meanwhile.
    """
    ctx = click.get_current_context()
    new, total = backend_of(ctx).mark_indexed(directory, file)
    if as_json:
        print_json({"new": new, "marked": total})
    else:
        click.echo(f"{count(new)} captures were marked as indexed; {count(total)} are in all")


def _configured(ctx: click.Context, directory: Path, captures: str | None, older_than: str | None) -> Configured:
    stored = read_stored(directory)
    if stored is None:
        raise CrawlDirectoryError(f"there is no crawl at {directory}", "name one that `nephila crawl --out` made")
    given = (("retention.captures", captures), ("retention.max_age_s", older_than))
    wanted = tuple(f"{key}={text}" for key, text in given if text is not None)
    return load(stored=stored, environ=backend_of(ctx).environ, assignments=("processes=1", *wanted))


def _tell_choice(found: Choice, *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "would": found})
        return
    click.echo(
        f"would take out {many(found.captures, 'capture')} of {many(found.urls, 'URL')}, {size(found.bytes)}, from "
        f"{many(found.files, 'archive file')}; of {many(found.pages_gone, 'page')} nothing would be left"
    )


def _tell_done(done: Retained, elsewhere: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"captures": done.captures, "moved": done.moved, "chosen": done.choice, "finished": done.is_finished}
        )
        return
    if not done.choice.captures:
        click.echo("There is nothing that need not be kept.")
        return
    rows = [("taken out", f"{count(done.captures)} captures, of {count(done.choice.captures)} that need not be kept")]
    if elsewhere is not None:
        rows.append(("moved", printable(f"{count(done.moved)} captures to {elsewhere}")))
    rows.append(("pages gone", f"{count(done.choice.pages_gone)}, of which nothing is left"))
    rows.append(("proof", f"the receipts are in the chain; `{command_name()} audit` checks them"))
    print_labelled(rows)

"""`nephila retain` and `nephila indexed`: what of a crawl need not be kept any longer, and what downstream has (W5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from nephila.config import Given, declarations, given_by_flag, load, read_stored
from nephila.model.errors import CrawlDirectoryError, UsageError

from .alerts import WarningSink
from .backend import backend_of
from .display import write_quietly
from .figures import count, size
from .looking import crawl_of, fleet_option, group_option, json_option, place_argument, print_labelled
from .naming import command_name
from .output import print_json, printable
from .rows import many

if TYPE_CHECKING:  # start-up
    from nephila.config import Configured
    from nephila.interfaces.retention import Choice
    from nephila.node.retention import Retained

INTERRUPTED = 130


@click.command("retain", short_help="Keep the newest captures of every page, remove the others.")
@place_argument
@fleet_option
@group_option
@click.option("--captures", metavar="N", help="Captures of every page to keep; 0 keeps all.  [3]")
@click.option(
    "--older-than", metavar="AGE", help="Also take out what is older, such as 90d, and not marked as indexed."
)
@click.option(
    "--archive-to",
    "elsewhere",
    metavar="DIR|S3",
    default="",
    help="Move captures into WARC files there (s3://bucket/prefix) instead of deleting them.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@json_option
@click.pass_context
def retain(  # noqa: PLR0913 - the flags are named one by one
    ctx: click.Context,
    directory: Path | None,
    file: Path | None,
    group: str,
    *,
    captures: str | None,
    older_than: str | None,
    elsewhere: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take captures that need not be kept any longer out of the archive of a crawl.

    The 3 newest captures of every page stay. --older-than also takes out what is older and not marked by `nephila
    indexed`. What other captures refer to stays, and so does robots.txt. Archive files, on disk or in a bucket, are
    rewritten under receipts, which `audit` accepts.

    No crawl may be running on DIR. In a fleet (--config FILE) no workers may be there; they may come back as soon as
    this command says so. If it is broken off, run it again. docs/retention.md has the details.
    """
    configured = _configured(ctx, directory, file, group, captures, older_than)
    backend = backend_of(ctx)
    if dry_run:
        _tell_choice(backend.foresee_retention(directory, configured), as_json=as_json)
        return
    say = partial(write_quietly, partial(click.echo, err=True))

    def progress(done: int, files: int) -> None:
        if not as_json and done < files:
            say(f"{count(done)} of {count(files)} archive files are done")

    done = backend.retain(directory, configured, elsewhere, listeners=[WarningSink(say)], tell=progress, say=say)
    _tell_done(done, elsewhere, as_json=as_json)
    if not done.is_finished:
        click.echo("It was broken off. The same command goes on where it was.", err=True)
        ctx.exit(INTERRUPTED)


@click.command("indexed", short_help="Mark captures as indexed, so that an age limit spares them.")
@click.argument("names", metavar="[DIR] [FILE]", nargs=-1)
@fleet_option
@group_option
@json_option
@click.pass_context
def indexed(ctx: click.Context, names: tuple[str, ...], file: Path | None, group: str, *, as_json: bool) -> None:
    """Mark captures of a crawl as indexed, so that `retain --older-than` spares them.

    FILE, or standard input, names one capture a line: by the id of its message in the stream, by its storage key, or by
    the whole message. All are marked, or none. A crawl may run meanwhile. For a fleet, give --config FILE in place of
    DIR.
    """
    directory, rest = (None, names) if file is not None or not names else (Path(names[0]), names[1:])
    if len(rest) > 1:
        raise UsageError("Give one file.", "Several are read from standard input: cat A B | nephila indexed DIR")
    crawl = crawl_of(ctx, directory, file, group)
    with _lines(rest[0] if rest else "-") as lines:
        new, total = backend_of(ctx).mark_indexed(crawl, lines)
    if as_json:
        print_json({"new": new, "marked": total})
    else:
        click.echo(f"{count(new)} captures were marked as indexed; {count(total)} are in all")


@contextmanager
def _lines(name: str) -> Iterator[IO[str]]:
    """A file, or standard input, to be read until the end of the block."""
    try:
        with click.open_file(name, encoding="utf-8", errors="replace") as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def _configured(
    ctx: click.Context,
    directory: Path | None,
    file: Path | None,
    group: str,
    captures: str | None,
    older_than: str | None,
) -> Configured:
    if (directory is None) == (file is None):
        raise UsageError("Name one crawl: DIR, or --config FILE of a fleet.")
    given = (("retention.captures", "--captures", captures), ("retention.max_age_s", "--older-than", older_than))
    flags = [given_by_flag(declarations()[key], flag, text) for key, flag, text in given if text is not None]
    environ = backend_of(ctx).environ
    if directory is None:
        flags += [Given("fleet.group", group, "--group")] if group else []
        return load(file=file, environ=environ, flags=flags)
    stored = read_stored(directory)
    if stored is None:
        raise CrawlDirectoryError(f"there is no crawl at {directory}", "name one that `nephila crawl --out` made")
    return load(stored=stored, environ=environ, assignments=("processes=1",), flags=flags)


def _tell_choice(found: Choice, *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "would": found})
        return
    click.echo(
        f"would take out {many(found.captures, 'capture')} of {many(found.urls, 'URL')}, {size(found.bytes)}, from "
        f"{many(found.files, 'archive file')}; of {many(found.pages_gone, 'page')} nothing would be left"
    )


def _tell_done(done: Retained, elsewhere: str, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"captures": done.captures, "moved": done.moved, "chosen": done.choice, "finished": done.is_finished}
        )
        return
    if not done.choice.captures:
        click.echo("There is nothing that need not be kept.")
        return
    rows = [("taken out", f"{count(done.captures)} captures, of {count(done.choice.captures)} that need not be kept")]
    if elsewhere:
        rows.append(("moved", printable(f"{count(done.moved)} captures to {elsewhere}")))
    rows.append(("pages gone", f"{count(done.choice.pages_gone)}, of which nothing is left"))
    rows.append(("proof", f"the receipts are in the chain; `{command_name()} audit` checks them"))
    print_labelled(rows)

"""`nephila purge`: blocks a URL or a domain, takes it out of the archives, and proves that it did (K2, W5)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import load, read_stored
from nephila.model.errors import CrawlDirectoryError, NephilaError, UsageError

from .alerts import WarningSink
from .backend import backend_of
from .display import write_quietly
from .figures import count
from .looking import crawl_of, fleet_option, group_option, json_option, print_labelled
from .naming import command_name
from .needs import Purger
from .output import print_json, printable
from .rows import many
from .summary import exit_code

if TYPE_CHECKING:  # start-up
    from nephila.node.takedown import Order, Takedown

SHOWN_FILES = 20


@click.command("purge", short_help="Take down a URL or domain: block it, purge it, prove it.")
@click.argument("names", metavar="[DIR] [URL|DOMAIN]...", nargs=-1)
@fleet_option
@group_option
@click.option("--reason", metavar="TEXT", help="The reason, kept in the record; `why` shows it.")
@click.option("--dry-run", is_flag=True, help="Only say what would be taken out.")
@json_option
@click.pass_context
def purge(
    ctx: click.Context,
    names: tuple[str, ...],
    file: Path | None,
    group: str,
    *,
    reason: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take down URLs (with a scheme: exactly that page) or domains (with all below them) of a crawl.

    They are blocked, and what was stored of them is taken out of archives, indexes, catalogue and events. The chain of
    hashes gets a receipt for every rewritten file, which `audit` accepts as proof.

    A crawl that runs on DIR does the work while this command waits; with --config FILE it is done here, while the
    fleet's workers go on. Without targets, pending takedowns are carried out. docs/takedown.md says what is taken out
    and what is not.
    """
    directory, targets = (None, names) if file is not None or not names else (Path(names[0]), names[1:])
    purger = _purger(ctx, directory, file, group)
    if targets:
        if not dry_run and reason is None:
            place = directory or "--config FILE"
            raise UsageError("A takedown needs a reason.", f"Write: nephila purge {place} {targets[0]} --reason TEXT")
        urls = [target for target in targets if "://" in target]
        domains = [target for target in targets if "://" not in target]
        order = purger.checked(urls, domains, reason if reason is not None else "dry run")
        if dry_run:
            _foresee(purger, order, as_json=as_json)
            return
        wanted = [purger.file(order)]
    elif dry_run or reason is not None:
        raise UsageError("A URL or a domain is missing.", "Write: nephila purge DIR URL --reason TEXT")
    else:
        wanted = purger.pending()
    if purger.is_running() and wanted and not as_json:
        click.echo("A crawl is running there: it carries this out. Waiting for it ...", err=True)
    _tell([_carried_out(ctx, purger, directory, one.id) for one in wanted], as_json=as_json)


def _purger(ctx: click.Context, directory: Path | None, file: Path | None, group: str) -> Purger:
    backend, crawl = backend_of(ctx), crawl_of(ctx, directory, file, group)
    if isinstance(crawl, Path):
        return backend.open_purge(crawl)
    return backend.open_fleet_purge(crawl, partial(click.echo, err=True))


def _carried_out(ctx: click.Context, purger: Purger, directory: Path | None, number: str) -> Takedown:
    backend = backend_of(ctx)

    def run() -> None:
        if directory is None:
            return
        stored = read_stored(directory)
        if stored is None:
            raise CrawlDirectoryError(f"there is no crawl at {directory}", "name one that `nephila crawl --out` made")
        configured = load(stored=stored, environ=backend.environ, assignments=("processes=1",))
        warnings = WarningSink(partial(write_quietly, partial(click.echo, err=True)))
        summary = backend.run_flush(directory, configured, [warnings])
        if exit_code(summary) and summary.failure:
            raise NephilaError(summary.failure, f"takedown {number} stays on record: `nephila purge {directory}` again")

    return purger.wait(number, run)


def _foresee(purger: Purger, order: Order, *, as_json: bool) -> None:
    found = purger.foresee(order)
    if as_json:
        print_json({"dry_run": True, "urls": order.urls, "domains": order.domains, "would": found})
        return
    for pattern in (*order.urls, *order.domains):
        click.echo(printable(f"would block  {pattern}"))
    click.echo(
        f"would take out {many(found.captures, 'capture')} of {many(found.pages, 'page')} from "
        f"{many(found.files, 'archive file')}; {many(found.emptied, 'capture')} of other pages would lose their payload"
    )


def _tell(done: list[Takedown], *, as_json: bool) -> None:
    if as_json:
        print_json({"takedowns": [_plain(one) for one in done]})
        return
    for one in done:
        rows = [("takedown", f"{one.id}: {one.order.reason}")]
        rows += [("blocked", pattern) for pattern in (*one.order.urls, *one.order.domains)]
        rows.append(("taken out", many(one.captures, "capture")))
        if one.emptied:
            rows.append(("emptied", f"{many(one.emptied, 'capture')} of other pages that were copies of it"))
        rows += [("rewritten", f"{file.file}, now {file.now}") for file in one.files[:SHOWN_FILES]]
        if len(one.files) > SHOWN_FILES:
            more = count(len(one.files) - SHOWN_FILES)
            rows.append(("rewritten", f"{more} more files, which the record of the takedown names"))
        rows += [("elsewhere", f"{place} is kept by a worker outside: delete it there") for place in one.outside]
        rows.append(("proof", f"the receipts are in the chain up to {one.head}; `{command_name()} audit` checks them"))
        print_labelled(rows)
    if not done:
        click.echo("No takedown waits to be carried out.", err=True)


def _plain(one: Takedown) -> dict[str, object]:
    return {
        "id": one.id,
        "state": str(one.state),
        "urls": one.order.urls,
        "domains": one.order.domains,
        "reason": one.order.reason,
        "who": one.order.who,
        "at": one.at,
        "done_at": one.done_at,
        "captures": one.captures,
        "emptied": one.emptied,
        "files": [
            {"file": file.file, "at": file.at, "was": file.was, "now": file.now, "removed": file.removed}
            for file in one.files
        ],
        "head": one.head,
        "outside": one.outside,
    }

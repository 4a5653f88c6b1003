"""`nephila export`: what a crawl has stored, in a form that others read (W4, W6)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephila.model.errors import UsageError

from .backend import backend_of
from .figures import count
from .looking import crawl_of, fleet_option, group_option, host_named, json_option, place_argument
from .output import print_json, printable
from .progress import ProgressLine
from .rows import many, reasons, wrapped

if TYPE_CHECKING:
    from nephila.node.exporting import Exported, ExportOrder

FORMS = ("jsonl", "parquet", "text", "markdown", "html", "wacz", "links")
_BY_NAME = {".jsonl": "jsonl", ".jsonl.gz": "jsonl", ".parquet": "parquet", ".wacz": "wacz"}
_FOLDERS = frozenset({"text", "markdown", "html"})
_LINK_NAMES = (".parquet", ".jsonl", ".jsonl.gz")
_NAMES = {"jsonl": (".jsonl", ".jsonl.gz"), "links": _LINK_NAMES, "parquet": (".parquet",), "wacz": (".wacz",)}
STANDARD_OUTPUT = "-"
_TERMINATED = 128 + signal.SIGTERM


class Moment(click.ParamType[int]):
    """A day or an instant, UTC unless it says otherwise."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's
        """UTC milliseconds."""
        if isinstance(value, int):
            return value
        try:
            found = datetime.fromisoformat(value)
            return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; write it like 2026-01-31 or 2026-01-31T12:00:00Z.", param, ctx)


@click.command("export", short_help="Export pages as JSON lines, files, Parquet or WACZ.")
@place_argument
@fleet_option
@group_option
@click.option(
    "--to",
    "target",
    required=True,
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A new file; for text, markdown and html a new folder; - for JSON lines on standard output.",
)
@click.option("--format", "form", type=click.Choice(FORMS), help="Not needed where the file name says it.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Only this host.  (repeatable)")
@click.option("--domain", "domains", multiple=True, metavar="NAME", help="Only this registrable domain.  (repeatable)")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.IntRange(100, 599),
    metavar="CODE",
    help="Only this HTTP status.  [200; any for wacz]  (repeatable)",
)
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this content type, such as text/html or text/*."
)
@click.option("--since", type=Moment(), default=0, metavar="TIME", help="Only fetched at this time (UTC) or later.")
@click.option(
    "--until", type=Moment(), default=0, metavar="TIME", help="Only fetched before this time: pages as they were then."
)
@click.option("--all", "all_captures", is_flag=True, help="Every capture of a page, not just the newest.")
@click.option("--unique", is_flag=True, help="Leave out duplicates and near-duplicates.")
@click.option(
    "--view",
    type=click.Choice(("raw", "rendered")),
    help="Pages that a browser has shown: as sent, or as it left them.",
)
@click.option(
    "--include",
    multiple=True,
    type=click.Choice(("noindex", "noarchive", "truncated")),
    help="Also pages that are left out otherwise.  (repeatable)",
)
@click.option(
    "--use",
    "uses",
    multiple=True,
    type=click.Choice(("search", "ai-input", "ai-train")),
    help="The purpose: leaves out pages whose robots.txt refuses it.  (repeatable)",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@click.option("--replace", is_flag=True, help="Replace an earlier export at PATH.")
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    /,
    directory: Path | None,
    file: Path | None,
    group: str,
    *,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 - the flags
) -> None:
    """Write what the crawl in DIR, or a fleet's, has stored to PATH. The crawl may run meanwhile and is not changed.

    For each page this is the newest whole capture with status 200 (with any status for wacz). Pages that ask to be left
    out (noindex, noarchive), are gone since, or were taken down are not exported. PATH appears only when it is whole.
    docs/exports.md has the fields of every format.

    Exit code 0: all that was asked for is there; 1: something could not be read or written; 2: a command that makes no
    sense.
    """
    order = _order(crawl_path=directory, **asked)
    if order.to is None and as_json:
        raise UsageError("--to - and --json would both write to standard output.", "Name a file with --to.")
    crawl = crawl_of(ctx, directory, file, group)
    with _ended_cleanly(order), ProgressLine() as progress:
        result = backend_of(ctx).export(
            crawl, order, lambda at: progress.show(f"{_share(at.captures, at.of)}, {many(at.exported, 'page')}")
        )
    if as_json:
        print_json({"to": str(order.to), "format": order.form, **_document(result)})
    else:
        _print(result, order)
    ctx.exit(0 if result.is_whole else 1)


def _order(  # noqa: PLR0913 - the flags are named one by one
    *,
    crawl_path: Path | None,
    target: Path,
    form: str | None,
    hosts: tuple[str, ...],
    domains: tuple[str, ...],
    statuses: tuple[int, ...],
    types: tuple[str, ...],
    since: int,
    until: int,
    all_captures: bool,
    unique: bool,
    view: str | None,
    include: tuple[str, ...],
    uses: tuple[str, ...],
    limit: int | None,
    replace: bool,
) -> ExportOrder:
    from nephila.export import Include, Selection, Use  # noqa: PLC0415 - start-up
    from nephila.export.selection import HTML_TYPES, OK  # noqa: PLC0415 - start-up
    from nephila.node.exporting import ExportOrder, Form, View  # noqa: PLC0415 - start-up

    to = None if str(target) == STANDARD_OUTPUT else target
    chosen = Form(_form(form, to))
    whole_archive = chosen is Form.WACZ
    _check_types(chosen, types)
    if until and until <= since:
        raise UsageError("--until must be later than --since.")
    order = ExportOrder(
        form=chosen,
        to=to,
        selection=Selection(
            hosts=frozenset(map(host_named, hosts)),
            domains=frozenset(map(host_named, domains)),
            statuses=frozenset(statuses) if statuses or whole_archive else frozenset({OK}),
            types=tuple(one.lower() for one in types) or (HTML_TYPES if chosen.is_folder else ()),
            since=since,
            until=until,
            newest=not all_captures,
            unique=unique,
            include=frozenset(map(Include, include)),
            use=frozenset(map(Use, uses)),
            bodies=chosen not in {Form.LINKS, Form.WACZ},
            everything=whole_archive,
        ),
        view=View(view or ("raw" if chosen is Form.HTML else "rendered")),
        replace=replace,
        limit=limit or 0,
    )
    _check_place(order, crawl_path)
    return order


def _form(form: str | None, to: Path | None) -> str:
    """The format that was asked for, or that the name of the file tells."""
    if to is None:
        if form not in {None, "jsonl", "links"}:
            raise UsageError(f"{form} cannot go to standard output.", "Name a file or a folder with --to.")
        return form or "jsonl"
    name = to.name.lower()
    if form is None:
        found = next((known for ending, known in _BY_NAME.items() if name.endswith(ending)), None)
        if found is None:
            raise UsageError(f"{to} does not tell which format is wanted.", f"Say --format {'|'.join(FORMS)}.")
        return found
    if form not in _FOLDERS and not name.endswith(_NAMES[form]):
        raise UsageError(f"{form} is written to a file called {' or '.join('*' + one for one in _NAMES[form])}.")
    return form


def _check_types(form: str, types: tuple[str, ...]) -> None:
    """Files are what their ending says: HTML, or what is made of text."""
    from nephila.export.selection import HTML_TYPES  # noqa: PLC0415 - start-up

    for one in types if form in _FOLDERS else ():
        if one.lower() not in HTML_TYPES and (form == "html" or not one.lower().startswith("text/")):
            raise UsageError(
                f"{form} files cannot be made of {one}.", "Other types come out as jsonl, parquet or wacz, or as WARC."
            )


def _check_place(order: ExportOrder, crawl: Path | None) -> None:
    from nephila.export import table  # noqa: PLC0415 - start-up
    from nephila.export.target import check_target  # noqa: PLC0415 - start-up

    if order.to is None:
        return
    if order.as_parquet:
        table.check()
    check_target(order.to, folder=order.form.is_folder, replace=order.replace)
    if crawl is not None and order.to.parent.resolve().is_relative_to(crawl.resolve()):
        raise UsageError(f"{order.to} lies in the crawl itself.", "Name a place outside of it with --to.")


@contextmanager
def _ended_cleanly(order: ExportOrder) -> Iterator[None]:
    """Whoever ends us, with Ctrl-C or otherwise: what was half written is removed, and that is said."""

    def end(_number: int, _frame: object) -> None:
        sys.exit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if order.to is not None:
            click.echo("Interrupted: nothing was written.", err=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _share(captures: int, of: int) -> str:
    return f"{min(1.0, captures / max(1, of)):.0%} looked at"


def _document(result: Exported) -> dict[str, object]:
    return {
        "exported": result.pages,
        "captures": result.captures,
        "left_out": dict(result.left_out),
        "damage": result.damage,
    }


def _print(result: Exported, order: ExportOrder) -> None:
    """On standard error where the pages went to standard output."""
    from nephila.export.selection import MEANINGS  # noqa: PLC0415 - start-up

    to_errors = order.to is None
    where = "" if order.to is None else f" in {order.to}"
    known = many(result.captures, "capture")
    written = many(result.pages, "capture" if order.form == "wacz" else "page")
    lines = [*wrapped("", printable(f"{written}{where}, of {known} that were looked at."), 80)]
    if result.left_out:
        lines.append(f"Left out: {count(sum(result.left_out.values()))}")
        lines += reasons(result.left_out, {str(key): meaning for key, meaning in MEANINGS.items()}, 80)
    for line in lines:
        click.echo(line, err=to_errors)
    for sentence in result.damage:
        click.echo(printable(f"nephila: {sentence}"), err=True)

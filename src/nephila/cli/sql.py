"""`nephila sql`: asks the catalogue of a crawl anything, and changes nothing (W6)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.errors import NephilaError, UsageError

from .backend import backend_of
from .looking import crawl_of, fleet_option, group_option, place_argument, print_labelled, without_directory
from .output import print_json, printable, tell
from .statements import split, statements

if TYPE_CHECKING:
    from nephila.interfaces.queries import Answered, CatalogueQueries

PROMPT, FURTHER = "sql> ", "...> "
_Write = Callable[["Answered"], Iterator[str]]


@click.command("sql", short_help="Query the catalogue of a crawl in SQL.")
@place_argument
@click.argument("statement", required=False, default="")
@fleet_option
@group_option
@click.option("--tables", is_flag=True, help="List the tables and their columns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, with a header.")
@click.pass_context
def sql(
    ctx: click.Context,
    directory: Path | None,
    statement: str,
    file: Path | None,
    group: str,
    *,
    tables: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Run STATEMENT on the catalogue of the crawl in DIR, or of a fleet, also while it runs.

    Only statements that read are run. Without STATEMENT, they are read from standard input, each ended by a semicolon;
    on a terminal, at a prompt. Hashes are shown in hexadecimal. docs/catalogue.md has the tables.

    Exit code 0: answered; 1: the catalogue cannot be read; 2: a statement that cannot be run.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv are two ways to print the same.", "Choose one.")
    directory, statement = without_directory(directory, statement, file)
    with closing(backend_of(ctx).open_queries(crawl_of(ctx, directory, file, group))) as queries:
        if tables:
            _list_tables(queries, as_json=as_json)
            return
        write = _writer(as_json=as_json, as_csv=as_csv)
        if statement:
            _answer_all(queries, statement, write)
        elif sys.stdin.isatty():
            _converse(queries, write)
        else:
            _answer_all(queries, sys.stdin.read(), write)


def _writer(*, as_json: bool, as_csv: bool) -> _Write:
    from .tables import csv_lines, json_lines, table_lines  # noqa: PLC0415 - start-up

    on_terminal = sys.stdout.isatty()
    if as_json:
        return json_lines
    if as_csv:
        return (lambda answer: map(printable, csv_lines(answer))) if on_terminal else csv_lines
    return lambda answer: table_lines(answer, shutil.get_terminal_size().columns if on_terminal else None)


def _answer_all(queries: CatalogueQueries, text: str, write: _Write) -> None:
    given = list(statements(text))
    if not given:
        raise UsageError("There is no statement.", 'Write it like: nephila sql DIR "SELECT count(*) FROM pages"')
    for number, one in enumerate(given):
        if number:
            click.echo()
        _answer(queries, one, write)


def _answer(queries: CatalogueQueries, statement: str, write: _Write) -> None:
    for line in write(queries.ask(statement)):
        click.echo(line)


def _converse(queries: CatalogueQueries, write: _Write) -> None:
    """Read statements from a terminal until it ends; a mistake costs the statement."""
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - editing and history come with it

    click.echo("Statements end with a semicolon; .tables lists what there is, .quit or Ctrl-D leaves.")
    begun = ""
    while True:
        try:
            line = input(FURTHER if begun else PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            begun = ""
            continue
        if not begun and line.strip() in {".quit", ".exit"}:
            return
        if not begun and line.strip() == ".tables":
            _list_tables(queries, as_json=False)
            continue
        ended, begun = split(f"{begun}{line}\n")
        begun = begun.lstrip()
        for one in ended:
            _answer_or_tell(queries, one, write)


def _answer_or_tell(queries: CatalogueQueries, statement: str, write: _Write) -> None:
    try:
        _answer(queries, statement, write)
    except NephilaError as error:
        tell(error)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)


def _list_tables(queries: CatalogueQueries, *, as_json: bool) -> None:
    found = queries.tables()
    if as_json:
        for table in found:
            columns = [{"name": name, "type": kind} for name, kind in table.columns]
            print_json({"table": table.name, "columns": columns})
        return
    print_labelled([(table.name, ", ".join(name for name, _ in table.columns)) for table in found])

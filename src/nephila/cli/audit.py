"""`nephila audit`: what a crawl has sent, held against what it promised, from archives and events alone (K1, P5)."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.errors import CrawlDirectoryError, UsageError

from .audit_words import chain_rows, kind_sentence, request_rows
from .backend import backend_of
from .figures import count, moment
from .looking import (
    crawl_name,
    crawl_of,
    fleet_option,
    group_option,
    json_option,
    place_argument,
    print_labelled,
)
from .output import print_json, printable

if TYPE_CHECKING:
    from nephila.node.audit import Audit, Finding

_HASH = re.compile(r"[0-9a-fA-F]{64}")


@click.command("audit", short_help="Check every request against the rules, and look for tampering.")
@place_argument
@fleet_option
@group_option
@click.option("--host", default="", metavar="NAME", help="Only what concerns this host.")
@click.option(
    "--expect", multiple=True, metavar="HASH", help="A head noted earlier, which must still be there.  (repeatable)"
)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(min=0), metavar="N", help="Show at most N violations."
)
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    directory: Path | None,
    file: Path | None,
    group: str,
    *,
    host: str,
    expect: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """Judge the crawl in DIR, or a fleet's, by its archives and event log alone, also while it runs.

    Every request is checked against the robots.txt then in force, the delay between two requests to a host, the limits
    per address, and the addresses that may be asked. The chains of hashes show whether archives and events are still
    what was written. The crawler's own state is not consulted, and nothing is changed.

    Exit code 0: nothing was found; 1: violations or signs of tampering; 2: a command that makes no sense.
    """
    for text in expect:
        if not _HASH.fullmatch(text):
            raise UsageError(
                f"{text!r} is no head of a chain", "a head has 64 hexadecimal digits, as `audit` prints it"
            )
    crawl = crawl_of(ctx, directory, file, group)
    try:
        found = backend_of(ctx).audit(crawl, host, expect)
    except CrawlDirectoryError as error:  # 1 is for what was found in a crawl, and here is none
        raise UsageError(str(error), error.hint) from error
    if as_json:
        print_json({"clean": found.is_clean, "violations": found.violations, **_document(found)})
    else:
        _print(found, str(directory or crawl_name(crawl)), host, limit)
    ctx.exit(0 if found.is_clean else 1)


def _document(found: Audit) -> dict[str, object]:
    from dataclasses import fields  # noqa: PLC0415 - start-up

    return {field.name: getattr(found, field.name) for field in fields(found)} | {"head": found.trail.head}


def _print(found: Audit, crawl: str, host: str, limit: int) -> None:
    width = min(80, shutil.get_terminal_size().columns)
    of = f"{host} in {crawl}" if host else crawl
    click.echo(printable(f"Audit of {of}: {_verdict(found)}"))
    click.echo()
    print_labelled([*request_rows(found), *chain_rows(found)], width)
    for finding in found.findings[:limit]:
        click.echo()
        for line in _told(finding, width):
            click.echo(line)
    if found.violations > limit:
        click.echo()
        click.echo(f"{count(found.violations - limit)} more; --limit shows more, --json the first thousand.")


def _verdict(found: Audit) -> str:
    if found.is_clean:
        return "clean" if found.requests else "clean, for nothing was sent"
    parts = []
    if found.violations:
        parts.append(f"{count(found.violations)} violation{'s' if found.violations != 1 else ''}")
    if broken := len(found.trail.breaches) + len(found.trail.missing):
        parts.append(f"{count(broken)} sign{'s' if broken != 1 else ''} of tampering")
    return ", ".join(parts).upper()


def _told(finding: Finding, width: int) -> Iterator[str]:
    """When, what and where on one line, the URL, then the sentence."""
    when = f"{moment(finding.at)}.{finding.at % 1000:03d} UTC" if finding.at else "time unknown"
    yield printable(f"{when}  {kind_sentence(finding.kind)}")
    yield printable(f"  {finding.url}")
    for line in textwrap.wrap(printable(finding.detail), width - 4, break_long_words=False, break_on_hyphens=False):
        yield f"  {line}"

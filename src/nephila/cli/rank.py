"""`nephila rank`: the pages and domains that others link to most, by PageRank over what was stored (R3)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import Given
from nephila.model.errors import NephilaError, UsageError
from nephila.model.plain import plain

from .backend import backend_of
from .figures import count, moment, size, span
from .looking import crawl_of, fleet_option, group_option, json_option, place_argument
from .output import print_json, printable
from .rows import many

if TYPE_CHECKING:
    from nephila.node.importance.renewing import Freshness, Importance
    from nephila.ranking import Computation

_LONG_BYTES = 200_000_000
"""What takes some seconds to read is told before."""
_SHOWN = 3
"""Files that could not be read, of which so many are named."""


@click.command("rank", short_help="Show the pages or domains with the highest PageRank.")
@place_argument
@fleet_option
@group_option
@click.option("--domains", is_flag=True, help="Rank registrable domains instead of pages.")
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(min=1), metavar="N", help="Show the N highest."
)
@click.option("--anew", is_flag=True, help="Read the whole archive again, not only what is new.")
@click.option(
    "--work", default="", metavar="FOLDER", help="For a fleet: keep what is read here, not in rank.directory."
)
@click.option("--every", type=click.FloatRange(min=1), metavar="SECONDS", help="For a fleet: repeat at this interval.")
@click.option("--no-publish", is_flag=True, help="For a fleet: only look; its workers keep the ranks they have.")
@json_option
@click.pass_context
def rank(  # noqa: PLR0913 - the flags are named one by one
    ctx: click.Context,
    directory: Path | None,
    file: Path | None,
    group: str,
    *,
    domains: bool,
    top: int,
    anew: bool,
    work: str,
    every: float | None,
    no_publish: bool,
    as_json: bool,
) -> None:
    """Show the pages with the highest PageRank in the crawl in DIR, or in a fleet's, also while it runs.

    The links of what was stored since the last time are read from the archive, and all ranks are computed anew. A rank
    of 2.00 is twice the mean. Pages that redirect, or name another page as their canonical form, count for that one;
    links marked nofollow, ugc or sponsored do not count.

    Everything is kept in the folder `rank` of the crawl, or in rank.directory where a fleet's ranks are computed, and
    may be deleted. The workers of a fleet are given the ranks of domains and score by them: run it there with --every.
    """
    for flag, value in (("--work", work), ("--every", every), ("--no-publish", no_publish)):
        if value and file is None:
            raise UsageError(f"{flag} is for a fleet: a crawl in DIR has its ranks there, and computes them itself.")
    flags = [Given("rank.directory", work, "--work")] if work else []
    crawl = crawl_of(ctx, directory, file, group, flags)
    pages, names = (0, top) if domains else (top, 0)

    def show(*, anew: bool) -> None:
        found = backend_of(ctx).rank_crawl(
            crawl,
            pages=pages,
            domains=names,
            anew=anew,
            publishing=not no_publish,
            every_s=every or 0.0,
            waiting=_tell_waiting,
            reading=_tell_reading,
        )
        if found is None:
            raise TypeError("whoever waits gets an answer")
        _show(found, domains=domains, top=top, as_json=as_json)

    began = time.monotonic()
    show(anew=anew)
    while every is not None:
        time.sleep(max(0.0, began + every - time.monotonic()))
        began = time.monotonic()
        try:
            show(anew=False)
        except NephilaError as error:  # engines come back, and the workers have the ranks of the last time
            click.echo(printable(f"Not this time, and again in {span(every)}: {error}"), err=True)


def _tell_waiting() -> None:
    click.echo("Somebody is computing these ranks already; waiting for that.", err=True)


def _tell_reading(unread: int) -> None:
    if unread >= _LONG_BYTES:
        click.echo(f"Reading {size(unread)} of the archive; what was read is not read again.", err=True)


def _show(found: Importance, *, domains: bool, top: int, as_json: bool) -> None:
    for sentence in _troubles(found):
        click.echo(printable(sentence), err=True)
    if as_json:
        print_json(_document(found, domains=domains, top=top))
        return
    for line in rank_lines(found):
        click.echo(line)
    click.echo(_summary(found, domains=domains), err=True)
    if found.freshness is not None:
        click.echo(_fresh(found.freshness), err=True)
    if found.made_due:
        click.echo(f"{many(found.made_due, 'page')} of these would soon be older, and will be visited now.", err=True)
    if found.published:
        click.echo("The workers have them within a minute or two.", err=True)


def rank_lines(found: Importance) -> Iterator[str]:
    """One line each, the highest first; of domains with pages stored and other domains that link there."""
    for page in found.top_pages:
        yield printable(f"{page.times_mean:>10,.2f}  {page.url}")
    if found.top_domains:
        yield f"{'rank':>10}  {'pages':>9}  {'referring':>9}  domain"
    for one in found.top_domains:
        yield printable(f"{one.times_mean:>10,.2f}  {count(one.pages):>9}  {count(one.referring):>9}  {one.domain}")


def _summary(found: Importance, *, domains: bool) -> str:
    said = found.domains if domains else found.pages
    if said is None:
        return "No page is stored yet: there is nothing to rank."
    what = many(said.count, "domain") if domains else many(said.count, "page")
    links = "link" if said.links == 1 else "links"
    return f"{what}, {count(said.links)} {links} between them, {moment(said.made_at)} (UTC); 1.00 is the mean."


def _fresh(found: Freshness) -> str:
    share, age = found.fresh / found.pages, span(found.age_s)
    return f"Of the {count(found.pages)} pages of highest rank {share:.0%} were visited in the last {age}."


def _troubles(found: Importance) -> Iterator[str]:
    if found.read.missing:
        named = ", ".join(found.read.missing[:_SHOWN])
        more = ", ..." if len(found.read.missing) > _SHOWN else ""
        yield f"Without {many(len(found.read.missing), 'file')} that the archive does not have: {named}{more}"
    for sentence in found.read.damaged[:_SHOWN]:
        yield f"{sentence} What comes after that in the file is left out."


def _document(found: Importance, *, domains: bool, top: int) -> dict[str, object]:
    said: Computation | None = found.domains if domains else found.pages
    rows = found.top_domains if domains else found.top_pages
    return {
        "domains" if domains else "pages": plain(rows),
        "count": len(rows),
        "top": top,
        "computed": None if said is None else plain(said),
        "freshness": None if found.freshness is None else plain(found.freshness),
        "published": found.published,
        "made_due": found.made_due,
        "read": {"captures": found.read.captures, "links": found.read.links},
        "missing": list(found.read.missing),
        "damaged": list(found.read.damaged),
    }

"""`nephila status`: where a crawl stands, also while it runs.

The queue is a table of class against supply and age; what else there is to know follows in rows, those of nothing left
out. All figures come from counters, so that it answers at once whatever the size of the crawl.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.plain import plain

from .explanations import PARKED, WAITS
from .figures import count, short_count, size
from .looking import fleet_option, group_option, json_option, place_argument, view_of
from .naming import command_name
from .output import print_json, printable
from .rows import many, reasons, row

if TYPE_CHECKING:
    from nephila.node.standing import CrawlStatus

CELL = 9
FIRST = 16
"""Columns of the table: of the class, and of each figure."""
NARROWEST = 40
PLUGIN_ROOM = 40
"""Characters of a plugin's label."""
AGE_HEADS: Mapping[str, str] = {
    "under_4h": "< 4 h",
    "under_1d": "< 1 d",
    "under_7d": "< 7 d",
    "under_30d": "< 30 d",
    "longer": "longer",
}


@click.command("status", short_help="Show where a crawl stands.")
@place_argument
@fleet_option
@group_option
@json_option
@click.pass_context
def status(ctx: click.Context, directory: Path | None, *, file: Path | None, group: str, as_json: bool) -> None:
    """Show where the crawl in DIR stands: what is stored, what is queued and since when, what waits and for what."""
    standing = view_of(ctx, directory, file, group).status()
    if as_json:
        document = plain(standing)
        if not isinstance(document, dict):
            raise TypeError("a status is a record")
        print_json(document)
        return
    for line in status_lines(standing, shutil.get_terminal_size().columns):
        click.echo(line)


def status_lines(standing: CrawlStatus, width: int) -> Iterator[str]:
    """The whole status, line by line."""
    width = max(NARROWEST, width)
    running = "running" if standing.running else "not running"
    yield f"{printable(standing.directory)}: {running}, cycle {standing.cycle}"
    yield from row("stored", _stored(standing), width)
    yield from row("known", _known(standing), width)
    yield from row("hosts", _hosts(standing), width)
    if standing.lists.get("sitemaps") or standing.lists.get("feeds"):
        yield from row("sitemaps", _lists(standing), width)
    if standing.rendering:
        yield from row("browsers", _rendering(standing), width)
    if standing.spool is not None:
        yield from row("archive", f"{printable(standing.spool.place)}; spool: {standing.spool.words()}", width)
    yield ""
    yield from _queue(standing)
    yield ""
    for label, text, counts, meanings in _rest(standing):
        yield from row(label, text, width)
        yield from reasons(counts, meanings, width)


def _stored(standing: CrawlStatus) -> str:
    goal = f" of {count(standing.target_domains)} wanted" if standing.target_domains else ""
    return (
        f"{many(standing.pages, 'page')} from {count(standing.domains)}{goal} domains; "
        f"{many(standing.captures, 'capture')}, {size(standing.bytes)} on the wire"
    )


def _known(standing: CrawlStatus) -> str:
    counts = ", ".join(f"{count(number)} {state}" for state, number in standing.urls.items() if number)
    return f"{many(standing.known, 'URL')}" + (f"; {counts}" if counts else "")


def _hosts(standing: CrawlStatus) -> str:
    places = ", ".join(f"{count(number)} {place}" for place, number in standing.hosts_by_place.items() if number)
    return count(standing.hosts) + (f"; {places}" if places else "")


def _lists(standing: CrawlStatus) -> str:
    """What sitemaps and feeds have brought."""
    figures = standing.lists
    return (
        f"{many(figures['sitemaps'], 'sitemap')} and {many(figures['feeds'], 'feed')} read; "
        f"{many(figures['entries'], 'entry', 'entries')}, {many(figures['added'], 'URL')} not met before, "
        f"{count(figures['renewed'])} visited sooner for it"
    )


def _rendering(standing: CrawlStatus) -> str:
    """What browsers did in the last run, or are doing."""
    told = standing.rendering
    text = f"{many(told['rendered'], 'page')} shown in this run, {count(told['gained'])} of them gained by it"
    if told["missed"]:
        text += f"; {many(told['missed'], 'page')} needed one and had none"
    if told["browsers"] or told["waiting"]:
        text += f"; {many(told['browsers'], 'browser')}, {many(told['waiting'], 'page')} waiting"
    return text


def _queue(standing: CrawlStatus) -> Iterator[str]:
    """Class against supply and age; the last row is the sum."""
    heads = ["new", "again", *AGE_HEADS.values()]
    yield f"  {'queue':<{FIRST - 2}}" + "".join(f"{head:>{CELL}}" for head in heads)
    sums = [0] * len(heads)
    for level, queued in standing.queued.items():
        again = standing.due_again.get(level, 0)
        ages = standing.ages.get(level, {})
        figures = [queued - again, again, *(ages.get(age, 0) for age in AGE_HEADS)]
        sums = [total + figure for total, figure in zip(sums, figures, strict=True)]
        yield _line(level, figures)
    yield _line("all", sums)


def _line(label: str, figures: list[int]) -> str:
    return f"  {label:<{FIRST - 2}}" + "".join(
        f"{short_count(figure) if figure else '-':>{CELL}}" for figure in figures
    )


def _rest(standing: CrawlStatus) -> Iterator[tuple[str, str, Mapping[str, int], Mapping[str, str]]]:
    """Label, text, and counts by reason with their meanings, of all that there is."""
    nephila, directory = command_name(), shlex.quote(printable(standing.directory))
    if delayed := sum(standing.waiting_for_a_time.values()):
        yield "waiting", f"{many(delayed, 'URL')} for a time of their own", standing.waiting_for_a_time, WAITS
    put_off = {reason: number for reason, number in standing.hosts_put_off.items() if reason not in PARKED}
    if put_off:
        yield "put off", f"{many(sum(put_off.values()), 'queued URL')} with their hosts", put_off, WAITS
    if parked := sum(standing.parked.values()):
        yield "parked", f"{many(parked, 'URL')} known and kept, not queued for now", standing.parked, PARKED
    single = {
        "planned": standing.planned and f"{many(standing.planned, 'visit')} to pages that were fetched",
        "gone": standing.gone and f"{many(standing.gone, 'page')} proven gone",
        "traps": standing.traps
        and f"{many(standing.traps, 'pattern')} slowed or quarantined ({nephila} traps {directory})",
        "starving": standing.starving
        and f"{count(standing.starving)} of {many(standing.draws, 'choice')} for hosts that had waited too long",
        "paused": standing.paused and f"{many(standing.paused, 'domain')} by hand: {_names(standing)}",
        "policies": standing.policies and f"{count(standing.policies)} ({nephila} policy {directory})",
        "blocks": standing.blocks and f"{count(standing.blocks)} ({nephila} block {directory})",
    }
    single |= {f"plugin {name}"[:PLUGIN_ROOM]: _plugin(counts) for name, counts in standing.plugins.items()}
    for label, text in single.items():
        if isinstance(text, str):
            yield label, text, {}, {}


def _plugin(counts: Mapping[str, int]) -> str:
    failures, overruns, lost = (counts.get(name, 0) for name in ("failures", "overruns", "lost"))
    parts = [many(counts.get("calls", 0), "call")]
    if failures:
        parts.append(f"{many(failures, 'failure')}" + (f", {count(overruns)} of them too late" if overruns else ""))
    if lost:
        parts.append(f"{count(lost)} records or events did not reach it")
    if counts.get("off"):
        parts.append("switched off")
    return "; ".join(parts)


def _names(standing: CrawlStatus) -> str:
    more = standing.paused - len(standing.paused_domains)
    return ", ".join(standing.paused_domains) + (f" and {count(more)} more" if more else "")

"""`nephila report`: what a crawl came to, in the terminal with small charts, or as one HTML file (O3)."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from nephila.model.errors import NephilaError
from nephila.model.plain import plain

from .backend import backend_of
from .figures import clock, count, moment, rate, size
from .looking import crawl_of, fleet_option, group_option, json_option, place_argument
from .output import print_json, printable
from .report_page import decade, render
from .rows import many, row

if TYPE_CHECKING:
    from nephila.report import CrawlReport, Spread, Timeline, WorkerFigures

_Write = Callable[[int], str]

NARROWEST, WIDEST = 40, 100
LABEL = 16
SHOWN = 6
"""Rows of a table before the rest is summed up."""
_LEVELS = " ▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = " .:-=+*#@"
_FIGURE = 9
MORE = " more"
"""How the row ends that sums up the rest; it has no bar."""
_LEAST_BAR = 8


@click.command("report", short_help="Report on a crawl, with charts, here or as HTML.")
@place_argument
@fleet_option
@group_option
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one self-contained HTML file; - is standard output.",
)
@json_option
@click.pass_context
def report(
    ctx: click.Context, directory: Path | None, file: Path | None, group: str, *, page: Path | None, as_json: bool
) -> None:
    """Report on the crawl in DIR, or a fleet's, also while it runs.

    The report has pages over time, errors by kind and host, coverage by domain, status codes, sizes, times, duplicates,
    traps and what is left to do. It counts what is stored of all runs: pages that were taken down are not among it,
    though `status` still counts them as fetched.
    """
    if page is not None and as_json:
        raise click.UsageError("--html and --json are two ways to print the same: choose one")
    found = backend_of(ctx).report_on(crawl_of(ctx, directory, file, group))
    if as_json:
        document = plain(found)
        if not isinstance(document, dict):
            raise TypeError("a report is a record")
        print_json({**document, "seconds": found.seconds, "pages_per_s": found.pages_per_s})
    elif page is None:
        width = min(WIDEST, max(NARROWEST, shutil.get_terminal_size().columns))
        for line in report_lines(found, width, levels_for(sys.stdout.encoding)):
            click.echo(line)
    elif str(page) == "-":
        click.echo(render(found).encode(errors="backslashreplace"), nl=False)  # the page says that it is UTF-8
    else:
        text = render(found)
        write_whole(page, text)
        weight = len(text.encode(errors="backslashreplace"))
        click.echo(f"{printable(str(page))}: {size(weight)}; open it in a browser.")


def levels_for(encoding: str | None) -> str:
    """The characters that charts are drawn with: blocks where the stream can carry them."""
    try:
        _LEVELS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN_LEVELS
    return _LEVELS


def write_whole(path: Path, text: str) -> None:
    """The file wholly or not at all: what was there stays until the new one is complete.

    A link stays, and what it leads to is replaced. What is no file, such as a pipe or a device, is written into.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise NephilaError(f"{path} cannot be written: {error.strerror}", "name another file with --html") from error


def _replace(path: Path, text: str) -> None:
    draft = path.parent / f".report-{token_hex(8)}"
    with draft.open("x", encoding="utf-8", errors="backslashreplace") as new:
        try:
            new.write(text)
            new.flush()
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def report_lines(found: CrawlReport, width: int, levels: str) -> Iterator[str]:
    """The whole report, line by line."""
    state = "running" if found.running else "not running"
    yield f"{printable(found.directory)}: {state}, cycle {found.cycle}"
    if not found.timeline.moments:
        yield "  Nothing was fetched yet."
        return
    begun, ended = moment(found.timeline.begun_at), moment(found.ended_at)
    again, queue = found.repetition, found.queue
    rows = {
        "when": f"{begun} to {ended} UTC ({clock(found.seconds)})",
        "pages": f"{count(found.pages)} from {many(found.coverage.domains, 'domain')}; {rate(found.pages_per_s)} on"
        f" average, {rate(found.most_pages_per_s)} at best",
        "answers": f"{count(found.answers)} and {count(found.robots)} for robots.txt; {size(found.bytes)} on the wire",
        "errors": f"{count(sum(found.errors.values()))}, {found.error_share:.1%} of all exchanges",
        "nothing new": f"{count(again.exact)} the same bytes, {count(again.near)} nearly the same, "
        f"{count(again.unchanged)} not changed since",
        "page size": _percentiles(found.sizes, size),
        "answer time": _percentiles(found.latencies, _ms),
        "left": f"{_sum(queue.queued)} queued, {_sum(queue.waiting)} waiting, {_sum(queue.parked)} parked, "
        f"{count(queue.dead)} given up",
    }
    if found.workers:
        rows["workers"] = _workers(found.workers)
    for label, text in rows.items():
        yield from row(label, text, width)
    yield ""
    yield from _over_time(found.timeline, width, levels)
    for title, counts in (
        ("status", {str(status): number for status, number in found.statuses.items()}),
        ("errors by kind", found.errors),
        ("errors by host", {one.host: one.errors for one in found.error_hosts}),
        ("pages by type", found.types),
    ):
        yield from _bars(title, _largest(counts), width, levels)
    yield from _bars("pages by depth", list(_first(found.depths)), width, levels)
    by_pages = [(decade(digits), domains) for digits, domains in found.coverage.by_pages.items()]
    yield from _bars("pages a domain", by_pages, width, levels)
    yield from _bars("domains", _largest({one.domain: one.pages for one in found.coverage.leading}), width, levels)
    yield from _bars("pages by worker", _largest({one.name: one.pages for one in found.workers}), width, levels)
    if found.traps:
        held = {f"{one.host} {one.pattern}": one.fetched for one in found.traps}
        yield from _bars("traps", _largest(held), width, levels)


def _workers(all_of_them: Sequence[WorkerFigures]) -> str:
    """How many are there, and what of theirs is not in the figures above."""
    states = Counter(one.state for one in all_of_them)
    told = ", ".join(f"{count(number)} {state}" for state, number in states.items())
    waiting = sum(one.waiting_bytes for one in all_of_them)
    return told + (f"; {size(waiting)} in their spools are not in this report yet" if waiting else "")


def _percentiles(spread: Spread, write: _Write) -> str:
    return (
        f"half at most {write(spread.median)}, nine in ten {write(spread.ninth)}, 99 in 100"
        f" {write(spread.ninety_ninth)}, the most {write(spread.most)}"
    )


def _over_time(timeline: Timeline, width: int, levels: str) -> Iterator[str]:
    """Two lines of charts, pages and errors, each on a scale of its own."""
    room = width - LABEL - _FIGURE - 1
    seconds = timeline.step_ms / 1000
    for label, figures in (
        ("pages/s", [one.pages / seconds for one in timeline.moments]),
        ("errors/s", [one.errors / seconds for one in timeline.moments]),
    ):
        shown = squeezed(figures, room)
        most = max(shown)
        yield f"  {label:<{LABEL - 2}}{spark(shown, levels):<{room}} {rate(most):>{_FIGURE}}".rstrip()
    yield ""


def squeezed(figures: Sequence[float], room: int) -> list[float]:
    """As many figures as there is room: neighbours averaged, or each shown more than once."""
    if len(figures) <= room:
        return [figures[place * len(figures) // room] for place in range(room)]
    edges = [place * len(figures) // room for place in range(room + 1)]
    return [sum(figures[one:two]) / (two - one) for one, two in pairwise(edges)]


def spark(figures: Sequence[float], levels: str) -> str:
    """Figures as characters of rising height; only nothing is blank."""
    most = max(figures, default=0.0) or 1.0
    last = len(levels) - 1
    return "".join(levels[0 if figure <= 0 else max(1, round(figure / most * last))] for figure in figures)


def _bars(title: str, rows: Sequence[tuple[str, int]], width: int, levels: str) -> Iterator[str]:
    """Figures with bars, below a title; nothing where there are none."""
    if not rows:
        return
    name_room = min(max(len(name) for name, _ in rows), width - _FIGURE - _LEAST_BAR - 6)
    bar_room = width - name_room - _FIGURE - 6
    most = max(number for name, number in rows if not name.endswith(MORE)) or 1
    yield f"  {title}"
    for name, number in rows:
        told = printable(name)
        told = told if len(told) <= name_room else told[: name_room - 1] + "~"
        bar = levels[-1] * max(1, round(number / most * bar_room)) if number and not name.endswith(MORE) else ""
        yield f"    {told:<{name_room}} {count(number):>{_FIGURE}} {bar}".rstrip()
    yield ""


def _largest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    ordered = sorted(
        ((name, number) for name, number in counts.items() if number), key=lambda item: (-item[1], item[0])
    )
    rest = ordered[SHOWN:]
    return ordered[:SHOWN] + ([(f"{count(len(rest))}{MORE}", sum(number for _, number in rest))] if rest else [])


def _first(depths: Mapping[int, int]) -> Iterator[tuple[str, int]]:
    ordered = sorted(depths.items())
    yield from ((str(depth), pages) for depth, pages in ordered[:SHOWN])
    if rest := ordered[SHOWN:]:
        yield "deeper", sum(pages for _, pages in rest)


def _sum(counts: Mapping[str, int]) -> str:
    return count(sum(counts.values()))


def _ms(figure: int) -> str:
    return f"{count(figure)} ms"

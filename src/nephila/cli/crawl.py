"""`nephila crawl`: reads what is asked for, says what it is going to do, runs it, says what came of it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephila.config import Configured, Given, declarations, given_by_flag, load, read_stored
from nephila.model.errors import NephilaError, UsageError
from nephila.model.summary import CrawlSummary

from .alerts import WarningSink
from .backend import Backend, backend_of
from .cautions import cautions
from .display import Choice, Kind, choose, is_terminal, style_allowed, watch_plainly, write_quietly
from .flags import Section, SectionCommand, SectionOption, given_flags, setting_options
from .needs import RunningCrawl, Serve, View
from .order import Order, crawl_directory, named_seeds, reaches_public, seed_sources
from .output import print_json, printable, tell
from .summary import exit_code, shortfall, summary_document, summary_lines

if TYPE_CHECKING:
    from nephila.interfaces.events import EventSink
    from nephila.seeds import SeedReport

ENDLESS_S = float("inf")

HELP = """Crawl from SEEDS: URLs or bare domains (https is tried first).

A crawl is a directory (--out): its configuration, queue, archives and tables. The same command resumes it,
also after Ctrl-C or a crash; --out DIR alone is then enough.

Every setting that `nephila config show` lists can be given as --set group.name=value; those with flags of their own
are below. Durations may be written as 90s, 5m, 2h, 1d; sizes as 10MB, 512KiB.

\b
Exit codes:
  0    done: nothing is left that can run within --max-wait
  1    failed, also if not a single server answered, or none was asked
       because all that is left waits for servers that had not answered,
       or if part of the archive could not be uploaded and waits in the spool
  2    the command line or the configuration makes no sense
  3    stopped by a limit (--max-pages, --max-time, ...)
  130  interrupted; the same command resumes it
"""


def _own_options() -> list[click.Parameter]:
    """Options that are no settings."""
    folder = click.Path(file_okay=False, path_type=Path)
    file = click.Path(dir_okay=False, path_type=Path)

    def option(section: Section, names: str, text: str, **given: Any) -> click.Parameter:  # noqa: ANN401 - click's own
        return SectionOption(names.split(), section, help=text, **given)

    many = {"multiple": True}
    switch = {"is_flag": True}
    return [
        click.Argument(["seeds"], nargs=-1, metavar="[SEEDS]..."),
        option(
            Section.START,
            "--seeds seed_files",
            "list of URLs or domains, sitemap, feed or OPML; - is standard input  (repeatable)",
            metavar="FILE|-|URL",
            **many,
        ),
        option(
            Section.START,
            "--domains --domain-seeds-csv domain_files",
            "CSV with domains, such as a ranking: the first domain of each row counts  (repeatable)",
            metavar="CSV|-",
            **many,
        ),
        option(
            Section.TARGET,
            "--out",
            "the crawl directory, created if missing  [crawl-HOST of the first seed]",
            type=folder,
            metavar="DIR",
        ),
        option(Section.TARGET, "--new-cycle", "start a new cycle: fetch everything once more", **switch),
        *setting_options(),
        option(Section.LIMITS, "--forever", "never end on its own: wait for what becomes due", **switch),
        option(Section.POLITENESS, "--politeness-ms", "the same as --delay, in milliseconds", type=float, metavar="MS"),
        option(
            Section.COMMAND,
            "--serve serve_port",
            "serve the control API on this port while crawling; 0 takes a free one",
            type=click.IntRange(0, 65_535),
            metavar="PORT",
        ),
        option(
            Section.COMMAND,
            "--serve-host",
            "address to serve on; other than loopback, it needs a token",
            metavar="ADDR",
        ),
        option(Section.COMMAND, "--token-file", "tokens, one a line: NAME read|write TOKEN", type=file, metavar="FILE"),
        option(Section.COMMAND, "--config", "TOML file with settings", type=file, metavar="FILE"),
        option(
            Section.COMMAND,
            "--set assignments",
            "any setting, such as fetch.max_hops=3  (repeatable)",
            metavar="KEY=VALUE",
            **many,
        ),
        option(Section.COMMAND, "--json as_json", "one JSON object on standard output, nothing else there", **switch),
        option(Section.COMMAND, "-v --verbose", "log lines on standard error; -vv for every event", count=True),
        option(Section.COMMAND, "-q --quiet", "no progress and no summary; warnings and errors only", **switch),
    ]


@click.command(
    "crawl",
    cls=SectionCommand,
    help=HELP,
    short_help="Crawl from seeds, or resume a crawl.",
    params=_own_options(),
)
@click.pass_context
def crawl(ctx: click.Context, /, **params: Any) -> None:  # noqa: ANN401 - click's parameters, read by `_order`
    """Run the crawl that the arguments describe."""
    ctx.exit(run_order(_order(params), backend_of(ctx)))


def run_order(order: Order, backend: Backend) -> int:
    """Crawl as ordered; the exit code."""
    out = crawl_directory(order)
    stored = read_stored(out)
    configured = load(
        stored=stored,
        file=order.config,
        environ=backend.environ,
        assignments=order.assignments,
        flags=order.flags,
    )
    if stored is None and not order.has_seeds and not configured.settings.plugins.enabled:
        raise UsageError(
            f"There is no crawl in {out} to go on with, and no seed to start from.",
            "Give a seed, as in `nephila crawl example.org`.",
        )
    sources = seed_sources(order)
    _announce(order, out, configured, going_on=stored is not None)
    watch = Watch(_choice(order, backend), title=f"nephila {out}")
    named = named_seeds(order) if stored is not None and order.has_seeds else None
    with _served(order, backend) as serve:
        summary = backend.run_crawl(
            out,
            configured,
            sources,
            new_cycle=order.new_cycle,
            listeners=[*watch.listeners, *_log(order)],
            view=watch.view,
            named=named,
            **({} if serve is None else {"serve": serve}),
        )
    _conclude(order, summary, watch, backend.environ)
    return exit_code(summary)


@contextmanager
def _served(order: Order, backend: Backend) -> Iterator[Serve | None]:
    """What serves the crawl while it runs, if that is wanted."""
    if order.serve_port is None:
        if order.serve_host or order.token_file:
            raise UsageError("--serve-host and --token-file say how to serve: --serve PORT is missing.")
        yield None
        return
    from nephila.control.server import InsideServer  # noqa: PLC0415 - only when asked for

    from .serve import HOST, binding  # noqa: PLC0415 - as above

    where = binding(order.serve_host or HOST, order.serve_port, order.token_file, backend.environ)
    server = InsideServer(where)
    try:
        yield server
    finally:
        server.close()


class Watch:
    """The display of one run. It also keeps hold of the crawl, whose report on the seeds is wanted at the end."""

    def __init__(self, choice: Choice, title: str) -> None:
        self._choice = choice
        self._title = title
        self._crawl: RunningCrawl | None = None
        self.listeners: list[EventSink] = []
        self.view: View = self._silent
        if choice.kind is Kind.PLAIN:
            self.view = self._plain
        elif choice.kind is Kind.LIVE:
            self.view = self._live_view()

    @property
    def seeds(self) -> SeedReport | None:
        """What became of the seeds, once they are read."""
        return self._crawl.seed_report if self._crawl is not None else None

    async def _silent(self, crawl: RunningCrawl) -> None:
        self._crawl = crawl

    async def _plain(self, crawl: RunningCrawl) -> None:
        self._crawl = crawl
        await watch_plainly(crawl, partial(click.echo, err=self._choice.on_error))

    def _live_view(self) -> View:
        from rich.console import Console  # noqa: PLC0415 - only where there is a terminal

        from .live import RecentUrls, watch_live  # noqa: PLC0415 - as above

        recent = RecentUrls()
        self.listeners.append(recent)
        console = Console(stderr=self._choice.on_error, highlight=False)

        async def live(crawl: RunningCrawl) -> None:
            self._crawl = crawl
            await watch_live(crawl, console, recent, self._title)

        return live


def _order(params: dict[str, Any]) -> Order:
    flags = list(given_flags(params))
    given = {one.key: one.source for one in flags}
    if params["politeness_ms"] is not None:
        _refuse_both("politeness.delay_s", "--politeness-ms", given)
        delay = declarations()["politeness.delay_s"]
        flags.append(given_by_flag(delay, "--politeness-ms", repr(params["politeness_ms"] / 1000)))
    if params["forever"]:
        _refuse_both("limits.max_wait_s", "--forever", given)
        flags.append(Given("limits.max_wait_s", ENDLESS_S, "--forever"))
    return Order(
        seeds=params["seeds"],
        seed_files=params["seed_files"],
        domain_files=params["domain_files"],
        out=params["out"],
        config=params["config"],
        assignments=params["assignments"],
        flags=tuple(flags),
        new_cycle=params["new_cycle"],
        as_json=params["as_json"],
        verbose=params["verbose"],
        quiet=params["quiet"],
        serve_port=params["serve_port"],
        serve_host=params["serve_host"] or "",
        token_file=params["token_file"],
    )


def _refuse_both(key: str, flag: str, given: dict[str, str]) -> None:
    if key in given:
        raise UsageError(f"{given[key]} and {flag} say the same thing twice.", "Give one of them.")


def _choice(order: Order, backend: Backend) -> Choice:
    return choose(
        as_json=order.as_json,
        quiet=order.quiet,
        verbose=bool(order.verbose),
        out_terminal=is_terminal(sys.stdout),
        error_terminal=is_terminal(sys.stderr),
        environ=backend.environ,
    )


def _log(order: Order) -> list[EventSink]:
    write = partial(write_quietly, partial(click.echo, err=True))
    if not order.verbose:
        return [WarningSink(write)]
    from nephila.observe import LogSink  # noqa: PLC0415 - only when asked for

    return [LogSink(write, order.verbose, int(time.time() * 1000))]


def _announce(order: Order, out: Path, configured: Configured, *, going_on: bool) -> None:
    public = bool(order.seed_files or order.domain_files or not order.seeds) or reaches_public(order.seeds)
    for caution in cautions(configured.settings, public=public):
        click.echo(f"Warning: {printable(caution)}", err=True)
    if not order.quiet:
        verb = "Going on with" if going_on else "Crawling into"
        write_quietly(partial(click.echo, err=order.as_json), f"{verb} {printable(str(out))}")


def _conclude(order: Order, summary: CrawlSummary, watch: Watch, environ: Mapping[str, str]) -> None:
    if order.as_json:
        print_json(summary_document(summary, watch.seeds))
    elif not order.quiet:
        print_summary(summary, watch.seeds, environ)
    tell_trouble(summary)


def tell_trouble(summary: CrawlSummary) -> None:
    """What went wrong with the crawl as a whole, on standard error."""
    if summary.failure:
        tell(NephilaError(summary.failure))
    elif (error := shortfall(summary)) is not None:
        tell(error)


def print_summary(summary: CrawlSummary, seeds: SeedReport | None, environ: Mapping[str, str]) -> None:
    """The closing words on standard output; the crawl is over, so a reader who has gone changes nothing."""
    for line in summary_lines(summary, seeds, shutil.get_terminal_size().columns):
        write_quietly(partial(click.echo, color=style_allowed(environ)), line)

"""`nephila sim`: crawls of simulated webs under faults of every kind, each from one number, judged at their end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.model.errors import UsageError

from .backend import backend_of
from .display import is_terminal
from .looking import json_option
from .naming import command_name
from .output import print_json, printable

if TYPE_CHECKING:
    from nephila.testing.sim.campaign import Campaign
    from nephila.testing.sim.runner import Verdict

BROKEN = 1
INTERRUPTED = 130
RUNS = 100
TELL_S = 1.0
LINE_S = 30.0
"""Where nobody watches: a line so often."""


@click.command("sim", short_help="Simulate crawls with faults, and judge them.")
@click.option("--seed", type=click.IntRange(min=0), metavar="K", help="Run this one seed, and report everything.")
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help=f"Run N more seeds.  [{RUNS}]")
@click.option("--from", "start", type=click.IntRange(min=0), metavar="K", help="The first seed.  [0]")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Remember here which seeds were run, and continue after them.",
)
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Report on every seed.")
@click.pass_context
def sim(
    ctx: click.Context,
    *,
    seed: int | None,
    runs: int | None,
    start: int | None,
    state: Path | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Simulate whole crawls in virtual time, with faults of network, disk, clocks and processes.

    Each seed gives a small web, settings and a plan of faults; the same seed does the same thing every time. When its
    last crawl is over, every URL, every byte and every pause between two requests must be accounted for.
    """
    if seed is not None and (runs is not None or start is not None or state is not None):
        raise UsageError("--seed is for one seed alone", "leave --runs, --from and --state away, or --seed")
    teller = _Teller(as_json=as_json, verbose=verbose or seed is not None)
    backend = backend_of(ctx)
    interrupted = False
    try:
        backend.run_simulation(
            state, runs or RUNS if seed is None else 1, seed if seed is not None else start or 0, teller.hear
        )
    except KeyboardInterrupt:
        interrupted = True
    teller.conclude(interrupted=interrupted)
    ctx.exit(INTERRUPTED if interrupted else BROKEN if teller.failed else 0)


class _Teller:
    """Tells how it goes, and what it came to."""

    def __init__(self, *, as_json: bool, verbose: bool) -> None:
        self._as_json = as_json
        self._verbose = verbose
        self._live = is_terminal(sys.stderr) and not verbose
        self._told_at = time.monotonic()
        self._campaign: Campaign | None = None
        self._runs = 0
        self.failed: list[Verdict] = []

    def hear(self, verdict: Verdict, campaign: Campaign) -> None:
        """One seed was lived through."""
        self._campaign = campaign
        self._runs += 1
        if verdict.found:
            self.failed.append(verdict)
            self._wipe()
            _tell_failure(verdict)
        elif self._verbose and not self._as_json:
            _tell_seed(verdict)
        now = time.monotonic()
        if not self._verbose and now - self._told_at > (TELL_S if self._live else LINE_S):
            self._told_at = now
            text = f"{self._runs:,} seeds lived through, {campaign.count:,} in all, {len(self.failed)} failed"
            click.echo(f"\r{text}" if self._live else text, nl=not self._live, err=True)

    def _wipe(self) -> None:
        if self._live:
            click.echo("\r\x1b[K", nl=False, err=True)

    def conclude(self, *, interrupted: bool) -> None:
        """The last word."""
        self._wipe()
        campaign = self._campaign
        if self._as_json:
            told = {} if campaign is None else campaign.to_json()
            seeds = [{"seed": one.seed, "found": one.found, "digest": one.digest} for one in self.failed]
            print_json({"runs": self._runs, "interrupted": interrupted, "broken": seeds, **told})
            return
        if campaign is None:
            click.echo("No seed was lived through.")
            return
        click.echo(
            f"{self._runs:,} seeds lived through, {len(self.failed):,} failed. In all {campaign.count:,} passed: "
            f"{campaign.requests:,} requests, {campaign.pages:,} pages, {campaign.virtual_s / 3600:,.1f} hours of "
            f"virtual time in {campaign.cpu_s:,.0f} s."
        )
        if campaign.happened:
            click.echo("Faults that happened:")
            width = max(map(len, campaign.happened))
            for kind, count in campaign.happened.most_common():
                click.echo(f"  {kind:{width}}  {count:>9,}")
        for verdict in self.failed:
            click.echo(f"Failed: seed {verdict.seed}. Replay it with: {command_name()} sim --seed {verdict.seed}")


def _tell_seed(verdict: Verdict) -> None:
    faults = ", ".join(f"{count} {kind}" for kind, count in verdict.happened.items()) or "no faults"
    click.echo(
        f"seed {verdict.seed}: {verdict.pages} pages, {verdict.requests} requests in {verdict.virtual_s:,.0f} virtual "
        f"seconds, {verdict.cpu_s:.2f} s; {faults}; digest {verdict.digest[:16]}"
    )


def _tell_failure(verdict: Verdict) -> None:
    click.echo(f"seed {verdict.seed} FAILED:", err=True)
    for sentence in verdict.found:
        click.echo(f"  {printable(sentence)}", err=True)
    click.echo(f"  replay it with: {command_name()} sim --seed {verdict.seed}", err=True)

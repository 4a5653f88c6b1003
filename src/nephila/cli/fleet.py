"""`nephila fleet`: who works on a crawl, sending a worker home (N3), and beginning a new cycle (F2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephila.config import Configured, Given, load

from .backend import backend_of
from .figures import clock
from .looking import json_option, print_labelled
from .output import print_json, printable
from .rows import many
from .worker import config_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephila.interfaces.frontier import FrontierSnapshot
    from nephila.node.fleet.cycles import CycleBegun
    from nephila.node.fleet.registry import Left, Roll, Standing

group_option = click.option("--group", metavar="GROUP", help="The group, if it has a region of its own.")


@click.group("fleet", short_help="Show a fleet's workers, drain one, or begin a new cycle.")
def fleet() -> None:
    """Show a fleet's workers, drain one, or begin a new cycle."""


@fleet.command("status", short_help="Show who works on the crawl, and what there is to do.")
@config_option
@group_option
@json_option
@click.pass_context
def status(ctx: click.Context, *, file: Path, group: str | None, as_json: bool) -> None:
    """Show who works on the crawl that FILE describes, and what there is to do."""
    from nephila.node.fleet.run import fleet_standing  # noqa: PLC0415 - start-up

    configured = _configured(ctx, file, group)
    roll, known = fleet_standing(configured)
    silent_ms = configured.settings.fleet.silent_s * 1000
    if as_json:
        print_json(
            {
                "crawl": configured.settings.fleet.crawl,
                "workers": [_document(one, silent_ms) for one in roll.workers],
                "given_up": list(roll.lost),
                "frontier": known,
            }
        )
        return
    print_labelled(fleet_lines(configured.settings.fleet.crawl, roll, known, silent_ms))


@fleet.command("drain", short_help="Have a worker finish what it has begun, and leave.")
@click.argument("name", metavar="WORKER")
@config_option
@group_option
@click.pass_context
def drain(ctx: click.Context, *, name: str, file: Path, group: str | None) -> None:
    """Have WORKER (its name or id) finish and upload what it has, take nothing more, and leave."""
    from nephila.node.fleet.run import drain_worker  # noqa: PLC0415 - start-up

    configured = _configured(ctx, file, group)
    found = drain_worker(configured, name)
    for line in drain_lines(found, configured.settings.fleet.silent_s * 1000):
        click.echo(printable(line))


@fleet.command("forget", short_help="Stop waiting for a worker whose machine is lost.")
@click.argument("name", metavar="WORKER")
@config_option
@group_option
@click.pass_context
def forget(ctx: click.Context, *, name: str, file: Path, group: str | None) -> None:
    """Stop waiting for WORKER, whose machine is lost; what lay in its spool is fetched again."""
    from nephila.node.fleet.run import forget_worker  # noqa: PLC0415 - start-up

    for line in forget_lines(*forget_worker(_configured(ctx, file, group), name)):
        click.echo(printable(line))


@fleet.command("cycle", short_help="Begin a new cycle: fetch everything once more.")
@config_option
@group_option
@click.option("--unfinished", is_flag=True, help="Even if the cycle before has not ended.")
@json_option
@click.pass_context
def cycle(ctx: click.Context, *, file: Path, group: str | None, unfinished: bool, as_json: bool) -> None:
    """Begin a new cycle of the crawl that FILE describes: fetch everything that has ended once more.

    Workers may be running or not: URLs are queued as workers claim. Repeating the command continues the same cycle,
    which lasts until nothing of it is left. A region has its own cycle (--group).
    """
    from nephila.node.fleet.cycles import begin_cycle  # noqa: PLC0415 - start-up

    done = begin_cycle(_configured(ctx, file, group), unfinished=unfinished)
    if as_json:
        known = done.known
        print_json({"crawl": done.crawl, "cycle": known.cycle, "begun": done.begun, "frontier": known})
        return
    for line in cycle_lines(done):
        click.echo(printable(line))


@fleet.command("moved", short_help="Tell the crawl that its catalogue or archive has moved.")
@config_option
@json_option
@click.pass_context
def moved(ctx: click.Context, *, file: Path, as_json: bool) -> None:
    """Tell the crawl that its catalogue and its archive are now where FILE says.

    Workers whose settings disagree with the crawl are refused. Nothing is copied: drain all workers and move the tables
    and the bucket first. This holds for all regions.
    """
    from nephila.node.fleet.agreeing import move_places  # noqa: PLC0415 - start-up

    changed = move_places(_configured(ctx, file, None).settings)
    if as_json:
        names = ("crawl", "what", "before", "now")
        print_json({"changed": [dict(zip(names, one, strict=True)) for one in changed]})
        return
    for crawl, what, before, now in changed:
        click.echo(printable(f"The {what} of {crawl} is kept at {now} from now on (before: {before})."))
    if not changed:
        click.echo("Nothing has changed: the crawl has it as the settings do.")


def _configured(ctx: click.Context, file: Path, group: str | None) -> Configured:
    flags = [] if group is None else [Given("fleet.group", group, "--group")]
    return load(file=file, environ=backend_of(ctx).environ, flags=flags)


def drain_lines(found: Standing, silent_ms: float) -> Iterator[str]:
    """What `fleet drain` says."""
    name = found.member.name
    if found.silent_ms < silent_ms:
        yield f"{name} leaves when it has ended what it works on."
        return
    yield f"{name} was last heard of {clock(found.silent_ms / 1000)} ago: it leaves when it is back."
    yield f"If it will not come back: nephila fleet forget {name}"


def forget_lines(found: Standing, left: Left) -> Iterator[str]:
    """What `fleet forget` says."""
    name = found.member.name
    if left == "spooled":
        yield f"{name} counts as lost; other workers fetch again what it had not uploaded."
        yield "It is on the register until one of them has put that in order."
        return
    yield f"{name} is off the register: no page waits for what it had fetched."
    if left == "uploaded":
        yield "Another worker looks whether all that it had uploaded is listed."


def cycle_lines(done: CycleBegun) -> Iterator[str]:
    """What `fleet cycle` says."""
    known = done.known
    name = f"cycle {known.cycle} of {done.crawl}"
    if done.begun:
        yield f"{name.capitalize()} has begun: everything that has ended is fetched once more."
    else:
        left = "what ended before is still being queued" if known.sweeping else f"{_queued(known)} are queued"
        yield f"{name.capitalize()} was begun before and goes on ({left}); --unfinished begins another all the same."
    if not done.roll.workers:
        yield "No worker is there to do it: start some."
    if done.others:
        flags = ", ".join(f"--group {one}" if one else "no --group" for one in done.others)
        yield f"Other regions have cycles of their own: {flags}."


def _queued(known: FrontierSnapshot) -> str:
    return many(sum(known.queued.values()) + sum(known.delayed.values()), "URL")


def _cycle(known: FrontierSnapshot) -> str:
    """Which one it is, and how far."""
    told = str(known.cycle)
    if known.cycle > 1:
        told += f": {many(known.pages_in_cycle, 'page')} so far"
    return told + ("; what ended before is being queued, as workers claim" if known.sweeping else "")


def fleet_lines(crawl: str, roll: Roll, known: FrontierSnapshot, silent_ms: float) -> Iterator[tuple[str, str]]:
    """What `fleet status` says, by its labels."""
    queued = sum(known.queued.values())
    waiting = sum(known.delayed.values())
    yield "crawl", crawl
    pending = known.states["pending"]
    yield "pages", f"{known.pages:,} stored" + (f"; {many(pending, 'answer')} not yet uploaded" if pending else "")
    yield "cycle", _cycle(known)
    yield "queue", f"{many(queued, 'URL')}, {waiting:,} more wait for a time"
    if known.spilled:
        yield "spilled", f"{known.spilled:,} of the URLs are kept in the database, in {known.chunks:,} chunks"
    yield "hosts", f"{known.hosts:,}: {known.hosts_ready:,} ready, {known.hosts_leased:,} at work"
    yield "workers", str(len(roll.workers)) if roll.workers else "none"
    for one in roll.workers:
        yield f"  {one.member.name}", ", ".join(_said(one, silent_ms))
    if roll.lost:
        runs = many(len(roll.lost), "run")
        yield "lost", f"{runs} of workers that are given up; their pages are being put in order"


def _said(one: Standing, silent_ms: float) -> Iterator[str]:
    figures, silent = one.figures, one.silent_ms >= silent_ms
    if one.is_given_up:
        yield f"given up, last heard of {clock(one.silent_ms / 1000)} ago"
    elif silent:
        yield f"silent for {clock(one.silent_ms / 1000)}"
    elif one.draining:
        yield "leaving"
    else:
        yield "at work" if figures.in_flight else "idle"
    yield many(figures.pages, "page") + ("" if silent else f" ({figures.pages_per_s:.1f}/s)")
    if number := figures.spool_segments:
        yield "1 file waits for its upload" if number == 1 else f"{number:,} files wait for their upload"
    if one.member.group:
        yield f"group {one.member.group}"
    if figures.waits_for and not silent:
        yield figures.waits_for


def _document(one: Standing, silent_ms: float) -> dict[str, object]:
    figures = {name: getattr(one.figures, name) for name in one.figures.__struct_fields__}
    return {
        "name": one.member.name,
        "id": one.member.id,
        "group": one.member.group,
        "version": one.member.version,
        "silent_s": round(one.silent_ms / 1000, 1),
        "away": one.silent_ms >= silent_ms,
        "given_up": one.is_given_up,
        "draining": one.draining,
        **figures,
    }

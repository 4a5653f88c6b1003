"""What there is to type after a crawl, or after a worker of a fleet: commands that can be copied as they stand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary, StoppedBy

from .naming import command_name
from .output import printable

LIMITS: Mapping[StoppedBy, str] = MappingProxyType(
    {
        StoppedBy.MAX_PAGES: "max_pages",
        StoppedBy.MAX_DOMAINS: "max_domains",
        StoppedBy.MAX_BYTES: "max_total_bytes",
        StoppedBy.MAX_TIME: "max_time_s",
    }
)
"""What can stop a crawl, and the setting in `limits` that says so."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the crawl is: how commands are told which one is meant, and what goes on with it."""

    named: str
    """What commands that look at it are given."""
    whole: str
    """What those are given that find a region by a URL."""
    again: str
    """The command that goes on."""
    flush: str
    """The command that uploads what waits in the spool."""
    cycle: str
    """The command that has everything fetched once more."""
    label: str
    """What its directory is."""

    def unlimited(self, stopped_by: StoppedBy) -> str:
        """The command that goes on without the limit that was reached."""
        if self.label == "worker in":
            return f"{self.again} --set limits.{LIMITS[stopped_by]}=0"
        return f"{self.again} --{str(stopped_by).replace('_', '-')} 0"


def directory_place(out: str) -> Place:
    """A crawl in its directory."""
    named = _quoted(out)
    again = f"crawl --out {named}"
    return Place(named, named, again, f"flush {named}", f"{again} --new-cycle", "stored in")


def worker_place(file: str, settings: Settings) -> Place:
    """A fleet's crawl; a worker that is started again in its directory uploads what waits there."""
    fleet = settings.fleet
    whole = f"--config {_quoted(file)}"
    named = whole + (f" --group {_quoted(fleet.group)}" if fleet.group else "")
    again = f"worker {named} --dir {_quoted(fleet.directory)}"
    again += f" --name {_quoted(fleet.worker)}" if fleet.worker else ""
    return Place(named, whole, again, again, f"fleet cycle {named}", "worker in")


def next_steps(summary: CrawlSummary, place: Place) -> Iterator[str]:
    """The lines that tell what to do next."""
    nephila, named = command_name(), place.named
    steps = [("list the pages", f"pages {named}"), ("ask about a URL", f"why {place.whole} URL")]
    if summary.traps:
        steps.insert(0, ("see what was taken for traps", f"traps {named}"))
    if summary.dead:
        steps.insert(0, ("see what was given up", f"dead {named}"))
    if summary.spool is not None and summary.spool.segments:
        steps.insert(0, ("upload what waits", place.flush))
    if summary.stopped_by in LIMITS:
        steps.insert(0, ("go on without the limit", place.unlimited(summary.stopped_by)))
    elif summary.remaining or summary.stopped_by is not StoppedBy.DONE:
        steps.insert(0, ("go on", place.again))
    else:
        steps.append(("crawl it again", place.cycle))
    room = max(len(purpose) for purpose, _ in steps) + 2
    for purpose, command in steps:
        yield f"  {purpose:<{room}}{nephila} {command}"


def _quoted(text: str) -> str:
    return shlex.quote(printable(text))

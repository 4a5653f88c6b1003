"""`nephila policy`: what holds for one registrable domain, by a person's word (R4).

An option that is given changes one thing and leaves the rest as it was; the word ``default`` takes one thing back, and
``--clear`` all of them. Values are read as the settings of the same meaning are, so that ``--delay 500ms`` means here
what it means to `crawl`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from nephila.config import declarations, given_by_flag
from nephila.model.errors import UsageError
from nephila.model.policy import DomainPolicy, Tier
from nephila.model.rendering import RenderMode

from .cautions import CUSTOMARY_DELAY_S
from .figures import span
from .looking import (
    fleet_option,
    json_option,
    operator_of,
    place_argument,
    print_labelled,
    without_directory,
)
from .needs import Operator
from .output import print_json, printable

DEFAULT = "default"
ORDINARY = DomainPolicy()
MOST_QUALITY = 1000.0
_READ_AS: Mapping[str, str] = MappingProxyType(
    {"delay_s": "politeness.delay_s", "max_depth": "limits.max_depth", "recrawl_s": "recrawl.first_s"}
)
"""Which setting says what may be written for a field."""
_HOURS = re.compile(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*")


@click.command("policy", short_help="Show or set a domain's policy: pace, depth, hours, pause.")
@place_argument
@click.argument("domain", required=False, default="")
@fleet_option
@click.option("--delay", "delay_s", metavar="SECONDS", help="Delay between two requests to one of its hosts.")
@click.option("--max-depth", metavar="N", help="Hops from a seed.")
@click.option("--tier", metavar="TIER", help="How much it matters: news, high, normal or low.")
@click.option(
    "--recrawl-every",
    "recrawl_s",
    metavar="SECONDS",
    help="Fixed interval between visits, such as 6h; planned visits move to it.",
)
@click.option("--user-agent", metavar="TEXT", help="The User-Agent to use there.")
@click.option("--hours", metavar="HOURS", help="Hours of the day (UTC) in which it may be asked, such as 22-6,12-14.")
@click.option("--quality", metavar="F", help="Factor on the budget that its hosts earn.")
@click.option("--render", metavar="WHEN", help="Whether its pages go through a browser: auto, always or never.")
@click.option("--pause/--resume", "paused", default=None, help="Ask it nothing until it is resumed.")
@click.option("--clear", is_flag=True, help="Remove the whole policy.")
@json_option
@click.pass_context
def policy(
    ctx: click.Context,
    /,
    directory: Path | None,
    *,
    domain: str,
    file: Path | None,
    clear: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click's parameters
) -> None:
    """Show the policy of DOMAIN in the crawl in DIR, or of all domains that have one; with options, set it.

    What is not set follows the settings of the crawl; the value `default` takes one option back. A running crawl obeys
    from its next claim on. Durations may be written as 90s, 15min, 6h, 2d.
    """
    directory, domain = without_directory(directory, domain, file)
    operator = operator_of(ctx, directory, file)
    changes = {name: value for name, value in given.items() if value is not None}
    if not domain:
        if changes or clear:
            raise UsageError("A domain is missing.", "Write: nephila policy DIR DOMAIN and then the options.")
        _list(operator, as_json=as_json)
        return
    if clear and changes:
        raise UsageError("--clear takes all of it back: nothing else can be set with it.", "Give one of them.")
    name, host = operator.domain_of(domain)
    if host != name:
        click.echo(printable(f"Policies hold for registrable domains: {host} belongs to {name}."), err=True)
    known = operator.policies().get(name)
    if clear or changes:
        wanted = None if clear else changed(known or ORDINARY, changes)
        while not operator.set_policy(name, wanted, known or ORDINARY):
            known = operator.policies().get(name)  # somebody else has just changed it: that holds, too
            wanted = None if clear else changed(known or ORDINARY, changes)
        _warn(wanted, changes)
        known = None if wanted == ORDINARY else wanted
    if as_json:
        print_json({"domain": name, "policy": known, "changed": clear or bool(changes)})
    else:
        print_labelled([("domain", name), *policy_rows(known)])


def changed(known: DomainPolicy, changes: Mapping[str, Any]) -> DomainPolicy:
    """A policy with some of it set anew; UsageError for a value that makes no sense."""
    values: dict[str, Any] = {}
    for name, raw in changes.items():
        if raw == DEFAULT:
            values[name] = getattr(ORDINARY, name)
        elif name in _READ_AS:
            values[name] = given_by_flag(declarations()[_READ_AS[name]], _flag(name), raw).value
        elif name == "tier":
            values[name] = _tier(raw)
        elif name == "hours":
            values[name] = _hours(raw)
        elif name == "render":
            values[name] = _render(raw)
        elif name == "quality":
            values[name] = _quality(raw)
        elif name == "user_agent" and not raw:
            raise UsageError("--user-agent is empty.", "Give a name with a contact, or default for the crawl's own.")
        else:
            values[name] = raw
    return replace(known, **values)


def _flag(name: str) -> str:
    return {"delay_s": "--delay", "recrawl_s": "--recrawl-every"}.get(name, f"--{name.replace('_', '-')}")


def _tier(raw: str) -> Tier:
    try:
        return Tier(raw.lower())
    except ValueError:
        raise UsageError(f"--tier must be one of {', '.join(Tier)}, not {raw!r}.") from None


def _render(raw: str) -> RenderMode:
    try:
        return RenderMode(raw.lower())
    except ValueError:
        raise UsageError(f"--render must be one of {', '.join(RenderMode)}, not {raw!r}.") from None


def _hours(raw: str) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for part in raw.split(","):
        found = _HOURS.fullmatch(part)
        if found is None:
            raise UsageError(
                f"--hours must be spans of whole hours, not {raw!r}.", "Write them like 22-6,12-14, in UTC."
            )
        spans.append((int(found[1]), int(found[2])))
    return tuple(spans)


def _quality(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_QUALITY:
        raise UsageError(f"--quality must be a number from 0 to {MOST_QUALITY:g}, not {raw!r}.", "1 changes nothing.")
    return value


def _warn(wanted: DomainPolicy | None, changes: Mapping[str, Any]) -> None:
    if wanted and "delay_s" in changes and wanted.delay_s is not None and wanted.delay_s < CUSTOMARY_DELAY_S:
        click.echo(
            f"Warning: a delay of {wanted.delay_s:g} s is shorter than the customary {CUSTOMARY_DELAY_S:g} s: "
            "do this with sites of your own only.",
            err=True,
        )


def _list(operator: Operator, *, as_json: bool) -> None:
    known = operator.policies()
    if as_json:
        print_json({"policies": known, "count": len(known)})
        return
    print_labelled(
        (domain, ", ".join(f"{label} {text}" for label, text in policy_rows(one))) for domain, one in known.items()
    )
    if not known:
        click.echo("No domain has a policy: the settings of the crawl hold.", err=True)


def policy_rows(known: DomainPolicy | None) -> Iterator[tuple[str, str]]:
    """Label and text of all that is set."""
    if known is None:
        yield "policy", "none: the settings of the crawl hold"
        return
    if known.paused:
        yield "paused", "nothing is asked of it"
    if known.delay_s is not None:
        yield "delay", span(known.delay_s)
    if known.max_depth is not None:
        yield "depth", f"at most {known.max_depth} hops from a seed"
    if known.tier is not Tier.NORMAL:
        yield "tier", str(known.tier)
    if known.recrawl_s is not None:
        yield "visits", f"every {span(known.recrawl_s)}, of each page from its next visit on"
    if known.hours:
        yield "hours", ", ".join(f"{first}-{last}" for first, last in known.hours) + " UTC"
    if known.quality != ORDINARY.quality:
        yield "quality", f"{known.quality:g}"
    if known.user_agent:
        yield "agent", known.user_agent
    yield from _rendering(known)


def _rendering(known: DomainPolicy) -> Iterator[tuple[str, str]]:
    if known.render is not RenderMode.AUTO:
        yield "render", f"{'every' if known.render is RenderMode.ALWAYS else 'no'} page goes through a browser"

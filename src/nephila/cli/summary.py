"""The closing words of a crawl: what happened and why, what remains, where it is, and how to go on.

`summary_lines` is plain text for any width, on terminals and in pipes alike; headings are bold where a terminal shows
them (click takes the codes out elsewhere). Its figures are those of `crawl --json`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from nephila.model.errors import NephilaError
from nephila.model.summary import CrawlSummary, StoppedBy

from .explanations import ENDINGS, ERRORS, PARKED, REFUSALS, REMEDIES, UNANSWERED, WAITS
from .figures import clock, count, rate, size
from .naming import command_name
from .next_steps import LIMITS, Place, directory_place, next_steps
from .output import printable
from .rows import many, reasons, row, wrapped

if TYPE_CHECKING:
    from nephila.seeds import SeedReport

EXIT_CODES: Mapping[StoppedBy, int] = MappingProxyType(
    {
        StoppedBy.DONE: 0,
        StoppedBy.DRAINED: 0,
        StoppedBy.INTERRUPT: 130,
        StoppedBy.STORAGE: 1,
        StoppedBy.GONE: 1,
        StoppedBy.UNSENT: 1,
    }
    | dict.fromkeys(LIMITS, 3)
)
"""As documented in `nephila crawl --help`."""
SHOWN_SEEDS = 5
NARROWEST = 40


def exit_code(summary: CrawlSummary) -> int:
    """The exit code of a crawl that came to its end by itself, a limit or a signal."""
    return 1 if shortfall(summary) is not None else EXIT_CODES[summary.stopped_by]


def shortfall(summary: CrawlSummary) -> NephilaError | None:
    """What there is to say of a crawl to which not a single server answered; None for any other.

    That is also one which had nobody to ask, because all that is left waits for servers that did not answer before.
    """
    if summary.stopped_by is not StoppedBy.DONE or summary.responses:
        return None
    kinds = {kind: number for kind, number in summary.errors.items() if kind in REMEDIES}
    waiting = {reason: number for reason, number in summary.remaining_by_reason.items() if reason in UNANSWERED}
    if kinds:
        kind = max(kinds, key=lambda one: kinds[one])
        return NephilaError(f"no server answered: {ERRORS[kind]}", f"{REMEDIES[kind]}; {_going_on(summary)}")
    if waiting:
        reason = max(waiting, key=lambda one: waiting[one])
        left = many(sum(waiting.values()), "URL")
        return NephilaError(
            f"nothing was fetched, {left} of servers that did not answer before: {WAITS[reason]}", _going_on(summary)
        )
    if summary.unanswered and not summary.remaining:
        return NephilaError(
            "no server has ever answered in this crawl, and nothing is left to ask for", _going_on(summary)
        )
    return None


def _going_on(summary: CrawlSummary) -> str:
    """What fetches what was not fetched, and when."""
    place = directory_place(summary.out)
    if summary.remaining:
        when = "" if summary.due_in_s is None else f", the next URL in {clock(math.ceil(summary.due_in_s))}"
        return f"the same command goes on{when}"
    if summary.dead:
        return f"`{command_name()} dead {place.named} --retry-all` queues again what was given up"
    return "another --out begins anew, and --new-cycle asks once more in this one, robots.retry_s later"


def summary_document(summary: CrawlSummary, seeds: SeedReport | None) -> dict[str, object]:
    """What `crawl --json` prints: every figure of the summary, what became of the seeds, and the exit code."""
    document: dict[str, object] = {name: getattr(summary, name) for name in CrawlSummary.__slots__}
    document["exit_code"] = exit_code(summary)
    document["seeds"] = seeds
    return document


def summary_lines(
    summary: CrawlSummary, seeds: SeedReport | None, width: int, place: Place | None = None
) -> Iterator[str]:
    """The whole summary, line by line; `place` is where the crawl is, if not in the summary's directory."""
    width, place = max(NARROWEST, width), place or directory_place(summary.out)
    for line in textwrap.wrap(ENDINGS[summary.stopped_by], width, break_on_hyphens=False):
        yield click.style(line, bold=True)
    is_gone = summary.stopped_by is StoppedBy.GONE
    for label, text in (*_facts(summary, seeds), ("was in" if is_gone else place.label, summary.out)):
        yield from row(label, text, width)
        match label:
            case "seeds" if seeds is not None:
                yield from _refused_seeds(seeds, width)
            case "errors":
                yield from reasons(summary.errors, ERRORS, width)
            case "refused":
                yield from reasons(summary.refused, REFUSALS, width)
            case "remaining":
                yield from reasons(summary.remaining_by_reason, WAITS, width)
            case "parked":
                yield from reasons(summary.parked, PARKED, width)
    if not is_gone:  # where it is now nobody knows
        yield ""
        yield from next_steps(summary, place)


def _facts(summary: CrawlSummary, seeds: SeedReport | None) -> Iterator[tuple[str, str]]:
    if seeds is not None:
        yield "seeds", seeds.sentence()
    yield (
        "pages",
        f"{count(summary.pages)} in {clock(summary.seconds)} ({rate(summary.pages_per_s)}), "
        f"{size(summary.bytes)} on the wire"
        + (f"; {count(summary.total_pages)} over all runs" if summary.total_pages != summary.pages else ""),
    )
    yield "from", f"{many(summary.hosts, 'host')} in {many(summary.domains, 'domain')}" + _coverage(summary)
    if summary.responses:
        statuses = ", ".join(f"{status} ({count(number)})" for status, number in sorted(summary.statuses.items()))
        yield (
            "answers",
            f"{count(summary.responses)}, robots.txt included" + (f"; status {statuses}" if statuses else ""),
        )
    if summary.duplicates:
        yield "duplicates", f"{count(summary.duplicates)} had content that was already stored"
    if summary.near_duplicates:
        yield "near", f"{count(summary.near_duplicates)} said nearly what another page had said before"
    if summary.lists:
        brought = f"{many(summary.listed, 'URL')} that no page had led to before"
        yield "sitemaps", f"{count(summary.lists)} read, feeds included: {brought}"
    yield from _rendering(summary)
    if summary.errors:
        yield "errors", count(sum(summary.errors.values()))
    if summary.plugins:
        named = ", ".join(f"{name} ({count(number)})" for name, number in summary.plugins.items())
        yield "plugins", f"failed: {named}; the crawl went on without their answers"
    if summary.refused:
        yield "refused", f"{many(sum(summary.refused.values()), 'URL')} found and not queued"
    yield from _left(summary)
    yield "cost", f"{summary.cpu_s:.1f} s of processor time, {size(summary.peak_rss_bytes)} of memory at most"
    if summary.spool is not None:
        waiting = f"; {summary.spool.words()} wait in the spool" if summary.spool.segments else ""
        yield "archive", f"{summary.spool.place}{waiting}"


def _rendering(summary: CrawlSummary) -> Iterator[tuple[str, str]]:
    """What browsers did, and what they could not (J2)."""
    missed = dict(summary.render_missed)
    needed = missed.pop("no_browser", 0)
    if summary.rendered:
        gained = f"{count(summary.render_gained)} had more to say by it"
        asked = f"{many(summary.visit_parts, 'request')} of their own"
        asked += f", {count(summary.render_resources)} to other hosts" if summary.render_resources else ""
        yield "rendered", f"{many(summary.rendered, 'page')} shown to a browser, {gained}; {asked}"
    if needed:
        how = f"{command_name()} setup browser"
        yield "not rendered", f"{many(needed, 'page')} made by scripts were read as they came: no browser ({how})"
    if missed:
        named = ", ".join(f"{reason} ({count(number)})" for reason, number in sorted(missed.items()))
        yield "not rendered", f"{many(sum(missed.values()), 'page')}: {named}"


def _left(summary: CrawlSummary) -> Iterator[tuple[str, str]]:
    """What is not fetched, and what is to come."""
    if summary.remaining:
        yield "remaining", f"{many(summary.remaining, 'URL')} queued"
    if parked := sum(summary.parked.values()):
        yield "parked", f"{many(parked, 'URL')} known and kept, not queued for now"
    if summary.traps:
        yield "traps", f"{many(summary.traps, 'pattern')} of URLs that bring nothing new: slowed or quarantined"
    if summary.planned:
        yield "planned", f"{many(summary.planned, 'visit')} to pages that were fetched, each at its time"
    if summary.starving:
        yield "starving", f"{many(summary.starving, 'fetch', 'fetches')} went to hosts that had waited too long"
    if summary.dead:
        yield "dead letters", f"{many(summary.dead, 'URL')} given up"


def _coverage(summary: CrawlSummary) -> str:
    """How far coverage has come, where it was asked for (S4)."""
    if not summary.target_domains:
        return ""
    wanted, reached = f"{count(summary.target_domains)} wanted domains reached", summary.total_domains
    return f"; all {wanted}" if reached >= summary.target_domains else f"; {count(reached)} of {wanted}"


def _refused_seeds(seeds: SeedReport, width: int) -> Iterator[str]:
    for refused in seeds.examples[:SHOWN_SEEDS]:
        text = f"{refused.text} ({refused.origin}): {refused.detail}"
        yield from wrapped("    ", printable(text), width)
    unseen = sum(seeds.refused.values()) - len(seeds.examples[:SHOWN_SEEDS])
    if unseen and seeds.examples:
        yield from wrapped("    ", f"and {count(unseen)} more, each an event seed_refused with its line", width)

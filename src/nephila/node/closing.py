"""The last word of a crawl, from its figures and from what the frontier still holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nephila.model.errors import DirectoryGoneError, NephilaError, UnsentError
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy

from .frontiers import NodeFrontier
from .shipping import Shipper


def summary_of(
    snapshot: CrawlSnapshot,
    frontier: NodeFrontier,
    *,
    stopped_by: StoppedBy,
    failure: NephilaError | None,
    out: Path,
    target_domains: int,
    cpu_s: float,
    peak_rss_bytes: int,
) -> CrawlSummary:
    """The summary of a crawl that has ended."""
    known = frontier.snapshot()
    reasons = dict(known.delayed)
    for reason, count in known.waiting_for.items():
        if reason not in known.parked:  # of such a host nothing is queued: it is told among the parked
            reasons[reason] = reasons.get(reason, 0) + count
    remaining = snapshot.queued
    if (others := remaining - sum(reasons.values())) > 0:
        reasons["queued"] = others
    return CrawlSummary(
        pages=snapshot.pages,
        responses=snapshot.responses,
        bytes=snapshot.bytes,
        errors=snapshot.errors,
        hosts=snapshot.hosts,
        domains=snapshot.domains,
        duplicates=snapshot.duplicates,
        refused=snapshot.refused,
        statuses=snapshot.statuses,
        seconds=snapshot.elapsed_s,
        pages_per_s=snapshot.pages / snapshot.elapsed_s if snapshot.elapsed_s else 0.0,
        cpu_s=cpu_s,
        peak_rss_bytes=peak_rss_bytes,
        stopped_by=stopped_by,
        remaining=remaining,
        remaining_by_reason=reasons,
        dead=known.states["dead"],
        out=str(out),
        total_pages=known.pages,
        failure=told(failure),
        parked=known.parked,
        traps=known.traps,
        planned=known.planned,
        starving=known.reserved,
        total_domains=known.domains,
        target_domains=target_domains,
        near_duplicates=snapshot.near_duplicates,
        lists=snapshot.lists,
        listed=snapshot.listed,
        plugins=snapshot.plugins,
        rendered=snapshot.rendered,
        render_gained=snapshot.render_gained,
        visit_parts=snapshot.visit_parts,
        render_resources=snapshot.render_resources,
        render_missed=snapshot.render_missed,
        spool=snapshot.spool,
        due_in_s=None if known.next_in_ms is None else known.next_in_ms / 1000,
        unanswered=bool(known.urls) and not (snapshot.responses or known.pages or frontier.view.marks()),
    )


def ended_by(stopped: StoppedBy | None, shipper: Shipper | None) -> StoppedBy:
    """What ended a crawl that did not fail: one that was done, and interrupted in its last uploads, is interrupted."""
    if (
        shipper is not None
        and shipper.was_cut_short
        and stopped not in {StoppedBy.STORAGE, StoppedBy.GONE, StoppedBy.UNSENT}
    ):
        return StoppedBy.INTERRUPT
    return stopped or StoppedBy.DONE


def stopped_by(error: NephilaError) -> StoppedBy:
    """What ended a crawl that failed with this."""
    if isinstance(error, DirectoryGoneError):
        return StoppedBy.GONE
    return StoppedBy.UNSENT if isinstance(error, UnsentError) else StoppedBy.STORAGE


def cause_of(error: NephilaError, look_at_directory: Callable[[], None]) -> NephilaError:
    """What made it fail: where the crawl directory is gone, that, whatever noticed it first."""
    try:
        look_at_directory()
    except DirectoryGoneError as gone:
        return gone
    return error


def told(error: NephilaError | None) -> str:
    """An error as one line: what is wrong and what to do."""
    if error is None:
        return ""
    parts = (str(error), error.hint[:1].upper() + error.hint[1:])
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)

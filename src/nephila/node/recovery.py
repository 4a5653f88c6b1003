"""Going on after a crash: what lies in the archive is settled from there, not fetched again (DESIGN section 4).

For every segment that an earlier run left open: cut it to its last whole capture; queue again what the frontier takes
to lie past that; look at each capture past the confirmed mark. One whose lease still waits for it is judged anew and
settled; one that is settled already is listed; one that belongs to nobody is disowned. Then the segment is confirmed to
its end, its index written, and the leases of the dead are returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.recrawl import Outlook
from nephila.model.errors import StoreAwayError
from nephila.model.listing import ListKind
from nephila.model.outcome import DeferReason, Done, OriginRules, Release, RulesLearned, RulesMoved
from nephila.model.page import Directives, Page
from nephila.model.record import Capture, Original, SegmentId, StoredCapture
from nephila.model.task import Lease, PageTask, PartTask, RobotsTask
from nephila.pipeline import (
    NOTE_LANGUAGE,
    NOTE_LISTING,
    NOTE_PUT_OFF,
    NOTE_SIMHASH,
    NOTE_TITLE,
    WAIT_MS,
    Beside,
    Judge,
    Judgement,
    Pipeline,
    capture_row,
    extracts_in,
    links_in,
    original_of,
    part_row,
    rendered_view,
    requisites_in,
    robots_row,
    sizes_in,
)
from nephila.store import LocalArchive, SpooledArchive, writer_of
from nephila.urls import Identifier, origin_of

from .bookkeeper import Bookkeeper
from .frontiers import NodeFrontier, embedded_of
from .left_leases import LeftLeases

SIGNALS_REMEMBERED = 10_000
"""Rules whose content signals are at hand while captures are listed: some two megabytes."""
ROWS_AT_ONCE = 5_000
"""Captures that are listed in one transaction when a catalogue is built anew."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found."""

    segments: int = 0
    settled: int = 0
    """Captures that were settled from the archive."""
    listed: int = 0
    orphans: int = 0
    lost: int = 0
    """Pages whose bytes are gone: queued again."""
    reaped: int = 0
    """Hosts that were in flight: each waits a full delay."""

    def and_then(self, found: Recovered) -> Recovered:
        """What was found so far, with what one more segment held."""
        return Recovered(
            self.segments + 1,
            self.settled + found.settled,
            self.listed + found.listed,
            self.orphans + found.orphans,
            self.lost + found.lost,
        )


class Whole(NamedTuple):
    """A file that an earlier run left open, cut to its last whole capture and durable."""

    segment: SegmentId
    kept: int
    """Up to where its captures have rows that are kept beside the catalogue."""
    confirmed: int
    end: int
    """Its length now; 0 when there was nothing whole."""


class Recovery:
    """Brings frontier, archive and catalogue of a crawl directory to the same state."""

    def __init__(
        self,
        frontier: NodeFrontier,
        archive: LocalArchive | SpooledArchive,
        catalogue: Catalogue,
        pipeline: Pipeline,
        judge: Judge,
        identifier: Identifier,
        bookkeeper: Bookkeeper,
        is_visited: Callable[[str], bool] = lambda _host: False,
    ) -> None:
        """`is_visited`: as `LeftLeases`."""
        self._frontier = frontier
        self._archive = archive
        self._catalogue = catalogue
        self._pipeline = pipeline
        self._judge = judge
        self._bookkeeper = bookkeeper
        self._left = LeftLeases(frontier, pipeline, identifier, is_visited)
        self._signals: dict[tuple[str, int], str] = {}
        """Content signals of rules that were met in the archive, by their origin and when they were stored."""

    @property
    def archive(self) -> LocalArchive | SpooledArchive:
        """What it reads."""
        return self._archive

    async def run(self) -> Recovered:
        """Recover every segment that was left open, then return the leases of the dead."""
        marks = self._frontier.view.marks()
        total = Recovered()
        await self._recall_lost()
        for segment in self._frontier.view.pending_segments() - set(self._archive.segments()):
            # The file itself is gone: its name was not durable when the machine went down.
            total = replace(total, lost=total.lost + await self._frontier.lose(segment, 0))
        unfinished = set(self._archive.unfinished())
        for segment in self._archive.segments():
            # A finished segment that the catalogue lacks: the catalogue was moved away, or is from an older copy.
            if segment not in unfinished and await self._listed(segment) >= marks.get(segment, 0):
                continue
            found = await self._segment(segment, marks.get(segment, 0))
            total = total.and_then(found)
        if isinstance(self._archive, SpooledArchive):
            total = await self._list_again(marks, total)
        await self._left.end()
        await self._left.end_visits()
        return replace(total, reaped=await self._frontier.reap_all())

    async def _recall_lost(self) -> None:
        """Bring back what had arrived in the store before the spool was lost, and was not listed and indexed yet."""
        if not isinstance(self._archive, SpooledArchive):
            return
        cut_short = self._frontier.view.pending_segments()
        with suppress(StoreAwayError):  # the shipper tells; what else there is is found at the next start
            cut_short |= await self._archive.without_index()
        for segment in sorted(cut_short - set(self._archive.segments())):
            self._archive.recall(segment)

    async def _list_again(self, marks: Mapping[SegmentId, int], total: Recovered) -> Recovered:
        """Segments in the store of objects that the catalogue lacks, because it was moved away, are read from there."""
        spooled = set(self._archive.segments())
        for segment, mark in sorted(marks.items()):
            if segment not in spooled and await self._listed(segment) < mark:
                total = total.and_then(await self._segment(segment, mark))
        return total

    async def of_writer(self, writer: int) -> Recovered:
        """Recover what one of several processes left, who is surely dead, while the others go on."""
        await embedded_of(self._frontier).catch_up()
        left = [segment for segment in self._archive.unfinished() if writer_of(segment) == writer]
        total = await self._segments(left, self._frontier.view.marks())
        await self._left.end_visits(writer)
        return replace(total, reaped=await embedded_of(self._frontier).reap_holder(writer))

    async def of_spool(self) -> Recovered:
        """Recover what lies in the spool of this worker, whatever else the frontier knows of (N3)."""
        unfinished = self._archive.unfinished()
        return await self._segments(unfinished, self._frontier.view.marks(unfinished))

    async def of_store(self, segment: SegmentId) -> bool:
        """Go through a segment of a worker that is lost, if it had arrived in the store; False where it had not."""
        if not isinstance(self._archive, SpooledArchive):
            return False
        if not await asyncio.to_thread(self._archive.recall, segment):  # others are fetching meanwhile
            return False
        await self._segment(segment, self._frontier.view.marks([segment]).get(segment, 0))
        await self._left.end()
        return True

    def is_under_way(self, segment: SegmentId) -> bool:
        """Whether a segment lies in the spool here, and all that is to be done about it is being done."""
        return isinstance(self._archive, SpooledArchive) and self._archive.is_taken_on(segment)

    async def cut_short(self) -> set[SegmentId]:
        """Segments that are in the store and were not listed and indexed yet, whoever's they are."""
        return await self._archive.without_index() if isinstance(self._archive, SpooledArchive) else set()

    async def settle_again(self, capture: Capture, stored: StoredCapture) -> bool:
        """Settle a capture from the archive, if its lease waits for it."""
        return await self._settle(_as_shown(capture), stored, ends=True)

    def row_of_part(self, capture: Capture, stored: StoredCapture) -> CaptureRow:
        """The row of what a page in a browser asked for: nothing is settled by it."""
        return self._row(capture, stored)

    def make_durable(self, segments: Sequence[SegmentId], marks: Mapping[SegmentId, int]) -> list[Whole]:
        """Cut files that were left open to their last whole captures, and sync them."""
        return [self._whole(segment, marks.get(segment, 0)) for segment in segments]

    async def _segments(self, segments: Sequence[SegmentId], marks: Mapping[SegmentId, int]) -> Recovered:
        """Recover several; all are made durable first, since rows and index of any may be held up."""
        total = Recovered()
        for whole in self.make_durable(segments, marks):
            total = total.and_then(await self._go_through(whole))
        await self._left.end()
        return total

    async def _segment(self, segment: SegmentId, confirmed: int) -> Recovered:
        return await self._go_through(self._whole(segment, confirmed))

    def _whole(self, segment: SegmentId, confirmed: int) -> Whole:
        kept = self._bookkeeper.looked_at(segment)
        confirmed = max(confirmed, kept)
        return Whole(segment, kept, confirmed, self._archive.recover(segment, confirmed))

    async def _go_through(self, whole: Whole) -> Recovered:
        segment, kept, confirmed, end = whole
        lost = await self._frontier.lose(segment, end)
        if end == 0:
            return Recovered(lost=lost)
        orphans = self._frontier.view.orphans(segment)
        start = kept or min(confirmed, await self._listed(segment))
        settled = disowned = listed = 0
        rows: list[CaptureRow] = []
        if isinstance(self._archive, SpooledArchive):
            await self._archive.look(segment)
        for kept_capture, stored in self._archive.tail(segment, start):
            capture = _as_shown(kept_capture)
            if stored.ref.offset in orphans:
                continue
            past = stored.ref.offset >= confirmed
            if past and isinstance(capture.task, PartTask):
                self._left.meet_part(capture)
            if past and await self._settle(capture, stored):
                settled += 1
            elif not past or self._was_settled(capture, stored):
                rows.append(self._row(capture, stored))
                if not past and len(rows) >= ROWS_AT_ONCE:
                    await asyncio.get_running_loop().run_in_executor(None, self._catalogue.record, rows, ())
                    listed += len(rows)
                    rows = []
            else:
                await self._frontier.disown(segment, stored.ref.offset)
                disowned += 1
        rows += self._bookkeeper.take(segment)
        await self._bookkeeper.adopt(segment, end, sorted(rows, key=lambda row: row.offset))
        return Recovered(settled=settled, listed=listed + len(rows) - settled, orphans=disowned, lost=lost)

    async def _listed(self, segment: SegmentId) -> int:
        """Up to where the catalogue has a segment; the loop does not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(None, self._catalogue.upto, segment)

    async def _settle(self, capture: Capture, stored: StoredCapture, *, ends: bool = False) -> bool:
        """Settle a capture whose lease still waits for it; its host rests as the answer asks for.

        Unless the lease `ends` with it, others of the same lease may follow: it ends when all were met.
        """
        lease = self._left.of(capture)
        capture = replace(capture, fetched=replace(capture.fetched, sent_ms=0))  # on a clock that may have begun anew
        match capture.task:
            case RobotsTask() as task:
                if not self._frontier.view.holds(capture.token, None, task.origin):
                    return False
                outcome, release = self._learn(lease, task, capture)
                return await self._pipeline.settle_robots(lease, task, capture.fetched, outcome, stored, release)
            case PageTask() as task:
                if not self._frontier.view.holds(capture.token, task.fingerprint):
                    return False
                known = self._frontier.view.task(lease.host, task.fingerprint) or task
                # It is listed as it was asked for, whatever was found out about its URL since.
                known = replace(known, depth=task.depth, level=task.level, retries=task.retries)
                judged = await self._pipeline.advised(known, capture.fetched, self._rejudge(capture, known, stored))
                rules = self._rules(known)
                release = self._left.rest_after(lease, capture, rules)
                page = lease, known, capture.fetched, judged, stored, rules, release if ends else None
                settled = await self._pipeline.settle_stored(*page)
                if settled and not ends:
                    self._left.settled(capture, release)
                return settled
            case PartTask():
                return False

    def _was_settled(self, capture: Capture, stored: StoredCapture) -> bool:
        """Whether a capture whose lease is gone had been accepted: then the URL's record points at it.

        Only an answer that completes its URL leaves such a pointer. The others (a retry, a respelling, a robots.txt)
        count as accepted: refused ones were disowned when that was found out.
        """
        if not isinstance(capture.task, PageTask):
            return True
        host = self._left.of(capture).host
        story = self._frontier.view.story(host, capture.task.fingerprint)
        if story is None:
            return False
        if not isinstance(self._rejudge(capture, capture.task, stored).ending(stored.ref), Done):
            return True
        return (story.segment, story.offset) == (stored.ref.segment, stored.ref.offset)

    def _row(self, capture: Capture, stored: StoredCapture) -> CaptureRow:
        lease, worker = self._left.of(capture), str(writer_of(stored.ref.segment))
        if isinstance(capture.task, RobotsTask):
            outcome, release = self._learn(lease, capture.task, capture)
            if isinstance(outcome, RulesLearned):
                self._note_signals(lease, outcome.rules)
            delay_ms, text = release.pace.crawl_delay_ms, capture.rules or b""
            return robots_row(
                lease, capture.task, capture.fetched, stored, worker=worker, crawl_delay_ms=delay_ms, text=text
            )
        if isinstance(capture.task, PartTask):
            return part_row(lease.host, lease.domain, capture.task, capture.fetched, stored, worker=worker)
        task = replace(capture.task, via=capture.via)
        judged = self._rejudge(capture, task, stored)
        self._pipeline.remember_again(task, judged)
        beside = Beside(worker, self._signals_of(lease, capture), outlook=self._outlook(lease.host, task, stored))
        return capture_row(lease, task, capture.fetched, judged, stored, beside, judged.sizes)

    def _learn(self, lease: Lease, task: RobotsTask, capture: Capture) -> tuple[RulesLearned | RulesMoved, Release]:
        return self._pipeline.learn(lease, task, capture.fetched, self._frontier.view.rules(task.origin))

    def _note_signals(self, lease: Lease, rules: OriginRules) -> None:
        if len(self._signals) >= SIGNALS_REMEMBERED:
            self._signals.clear()
        self._signals[rules.origin, rules.stored_at] = self._pipeline.signals(lease, rules)

    def _signals_of(self, lease: Lease, capture: Capture) -> str:
        """The signals of the rules that a page was asked under: those that it names are in the archive before it."""
        origin = origin_of(capture.task.url)
        _, _, stored_at = dict(capture.notes).get("robotsRules", "").rpartition(" ")
        told = self._signals.get((origin, int(stored_at))) if stored_at.isdigit() else None
        return self._pipeline.signals(lease, self._frontier.view.rules(origin)) if told is None else told

    def _outlook(self, host: str, task: PageTask, stored: StoredCapture) -> Outlook | None:
        """What was planned with a capture that was settled: known of the last one of its URL."""
        story = self._frontier.view.story(host, task.fingerprint)
        if story is None or (story.segment, story.offset) != (stored.ref.segment, stored.ref.offset):
            return None
        return story.outlook

    def _rejudge(self, capture: Capture, task: PageTask, stored: StoredCapture) -> Judgement:
        """The judgement of a capture that was stored: as it was then, whatever the indexes of contents know now."""
        notes = dict(capture.notes)
        digest, near = bytes.fromhex(notes.get("contentDigest", "")[7:]), original_of(notes)
        gone = notes.get("softNotFound", "")
        if gone and 200 <= capture.fetched.status < 300:  # a redirect has its target in it, and is judged by that
            return replace(self._judge.absent(digest, capture.revisit_of), detail=gone, sizes=sizes_in(capture))
        if NOTE_PUT_OFF in notes:
            return self._judge.put_off(DeferReason.RENDER, WAIT_MS)
        listing = notes.get(NOTE_LISTING)
        if listing and capture.revisit_of is not None and not capture.not_modified:
            judged = self._judge.listed(task, capture.fetched, ListKind(listing), digest, capture.revisit_of)
            return replace(judged, sizes=sizes_in(capture))
        if (capture.revisit_of is not None and not capture.not_modified) or capture.body_left_out:
            # There are no bytes of its own: its links and directives were written down beside it.
            page = _remembered_page(capture)
            judged = self._judge.known(task, capture.fetched, page, digest, capture.revisit_of, near)
            return replace(judged, sizes=sizes_in(capture))
        judged = self._judge.judge_again(task, capture.fetched, near, extracts_in(capture))
        own = judged.original is not None and judged.original.record_id == stored.record_id
        original = None if own else judged.original
        if original is None and (told := notes.get("duplicateOf")):
            # Stored whole, because its original was not durable yet or came in another coding.
            original = Original(told, "", 0, "", "")
        # A 304 whose original was not known is stored as a response, and has changed nothing all the same.
        return replace(judged, original=original, not_modified=judged.not_modified or capture.not_modified)

    def _rules(self, task: PageTask) -> OriginRules | None:
        return self._frontier.view.rules(origin_of(task.url))


def _remembered_page(capture: Capture) -> Page:
    """The page of a capture that has no body, as far as it was written down."""
    notes = dict(capture.notes)
    flags = notes.get("directives", "").split()
    directives = Directives("nofollow" in flags, "noindex" in flags, "noarchive" in flags)
    url = capture.task.url
    simhash = int(notes.get(NOTE_SIMHASH, "0"), 16)
    title, language = notes.get(NOTE_TITLE, ""), notes.get(NOTE_LANGUAGE, "")
    canonical = notes.get("canonical", "")
    links, requisites = links_in(capture), requisites_in(capture)
    return Page(url, url, "", title, links, directives, canonical, language, simhash=simhash, requisites=requisites)


def _as_shown(capture: Capture) -> Capture:
    """A capture as it was judged: one that a browser had shown, by what that made of it (J4)."""
    if capture.rendered is None:
        return capture
    return replace(capture, fetched=rendered_view(capture.fetched, capture.rendered))

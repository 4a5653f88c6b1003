"""The sentence: a leased task is fetched, parsed, judged, stored and settled.

One `work` call is one lease. Its order is the order of durability (DESIGN section 4): the lease was durable before it
came here; the record is appended before the task is settled; links travel with the settle; the bytes become durable a
moment later, and only then is the page completed. Wherever this is cut short, the worst that happens is that one page
is fetched again, or settled from the archive when the crawl goes on.

The web misbehaving arrives here as values. Whatever is raised is ours: the disk's errors and a lack of memory end the
crawl, anything else is a bug, caught in this one place, told, and paid for with one lease.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from nephila.model.errors import FrontierError, MemoryShortageError, StorageError
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.record import Original, StoredCapture
from nephila.model.rendering import Rendered, Sign
from nephila.model.task import Candidate, Lease, Pace, PageTask, RobotsTask, Task
from nephila.urls import origin_of

from .capturing import Found, capture_of
from .deferral import deferral, is_put_off, until_its_turn
from .extending import advice_on, answer_told, extracts_of, hand_on, sifted_by
from .judgement import Extracts, Judgement
from .listing import capture_row
from .narration import Narrator
from .notfound import PROBE, SOFT_404
from .parts import Conduct, CrawledPage, Stages
from .rendering import NOTE_PUT_OFF, WAIT_MS, RenderClause, notes_of_showing, rendered_view, targets_of
from .robots import RobotsClause
from .rules_at_hand import RulesAtHand
from .under_way import UnderWay
from .visit import Grounds, Visit

T = TypeVar("T")

HOLD_MS = 50
"""A host that must rest longer than this is given back between two tasks of a lease: the store keeps the time."""

BUG_WAIT_MS = 300_000
"""How long a host waits whose robots.txt we broke on."""

LARGE_BYTES = 2_000_000
"""A body of this size is hashed and made into records in threads: together some thirty milliseconds."""


class Pipeline:
    """Works off leases. Holds no state of its own but whether it is stopping."""

    def __init__(self, stages: Stages, conduct: Conduct) -> None:
        self._to = stages
        self._conduct = conduct
        self._narrator = Narrator(stages.events, stages.ledger, stages.clock)
        self._robots = RobotsClause(stages, conduct, self._narrator)
        self._rules = RulesAtHand(stages.view)
        self.stopping = False
        self.sending: set[asyncio.Task[None]] = set()
        """Tasks that wait for their turn or for an answer: they may be cancelled without leaving anything half done."""

    async def work(self, lease: Lease) -> None:
        """Do the tasks of a lease, one after the other, and end it whatever happens."""
        under_way = UnderWay(lease.pace, lease.not_before)
        try:
            try:
                await self._work(lease, under_way)
            except asyncio.CancelledError:
                await self._give_back(lease, under_way)
                if not self.stopping:
                    raise
            except (StorageError, FrontierError):
                raise
            except MemoryError as error:  # nobody's bug: the lease is left as a kill would leave it
                raise MemoryShortageError from error
            except Exception as error:  # noqa: BLE001 - the one catch-all: a bug costs one task, not the crawl
                self._narrator.bug(lease, error)
                await self._give_up(lease, under_way, error)
            if under_way.visit is not None:
                under_way.visit.book()
        except (StorageError, FrontierError, MemoryShortageError) as error:
            self._conduct.fatal(error)

    async def _work(self, lease: Lease, under_way: UnderWay) -> None:
        rules = self._rules.of(lease)
        for attempt, task in enumerate(lease.tasks):
            last = attempt == len(lease.tasks) - 1
            under_way.task = task
            if isinstance(task, PageTask):
                verdict, links = self._unsendable(task, rules, lease.user_agent)
                if verdict is None and self._to.extensions is not None:
                    verdict = await self._interruptibly(self._objection(lease, under_way, task))
                if verdict is not None:
                    rest = under_way.unsent(self._conduct.now()) if last else None
                    await self._settle(lease, task, verdict, rest, links=links)
                    continue
                if self._to.shared is not None and task.digest:  # whether it can be asked for conditionally
                    await self._to.shared.ask(task.digest)
            if not await self._interruptibly(self._turn(lease, under_way.not_before)):
                await self._give_back(lease, under_way)
                return
            if isinstance(task, RobotsTask):
                await self._do_robots(lease, under_way, task)
                return
            if not self._conduct.allowance.take():
                await self._give_back(lease, under_way)
                return
            try:
                release = await self._do_page(lease, under_way, task, attempt, rules)
            finally:
                self._conduct.allowance.give()
            if release is None:
                return
            under_way.rest(release.pace, self._conduct.now() + release.wait_ms + (release.wait_ms > 0))

    async def _do_robots(self, lease: Lease, under_way: UnderWay, task: RobotsTask) -> None:
        """One robots.txt; the lease ends with it."""
        under_way.ask(self._to.clock.steady_ms())
        answer = await self._interruptibly(self._robots.fetch(lease, task))
        under_way.answer = answer
        if is_put_off(answer):
            await self._put_off(lease, under_way, task, answer)
        else:
            await self._robots.conclude(lease, task, answer)

    async def _do_page(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, rules: OriginRules | None
    ) -> Release | None:
        """One page; how the host rests until the next task of the lease, None when the lease has ended."""
        lists, request, rendering = self._to.lists, self._request(lease, task, rules), self._to.rendering
        if rendering is not None and rendering.expects(lease):
            if not rendering.enter():  # browsers are few: so many pages on their way to them, or they all wait
                await self._put_off(lease, under_way, task, rendering.no_place(task), DeferReason.RENDER)
                return None
            try:
                return await self._ask(lease, under_way, task, attempt, rules, request, placed=True)
            finally:
                rendering.leave()
        if lists is None or request.max_body_bytes is None:
            return await self._ask(lease, under_way, task, attempt, rules, request)
        if not lists.enter():  # a list may be large, and takes its time: so many at once, or memory has no bound
            await self._put_off(lease, under_way, task, lists.no_place(task))
            return None
        try:
            return await self._ask(lease, under_way, task, attempt, rules, request)
        finally:
            lists.leave()

    async def _ask(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        rules: OriginRules | None,
        request: FetchRequest,
        *,
        placed: bool = False,
    ) -> Release | None:
        """`placed`: the page has a place in the line to the browsers."""
        under_way.ask(self._to.clock.steady_ms())
        if under_way.headers:
            request = replace(request, headers=(*request.headers, *under_way.headers))
        answer = await self._interruptibly(self._to.fetcher.fetch(request))
        under_way.answer = answer
        if is_put_off(answer):
            await self._put_off(lease, under_way, task, answer)
            return None
        told = None if self._to.extensions is None else answer_told(task, lease, answer)
        found = None
        if isinstance(answer, Fetched):
            found = await self._find(lease, under_way, task, attempt, answer, rules, placed=placed)
        visit = under_way.visit
        release = self._rest(under_way.pace, answer, rules, lease) if visit is None else visit.release
        ends = attempt == len(lease.tasks) - 1 or self.stopping or release.wait_ms > HOLD_MS
        left = release if ends else None
        if found is not None:
            concluding = self._conclude(lease, task, attempt, found, rules, left)
        else:
            concluding = self._fail(lease, task, answer, left)
        del answer, found  # see `settle_stored`
        await concluding
        if visit is not None:
            visit.book()
        if self._to.extensions is not None and told is not None:
            await self._to.extensions.after(told)
        return None if ends else release

    async def _interruptibly(self, doing: Awaitable[T]) -> T:
        """Await something that a stop may cut off."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("work runs in a task")
        self.sending.add(task)
        try:
            return await doing
        finally:
            self.sending.discard(task)

    async def _turn(self, lease: Lease, not_before: int) -> bool:
        """Wait until the host may be asked; False when we must not send any more."""
        wait = not_before - self._conduct.now()
        while wait > 0 and not self.stopping:
            await asyncio.sleep(min(wait, 500) / 1000)
            wait = not_before - self._conduct.now()
        # A worker that was stopped and resumed, or merely slow, must not send on a lease that may be reaped under it.
        return not self.stopping and self._conduct.now() + self._conduct.fetch_limit_ms < self._conduct.expires_at(
            lease
        )

    def _unsendable(
        self, task: PageTask, rules: OriginRules | None, user_agent: str
    ) -> tuple[Outcome | None, Sequence[Candidate]]:
        """How a task ends that is not sent, and what is asked for in its place; None when it is to be sent."""
        verdict = self._forbidden(task, rules, user_agent)
        instead = self._to.judge.instead_of(task) if verdict is None else None
        return (verdict, ()) if instead is None else (instead[1], (instead[0],))

    def _forbidden(self, task: PageTask, rules: OriginRules | None, user_agent: str) -> Outcome | None:
        """How a task ends that may not be sent at all; None when it may."""
        if rules is None:
            return None
        if rules.kind is RulesKind.NO_HOST:
            if rules.detail.startswith(FailureKind.ADDRESS):
                return Dropped("address", rules.detail)
            return Dead(FailureKind.NO_SUCH_NAME, rules.detail)
        permission = self._to.politeness.permits(rules, task.url, user_agent)
        if permission.allowed:
            return None
        return Dropped("robots", f"line {permission.line} of {rules.origin}/robots.txt: {permission.rule}")

    def _request(self, lease: Lease, task: PageTask, rules: OriginRules | None) -> FetchRequest:
        headers, lists = self._conditions(task), self._to.lists
        if lists is None:
            return FetchRequest(task.url, headers, self._conduct.types, user_agent=lease.user_agent)
        return replace(lists.lists.request(task, rules), headers=headers, user_agent=lease.user_agent)

    async def _objection(self, lease: Lease, under_way: UnderWay, task: PageTask) -> Outcome | None:
        """How a task ends that a plugin does not let go; None when it may, with the headers that are added to it."""
        if self._to.extensions is None:
            return None
        advice = await advice_on(self._to.extensions, lease, task, conditional=bool(self._conditions(task)))
        if isinstance(advice, Dropped):
            return advice
        under_way.headers = advice.headers
        return None

    def _conditions(self, task: PageTask) -> tuple[tuple[str, str], ...]:
        """The headers of a conditional request (H3); none where a 304 would prove nothing, or have no body to show."""
        if task.verify or not task.validators or not task.digest or self._to.duplicates.find(task.digest) is None:
            return ()
        named = (("If-None-Match", task.validators.etag), ("If-Modified-Since", task.validators.last_modified))
        return tuple((name, value) for name, value in named if value)

    async def _fail(self, lease: Lease, task: PageTask, answer: Answer, release: Release | None) -> None:
        """Settle a task that got no answer."""
        if not isinstance(answer, FetchFailed):
            raise TypeError("an answer is concluded, not failed")
        outcome = self._to.judge.failed(task, answer)
        final = task.depth == 0 and not isinstance(outcome, Retry | Deferred)
        links = self._conduct.twins(origin_of(task.url), answer.kind) if final else ()
        await self._settle(lease, task, outcome, release, answer, links)

    async def _find(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        answer: Fetched,
        rules: OriginRules | None,
        *,
        placed: bool,
    ) -> Found:
        """Judge an answer, as a browser shows it where its scripts make it."""
        if self._to.lists is not None:
            answer = self._to.lists.lists.sorted_out(answer, self._conduct.wanted)
        found = Found(answer, answer, await self._judged(task, answer))
        rendering = self._to.rendering
        if rendering is None:
            return found
        sign = rendering.sign(lease, answer, found.judged.page)
        if sign is None or found.judged.error:
            return found
        if rendering.renderer is None:
            rendering.tell_wanted(lease, task, sign)
            return found
        if self.stopping or not (placed or rendering.enter()):
            rendering.put_off(lease)
            judged = self._to.judge.put_off(DeferReason.RENDER, WAIT_MS)
            return Found(answer, answer, judged, notes=((NOTE_PUT_OFF, "no place"),))
        try:
            return await self._show(rendering, lease, under_way, task, attempt, found, rules, sign)
        finally:
            if not placed:
                rendering.leave()

    async def _show(
        self,
        rendering: RenderClause,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        found: Found,
        rules: OriginRules | None,
        sign: Sign,
    ) -> Found:
        """Show a page to a browser, and judge what that makes of it."""
        answer = found.answer
        grounds = Grounds(self._to, self._conduct, rendering.settings, rendering.cache, lambda: self.stopping)
        visit = under_way.visit = Visit(grounds, lease, task, attempt, rules, answer)
        shown = await self._interruptibly(rendering.show(visit, lease, answer))
        after = replace(found, notes=tuple(notes_of_showing(shown)), visit=visit.counts)
        if isinstance(shown.rendered, Rendered):
            view = rendered_view(answer, shown.rendered.html)
            judged = await self._judged(task, view, targets_of(shown.rendered))
            kept = shown.rendered.html if judged.body_kept else None
            after = replace(after, view=view, judged=judged, rendered=kept)
        rendering.learn(lease, task, sign, shown, (found.judged.page, after.judged.page))
        return after

    async def _judged(self, task: PageTask, answer: Fetched, targets: Extracts = ()) -> Judgement:
        large = len(answer.body) >= LARGE_BYTES
        digest = await asyncio.get_running_loop().run_in_executor(None, _digest, answer.body) if large else b""
        if self._to.shared is not None and answer.body:
            digest = digest or _digest(answer.body)
            await self._to.shared.ask(digest)
        if self._to.extensions is None:
            return self._to.judge.judge(task, answer, digest, targets)
        extracts = [*await extracts_of(self._to.extensions, answer), *targets]
        return await self.advised(task, answer, self._to.judge.judge(task, answer, digest, extracts))

    async def _conclude(
        self,
        lease: Lease,
        task: PageTask,
        attempt: int,
        found: Found,
        rules: OriginRules | None,
        release: Release | None,
    ) -> None:
        """Store and settle what was judged."""
        capture = capture_of(lease, task, attempt, found, rules)
        large = len(found.answer.body) >= LARGE_BYTES
        loop = asyncio.get_running_loop()
        encoded = await loop.run_in_executor(None, self._to.archive.encode, capture) if large else None
        stored = self._to.archive.append(capture, encoded)
        settling = self.settle_stored(lease, task, found.view, found.judged, stored, rules, release, found.visit)
        del found, capture, encoded  # see there
        await settling

    async def settle_stored(
        self,
        lease: Lease,
        task: PageTask,
        answer: Fetched,
        judged: Judgement,
        stored: StoredCapture,
        rules: OriginRules | None,
        release: Release | None,
        visit: tuple[tuple[str, int], ...] = (),
    ) -> bool:
        """Settle a capture that lies in the archive, now or since before a crash; whether that was accepted.

        What was fetched is let go before anything is waited for, unless somebody is to be given the page: it may be
        unpacked to fifty megabytes, and hundreds may wait here at once (Q5).
        """
        ledger, ref = self._to.ledger, stored.ref
        ledger.appended(ref.segment, ref.offset)
        if judged.listing is not None and self._to.lists is not None:
            taken = await self._to.lists.take(lease, task, answer, judged.listing, lambda: self.stopping)
            if not taken:  # we are to stop, and what it names would take long: it is read anew when the crawl goes on
                ledger.settled(ref.segment, ref.offset, None)
                await self._to.frontier.settle(lease.token, [], release)
                return False
        if judged.digest and judged.original is None and judged.body_kept:
            original = Original(task.url, stored.record_id, stored.at, stored.payload_digest, stored.coding)
            ledger.first_of_its_kind(ref.segment, ref.offset, judged.digest, original)
        remembered = self._to.near.remember(judged.likeness, task.url)
        outcome = judged.ending(ref)
        row = capture_row(
            lease,
            task,
            answer,
            judged,
            stored,
            signals=self._to.politeness.signals(rules, lease.user_agent),
            wall_offset=self._wall_offset(),
        )
        if self._conduct.deliver is None and (self._to.extensions is None or not self._to.extensions.wants_bodies):
            answer = answer.without_content()
        if self._to.lists is not None and isinstance(outcome, Done) and outcome.page:
            expected_s = self._to.lists.expected_s(lease.host, task.fingerprint)
            outcome = replace(outcome, expected_s=expected_s) if expected_s else outcome
        settlement = Settlement(task, outcome, judged.sifted.candidates, judged.sifted.refused)
        try:
            settled = await self._to.frontier.settle(lease.token, [settlement], release)
        except Exception:
            # It is nobody's: it must not hold up what comes after it, and nothing may refer to it.
            ledger.settled(ref.segment, ref.offset, None)
            self._to.duplicates.forget(judged.digest, stored.record_id)
            self._to.near.forget(remembered, task.url)
            raise
        ledger.settled(ref.segment, ref.offset, row if settled.accepted else None)
        if not settled.accepted and judged.digest:
            self._to.duplicates.forget(judged.digest, stored.record_id)
            self._to.near.forget(remembered, task.url)
        if settled.accepted and judged.sifted.refused:
            judged = replace(judged, sifted=replace(judged.sifted, refused=self._conduct.noted(judged.sifted.refused)))
        self._narrator.answer(lease, task, answer, row.wire_bytes, judged, settled, outcome, visit)
        if settled.accepted:
            self._learn(lease, task, answer, judged, outcome)
            await self._hand_on(task, answer, judged)
        return settled.accepted

    def _learn(self, lease: Lease, task: PageTask, answer: Fetched, judged: Judgement, outcome: Outcome) -> None:
        """What an answer that counts says of its site."""
        if self._to.learning is not None:
            self._to.learning.learn(lease, task, answer, judged, outcome)
        if self._to.lists is not None and isinstance(outcome, Done) and outcome.page:
            same = judged.not_modified or (bool(judged.digest) and judged.digest == task.digest)
            self._to.lists.visited(lease, task, outcome.text or judged.digest[:8], same=same)

    async def _hand_on(self, task: PageTask, answer: Fetched, judged: Judgement) -> None:
        """Give a page to those who wait for it: the caller of the library, and plugins."""
        if judged.error in {SOFT_404, PROBE} or judged.listing is not None:
            return
        if self._conduct.deliver is not None and 200 <= answer.status < 300:
            original_url = judged.original.url if judged.original else ""
            near_url = judged.near.url if judged.near else ""
            await self._conduct.deliver(CrawledPage(task, answer, judged.page, original_url, near_url))
        if self._to.extensions is not None:
            await hand_on(self._to.extensions, task, answer, judged)

    # What recovery needs, too

    async def advised(self, task: PageTask, answer: Fetched, judged: Judgement) -> Judgement:
        """A judgement with the links that plugins leave of it."""
        return judged if self._to.extensions is None else await sifted_by(self._to.extensions, task, answer, judged)

    def learn(self, lease: Lease, task: RobotsTask, answer: Answer) -> tuple[RulesLearned | RulesMoved, Release]:
        """What an answer to a robots.txt request comes to, and how long the host that was asked rests."""
        return self._robots.learn(lease, task, answer)

    async def settle_robots(
        self,
        lease: Lease,
        task: RobotsTask,
        answer: Fetched,
        outcome: RulesLearned | RulesMoved,
        stored: StoredCapture,
        release: Release | None,
    ) -> bool:
        """Settle a robots.txt that lies in the archive; whether that was accepted."""
        return await self._robots.settle_stored(lease, task, answer, outcome, stored, release)

    def remember_again(self, task: PageTask, judged: Judgement) -> None:
        """Know a page that was settled before a crash: whether the index of near-duplicates does is not certain."""
        self._to.near.remember(judged.likeness, task.url)

    def rest_after(self, lease: Lease, answer: Answer | None, rules: OriginRules | None) -> Release:
        """How long a host rests after an answer under these rules; None for one that nobody has."""
        return self._rest(lease.pace, answer, rules, lease)

    def _rest(self, pace: Pace, answer: Answer | None, rules: OriginRules | None, lease: Lease) -> Release:
        return self._to.politeness.release(pace, answer, rules, self._to.clock.wall_ms(), lease.user_agent)

    def _wall_offset(self) -> int:
        return self._to.clock.wall_ms() - self._conduct.now()

    # Settling without a capture

    async def _settle(
        self,
        lease: Lease,
        task: PageTask,
        outcome: Outcome,
        release: Release | None,
        answer: FetchFailed | None = None,
        links: Sequence[Candidate] = (),
    ) -> None:
        settled = await self._to.frontier.settle(lease.token, [Settlement(task, outcome, links)], release)
        if not settled.accepted:
            self._narrator.late(lease, task, answer)
            return
        self._narrator.ending(lease, task, outcome, answer)

    async def _give_back(self, lease: Lease, under_way: UnderWay) -> None:
        """Return what is left of a lease; the host rests as long as it must."""
        self._tell_broken_off(lease, under_way)
        await self._to.frontier.settle(lease.token, [], under_way.unsent(self._conduct.now()))

    async def _put_off(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: Task,
        answer: FetchFailed,
        reason: DeferReason = DeferReason.ADDRESS,
    ) -> None:
        """Give the host back until its turn at its address: nothing was sent, nothing is used up (P2)."""
        under_way.sent = False
        release = until_its_turn(under_way.unsent(self._conduct.now()), answer, reason)
        settled = await self._to.frontier.settle(lease.token, [], release)
        if settled.accepted:
            self._to.events.emit(deferral(lease, task, release, self._to.clock.wall_ms()))

    async def _give_up(self, lease: Lease, under_way: UnderWay, error: Exception) -> None:
        """End a lease on which we broke: its page is given up, a robots.txt waits before it is tried again."""
        self._tell_broken_off(lease, under_way)
        release = under_way.unsent(self._conduct.now())
        settlements: list[Settlement] = []
        if isinstance(under_way.task, PageTask):
            settlements.append(Settlement(under_way.task, Dead("bug", f"{type(error).__name__}: {error}")))
        elif isinstance(under_way.task, RobotsTask):
            release = replace(release, wait_ms=max(release.wait_ms, BUG_WAIT_MS), reason=DeferReason.ROBOTS)
        settled = await self._to.frontier.settle(lease.token, settlements, release)
        if not settled.accepted:  # the task was settled already, or the lease is lost
            await self._to.frontier.settle(lease.token, [], release)

    def _tell_broken_off(self, lease: Lease, under_way: UnderWay) -> None:
        """A request that may have left is told of, whatever became of it (K1)."""
        if under_way.sent and under_way.task is not None:
            visit = () if under_way.visit is None else under_way.visit.counts
            self._narrator.broken_off(lease, under_way.task, under_way.sent_ms, under_way.answer, visit)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()

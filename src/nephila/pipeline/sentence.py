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
from collections.abc import Awaitable, Sequence
from dataclasses import replace

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
from nephila.model.settings import RenderSettings
from nephila.model.task import Candidate, Lease, PageTask, RobotsTask
from nephila.urls import origin_of

from .capturing import Found, capture_of
from .deferral import is_put_off
from .extending import advice_on, answer_told, hand_on
from .holding import Waiting
from .judgement import Judgement
from .listing import capture_row
from .narration import trace_of
from .notfound import PROBE, SOFT_404
from .parts import Conduct, CrawledPage, Stages
from .rendering import RenderClause
from .resource import ResourceClause
from .resources import is_resource
from .robots import RobotsClause
from .rules_at_hand import RulesAtHand
from .showing import LARGE_BYTES, Showing
from .under_way import UnderWay

BUG_WAIT_MS = 300_000
"""How long a host waits whose robots.txt we broke on."""


_Unsent = tuple[Outcome | None, Sequence[Candidate]]
"""How a task ends that is not sent, None where it is; and what is asked for in its place."""


class Pipeline(Showing):
    """Works off leases."""

    def __init__(self, stages: Stages, conduct: Conduct) -> None:
        super().__init__(stages, conduct)
        self._robots = RobotsClause(stages, conduct, self._narrator)
        self._rules = RulesAtHand(stages.view)
        self._resources = resources_of(stages, conduct)

    async def work(self, lease: Lease) -> None:
        """Do the tasks of a lease, one after the other, and end it whatever happens."""
        worker = asyncio.current_task()
        if worker is None:
            raise RuntimeError("work runs in a task")
        under_way = UnderWay(worker, lease.pace, lease.not_before)
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
            under_way.task = task
            if isinstance(task, PageTask):
                if is_resource(task):
                    if not await self._do_resource(lease, under_way, task, attempt, rules):
                        return
                    continue
                ending = self._unsendable(task, rules, lease.user_agent)
                asked = ending[0] is not None or not self._judges_alone
                if asked and await self._ends_unsent(lease, under_way, task, attempt, ending):
                    continue
            if not await self._has_turn(lease, under_way):
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

    async def _ends_unsent(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, ending: _Unsent
    ) -> bool:
        """Settle a page that is not to be sent, because of how it ends or of what others say; False when it is."""
        verdict, links = ending
        if verdict is None and self._to.extensions is not None:
            verdict = await self._interruptibly(under_way, self._objection(lease, under_way, task))
        if verdict is None:
            if self._to.shared is not None and task.digest:  # whether it can be asked for conditionally
                await self._to.shared.ask(task.digest)
            return False
        rest = under_way.unsent(self._conduct.now()) if attempt == len(lease.tasks) - 1 else None
        await self._settle(lease, task, verdict, rest, links=links)
        return True

    async def _do_robots(self, lease: Lease, under_way: UnderWay, task: RobotsTask) -> None:
        """One robots.txt; the lease ends with it."""
        under_way.ask(self._to.clock.steady_ms())
        answer = await self._interruptibly(under_way, self._robots.fetch(lease, task))
        under_way.answer = trace_of(answer)
        if is_put_off(answer):
            await self._put_off(lease, under_way, task, answer)
        else:
            await self._robots.conclude(lease, task, answer)

    async def _do_resource(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, rules: OriginRules | None
    ) -> bool:
        """Something that pages in browsers wait for (J3); False when the lease has ended with it."""
        verdict = await self._resources.objection(lease, task, rules)
        if verdict is not None:
            ends = attempt == len(lease.tasks) - 1
            rest = under_way.unsent(self._conduct.now()) if ends else None
            await self._to.frontier.settle(lease.token, [Settlement(task, verdict)], rest)
            return not ends
        if not await self._has_turn(lease, under_way):
            await self._give_back(lease, under_way)
            return False
        under_way.ask(self._to.clock.steady_ms())
        answer = await self._interruptibly(under_way, self._resources.fetch(lease, task))
        under_way.answer = trace_of(answer)
        if is_put_off(answer):
            await self._put_off(lease, under_way, task, answer)
            return False
        release = self._rest(under_way.pace, answer, rules, lease)
        ends = self._ends(lease, attempt, release)
        await self._resources.conclude(lease, task, attempt, answer, rules, release if ends else None)
        under_way.rest(release.pace, self._conduct.now() + release.wait_ms + (release.wait_ms > 0))
        return not ends

    async def _do_page(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, rules: OriginRules | None
    ) -> Release | None:
        """One page; how the host rests until the next task of the lease, None when the lease has ended."""
        lists, request, rendering = self._to.lists, self._request(lease, task, rules), self._to.rendering
        if rendering is not None and rendering.may_show(lease):
            return await self._do_shown(rendering, lease, under_way, task, attempt, rules, request)
        if lists is None or request.max_body_bytes is None:
            return await self._ask(lease, under_way, task, attempt, rules, request)
        if not lists.enter():  # a list may be large, and takes its time: so many at once, or memory has no bound
            await self._put_off(lease, under_way, task, lists.no_place(task))
            return None
        try:
            return await self._ask(lease, under_way, task, attempt, rules, request)
        finally:
            lists.leave()

    async def _do_shown(
        self,
        rendering: RenderClause,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        rules: OriginRules | None,
        request: FetchRequest,
    ) -> Release | None:
        """One page that is likely to need a browser, or has waited for what it needs."""
        holding = rendering.holding
        held = None if holding is None else await holding.find(task)
        if holding is not None and held is not None and (wait_ms := await holding.look(task, held)):
            return await self._wait_on(lease, under_way, task, attempt, wait_ms)
        if not rendering.enter():  # browsers are few: so many pages on their way to them, or they all wait
            await self._put_off(lease, under_way, task, rendering.no_place(task), DeferReason.RENDER)
            return None
        try:
            if held is None:
                return await self._ask(lease, under_way, task, attempt, rules, request, placed=True)
            under_way.show_again(held)
            del held  # a large page need not be in memory until it is settled
            return await self._show_again(lease, under_way, task, attempt, rules)
        finally:
            rendering.leave()

    async def _show_again(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        rules: OriginRules | None,
    ) -> Release | None:
        """Show a page that has waited for other hosts, from the answer that it came with."""
        held = under_way.held
        if held is None:
            raise TypeError("only a page that has waited is shown again")
        found = await self._find(lease, under_way, task, attempt, held.answer, rules, placed=True)
        visit = under_way.visit
        del held
        release = under_way.unsent(self._conduct.now()) if visit is None or not visit.requests else visit.release
        ends = self._ends(lease, attempt, release)
        left = release if ends else None
        if isinstance(found, Waiting):
            await self._wait(lease, under_way, task, found, left)
        else:
            under_way.held = None
            concluding = self._conclude(lease, task, attempt, found, rules, left)
            del found  # see `settle_stored`
            await concluding
            if self._to.rendering is not None and self._to.rendering.holding is not None:
                await self._to.rendering.holding.let_go(task)
        if visit is not None:
            visit.book()
        return None if ends else release

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
        answer = await self._interruptibly(under_way, self._to.fetcher.fetch(request))
        under_way.answer = trace_of(answer)
        if is_put_off(answer):
            await self._put_off(lease, under_way, task, answer)
            return None
        told = None if self._to.extensions is None else answer_told(task, lease, answer)
        found = None
        if isinstance(answer, Fetched):
            found = await self._find(lease, under_way, task, attempt, answer, rules, placed=placed)
        visit = under_way.visit
        release = self._rest(under_way.pace, answer, rules, lease) if visit is None else visit.release
        ends = self._ends(lease, attempt, release)
        left = release if ends else None
        if isinstance(found, Waiting):
            concluding = self._wait(lease, under_way, task, found, left)
        elif found is not None:
            concluding = self._conclude(lease, task, attempt, found, rules, left)
        else:
            concluding = self._fail(lease, task, answer, left)
        del answer, found  # see `settle_stored`
        if ends:
            await self._concluding(concluding)
        else:
            await concluding
        if visit is not None:
            visit.book()
        if self._to.extensions is not None and told is not None:
            await self._to.extensions.after(told)
        return None if ends else release

    async def _concluding(self, concluding: Awaitable[None]) -> None:
        """Settle what ends a lease; meanwhile it needs nobody's place on the wire."""
        self.settling += 1
        self.answered()
        try:
            await concluding
        finally:
            self.settling -= 1

    def _unsendable(self, task: PageTask, rules: OriginRules | None, user_agent: str) -> _Unsent:
        """How a task ends that is not sent, and what is asked for in its place; None when it is to be sent."""
        verdict = self._forbidden(task, rules, user_agent)
        if verdict is not None or not task.digest:  # what was never fetched is asked for, whatever it is an alias of
            return verdict, ()
        instead = self._to.judge.instead_of(task)
        return (None, ()) if instead is None else (instead[1], (instead[0],))

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
        return lists.lists.request(task, rules, headers, lease.user_agent)

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

    def _wall_offset(self) -> int:
        return self._to.clock.wall_ms() - self._conduct.now()

    # Settling without a capture

    async def _give_back(self, lease: Lease, under_way: UnderWay) -> None:
        """Return what is left of a lease; the host rests as long as it must."""
        self._tell_broken_off(lease, under_way)
        await self._to.frontier.settle(lease.token, [], under_way.unsent(self._conduct.now()))

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


def resources_of(stages: Stages, conduct: Conduct) -> ResourceClause:
    """Who fetches what pages in browsers wait for."""
    rendering = stages.rendering
    if rendering is None:
        return ResourceClause(stages, conduct, None, RenderSettings())
    notes = None if rendering.holding is None else rendering.holding.notes
    return ResourceClause(stages, conduct, notes, rendering.settings)

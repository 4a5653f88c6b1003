"""The sentence: a leased task is fetched, parsed, judged, stored and settled.

One `work` call is one lease. Its order is the order of durability (DESIGN section 4): the lease was durable before it
came here; the record is appended before the task is settled; links travel with the settle; the bytes become durable a
moment later, and only then is the page completed. Wherever this is cut short, the worst that happens is that one page
is fetched again, or settled from the archive when the crawl goes on.

The web misbehaving arrives here as values. Whatever is raised is ours: what a user can act on (a disk, an engine, too
little memory) ends the crawl and leaves the lease as a kill would; anything else is a bug, caught in this one place,
told, and paid for with one lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nephila.model.errors import EngineAwayError, MemoryShortageError, NephilaError, is_shortage
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchRequest
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.record import StoredCapture
from nephila.model.settings import RenderSettings
from nephila.model.task import Candidate, Lease, PageTask, RobotsTask

from .apart import ConcludingApart, given_up
from .capturing import Found
from .deferral import is_put_off
from .extending import advice_on, answer_told
from .holding import Waiting
from .narration import trace_of
from .parts import Conduct, Stages
from .rendering import RenderClause
from .resource import ResourceClause
from .resources import is_resource
from .resting import left_of
from .robots import RobotsClause
from .rules_at_hand import RulesAtHand, until_answered
from .under_way import UnderWay

BUG_WAIT_MS = 300_000
"""How long a host waits whose robots.txt we broke on."""


_Unsent = tuple[Outcome | None, Sequence[Candidate]]
"""How a task ends that is not sent, None where it is; and what is asked for in its place."""


class Pipeline(ConcludingApart):
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
        self._begin_together(lease, under_way)
        try:
            try:
                await self._work(lease, under_way)
            except asyncio.CancelledError:
                await self._give_back(lease, under_way)
                if not self.stopping:
                    raise
            except NephilaError:
                raise
            except Exception as error:  # the one catch-all: a bug costs one task, not the crawl
                if is_shortage(error):  # nobody's bug: the lease is left as a kill would leave it
                    raise MemoryShortageError from error
                self._narrator.bug(lease, error)
                await self._give_up(lease, under_way, error)
            if under_way.visit is not None:
                under_way.visit.book()
        except NephilaError as error:
            self._fails(under_way, error)
        finally:
            await self._end_together(lease, under_way)

    async def _work(self, lease: Lease, under_way: UnderWay) -> None:
        rules = await self._rules_of(lease, under_way)
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
            release = await self._do_allowed(lease, under_way, task, attempt, rules)
            if release is None:
                return
            self._rests(under_way, release)

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
        ends = attempt == len(lease.tasks) - 1
        settling = self._settle(lease, task, verdict, self._unsent(under_way) if ends else None, links=links)
        if ends or under_way.together is None:
            await settling
        else:
            self._go_on(lease, under_way, task, settling)
        return True

    async def _rules_of(self, lease: Lease, under_way: UnderWay) -> OriginRules | None:
        """The rules in force, be it that they lie on an engine that is away."""
        try:
            return self._rules.of(lease)
        except EngineAwayError:
            return await self._interruptibly(under_way, until_answered(partial(self._rules.of, lease)))

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
            rest = self._unsent(under_way) if ends else None
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
        release = left_of(release, answer, self._to.clock.steady_ms(), self._conduct.rounded_ms)
        ends = self._ends(lease, under_way, attempt, release)
        await self._resources.conclude(lease, task, attempt, answer, rules, release if ends else None)
        self._rests(under_way, release)
        return not ends

    async def _do_allowed(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, rules: OriginRules | None
    ) -> Release | None:
        """One page, if there may be one more (S3); None when the lease has ended."""
        if not self._conduct.allowance.take():
            await self._give_back(lease, under_way)
            return None
        try:
            return await self._do_page(lease, under_way, task, attempt, rules)
        finally:
            if not under_way.goes_on_apart:
                self._conduct.allowance.give()

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
        release = self._unsent(under_way) if visit is None or not visit.requests else visit.release
        ends = self._ends(lease, under_way, attempt, release)
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
        release = self._rest_after(lease, under_way, answer, rules)
        ends = self._ends(lease, under_way, attempt, release)
        goes_on = not (ends or placed) and self._may_go_on(under_way, request, found)
        concluding = self._ending(lease, under_way, task, attempt, answer, found, rules, release if ends else None)
        del answer, found  # see `settle_stored`
        if goes_on:
            self._go_on(lease, under_way, task, concluding, told)
            return release
        await (self._concluding(concluding) if ends else concluding)
        if under_way.visit is not None:
            under_way.visit.book()
        if self._to.extensions is not None and told is not None:
            await self._to.extensions.after(told)
        return None if ends else release

    def _rest_after(self, lease: Lease, under_way: UnderWay, answer: Answer, rules: OriginRules | None) -> Release:
        """How the host rests after an answer, and after what a browser has asked it for on top."""
        if under_way.visit is not None:
            return under_way.visit.release
        release = self._rest(under_way.pace, answer, rules, lease)
        return left_of(release, answer, self._to.clock.steady_ms(), self._conduct.rounded_ms)

    def _ending(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        attempt: int,
        answer: Answer,
        found: Found | Waiting | None,
        rules: OriginRules | None,
        release: Release | None,
    ) -> Coroutine[Any, Any, None]:
        """How a page ends that was asked for; nothing is done before it is awaited."""
        if isinstance(found, Waiting):
            return self._wait(lease, under_way, task, found, release)
        if found is not None:
            return self._conclude(lease, task, attempt, found, rules, release)
        return self._fail(lease, task, answer, release)

    def _unsendable(self, task: PageTask, rules: OriginRules | None, user_agent: str) -> _Unsent:
        """How a task ends that is not sent, and what is asked for in its place; None when it is to be sent."""
        if pattern := self._conduct.excluded(task.url):
            return Dropped("excluded", pattern), ()
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

    # What recovery needs, too

    def learn(
        self, lease: Lease, task: RobotsTask, answer: Answer, last: OriginRules | None
    ) -> tuple[RulesLearned | RulesMoved, Release]:
        """What an answer to a robots.txt request comes to after the last rules, and how long the host asked rests."""
        return self._robots.learn(lease, task, answer, last)

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

    # Settling without a capture

    async def _give_back(self, lease: Lease, under_way: UnderWay) -> None:
        """Return what is left of a lease; the host rests as long as it must."""
        self._tell_broken_off(lease, under_way)
        await self._settled(lease, [], self._unsent(under_way))

    async def _give_up(self, lease: Lease, under_way: UnderWay, error: Exception) -> None:
        """End a lease on which we broke: its page is given up, a robots.txt waits before it is tried again."""
        self._tell_broken_off(lease, under_way)
        release = self._unsent(under_way)
        settlements: list[Settlement] = []
        if under_way.together is not None:  # its other pages are not refused with it
            if isinstance(under_way.task, PageTask) and not under_way.goes_on_apart:
                await under_way.together.settle_alone(given_up(under_way.task, error))
            await self._settled(lease, [], release)
            return
        if isinstance(under_way.task, PageTask):
            settlements.append(given_up(under_way.task, error))
        elif isinstance(under_way.task, RobotsTask):
            release = replace(release, wait_ms=max(release.wait_ms, BUG_WAIT_MS), reason=DeferReason.ROBOTS)
        settled = await self._to.frontier.settle(lease.token, settlements, release)
        if not settled.accepted:  # the task was settled already, or the lease is lost
            await self._to.frontier.settle(lease.token, [], release)


def resources_of(stages: Stages, conduct: Conduct) -> ResourceClause:
    """Who fetches what pages in browsers wait for."""
    rendering = stages.rendering
    if rendering is None:
        return ResourceClause(stages, conduct, None, RenderSettings())
    notes = None if rendering.holding is None else rendering.holding.notes
    return ResourceClause(stages, conduct, notes, rendering.settings)

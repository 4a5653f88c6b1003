"""The robots.txt of an origin: asked for, understood, kept and settled (P1).

It is work like any other, with a lease and a capture of its own; only what it comes to is different: rules, or the host
on which to ask next. A robots.txt that was found on another host speaks for its origin, not for the host that it lies
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nephila.interfaces.politeness import RobotsRedirect
from nephila.model.errors import leaves_all_as_it_is
from nephila.model.exchange import Answer, Fetched, FetchFailed, FetchRequest
from nephila.model.outcome import OriginRules, Release, RulesKind, RulesLearned, RulesMoved, Settlement
from nephila.model.record import Capture, StoredCapture
from nephila.model.task import Candidate, Lease, Pace, RobotsTask
from nephila.urls import origin_of

from .listing import robots_row
from .narration import Narrator
from .notes import policy_notes
from .parts import Conduct, Stages
from .resting import left_of
from .rules_at_hand import until_answered

NOWHERE_MS = 86_400_000
"""How long a robots.txt counts as missing that redirects to something that is no address: as any that was read."""


class RobotsClause:
    """The part of the sentence that is about rules."""

    def __init__(self, stages: Stages, conduct: Conduct, narrator: Narrator) -> None:
        self._to = stages
        self._conduct = conduct
        self._narrator = narrator

    async def fetch(self, lease: Lease, task: RobotsTask) -> Answer:
        """Ask for a robots.txt."""
        limit = self._conduct.robots_max_bytes
        request = FetchRequest(task.url, accept_types=None, max_body_bytes=limit, user_agent=lease.user_agent)
        return await self._to.fetcher.fetch(request)

    async def conclude(self, lease: Lease, task: RobotsTask, answer: Answer) -> None:
        """Understand, store and settle an answer; the lease ends with it."""
        last = await until_answered(partial(self._to.view.rules, task.origin))
        outcome, release = self.learn(lease, task, answer, last)
        release = left_of(release, answer, self._to.clock.steady_ms(), self._conduct.rounded_ms)
        if isinstance(answer, FetchFailed):
            links = self._conduct.twins(origin_of(task.url), answer.kind)
            settled = await self._to.frontier.settle(lease.token, [Settlement(task, outcome, links)], release)
            self._narrator.robots(lease, task, answer, outcome, settled)
            return
        rules = outcome.rules if isinstance(outcome, RulesLearned) else None
        body = rules.body if rules and rules.kind is RulesKind.RULES and answer.status < 300 else None
        capture = Capture(task, lease.token, 0, answer, notes=tuple(policy_notes(lease)), rules=body)
        stored = self._to.archive.append(capture)
        await self.settle_stored(lease, task, answer, outcome, stored, release)

    def learn(
        self, lease: Lease, task: RobotsTask, answer: Answer, last: OriginRules | None
    ) -> tuple[RulesLearned | RulesMoved, Release]:
        """What an answer to a robots.txt request comes to after the last rules, and how long the host asked rests."""
        outcome = self._outcome_of(task, answer, last)
        rules = outcome.rules if isinstance(outcome, RulesLearned) else None
        own = rules if origin_of(task.url) == task.origin else None
        if isinstance(outcome, RulesLearned) and own is None:
            asked = self._rest(Pace(0), None, rules, lease).pace.crawl_delay_ms
            outcome = replace(outcome, crawl_delay_ms=asked)
        return outcome, self._rest(lease.pace, answer, own, lease)

    async def settle_stored(
        self,
        lease: Lease,
        task: RobotsTask,
        answer: Fetched,
        outcome: RulesLearned | RulesMoved,
        stored: StoredCapture,
        release: Release | None,
    ) -> bool:
        """Settle a robots.txt that lies in the archive, now or since before a crash; whether that was accepted."""
        ref = stored.ref
        self._to.ledger.appended(ref.segment, ref.offset)
        learned = outcome.rules if isinstance(outcome, RulesLearned) else None
        lists = self._to.lists
        links: Sequence[Candidate] = ()
        try:
            if lists is not None and learned is not None:
                links = lists.lists.announced(learned, lease.user_agent)
            row = robots_row(  # made before: what the frontier has accepted is listed, whatever breaks
                lease,
                task,
                answer,
                stored,
                worker=self._conduct.worker_of(ref.segment),
                crawl_delay_ms=(release.pace if release else lease.pace).crawl_delay_ms,
                text=learned.body if learned else b"",
                wall_offset=self._to.clock.wall_ms() - self._conduct.now(),
            )
            settled = await self._to.frontier.settle(lease.token, [Settlement(task, outcome, links)], release)
        except Exception as error:
            if not leaves_all_as_it_is(error):
                self._to.ledger.settled(ref.segment, ref.offset, None)  # else it would hold up what comes after it
            raise
        self._to.ledger.settled(ref.segment, ref.offset, row if settled.accepted else None)
        self._narrator.robots(lease, task, answer, outcome, settled)
        return settled.accepted

    def _rest(self, pace: Pace, answer: Answer | None, rules: OriginRules | None, lease: Lease) -> Release:
        return self._to.politeness.release(pace, answer, rules, self._to.clock.wall_ms(), lease.user_agent)

    def _outcome_of(self, task: RobotsTask, answer: Answer, last: OriginRules | None) -> RulesLearned | RulesMoved:
        """As of the time when the answer came."""
        wall, now = self._to.clock.wall_ms(), self._conduct.now()
        age = max(0, wall - answer.ended_at) if answer.ended_at else 0
        learned = self._to.politeness.learn(task, answer, last, now - age, wall - age)
        if isinstance(learned, RobotsRedirect):
            address = self._conduct.identify(learned.url)
            if address is not None:
                return RulesMoved(task.origin, address, learned.hops)
            detail = f"redirects to {learned.url}, which is no address"
            fresh = self._conduct.now() + NOWHERE_MS
            return RulesLearned(OriginRules(task.origin, RulesKind.ALLOW_ALL, b"", wall, fresh, detail=detail))
        return learned

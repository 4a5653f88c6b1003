"""The half of the sentence that turns an answer into what it means: judged as it came, or as a browser shows it.

What must stay true: nothing is settled here but a page that goes back unsent or waits; a page that waits leaves nothing
in the archive until it is done with.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from nephila.interfaces.frontier import Settled
from nephila.model.exchange import Answer, Fetched, FetchFailed
from nephila.model.outcome import DeferReason, Deferred, OriginRules, Outcome, Release, Settlement
from nephila.model.rendering import Rendered, Sign
from nephila.model.task import Candidate, Lease, Pace, PageTask, Task, Token

from .capturing import Found
from .deferral import deferral, until_its_turn
from .departures import Departures
from .extending import extracts_of, sifted_by
from .holding import Waiting
from .judgement import Extracts, Judgement
from .narration import Narrator
from .parts import Conduct, Stages
from .rendering import NOTE_PUT_OFF, WAIT_MS, RenderClause, notes_of_showing, rendered_view, targets_of
from .together import Together
from .under_way import UnderWay
from .visit import Grounds, Visit

T = TypeVar("T")

HOLD_MS = 50
"""A host that must rest longer than this is given back between two tasks of a lease: the store keeps the time. Not
where leases last through the delays of their hosts."""

TIMES_ITS_SPAN = 2
"""Then it is given back where the lease would last so many times longer than it was meant to: answers take their time,
too, and a host may have become slower since."""

LARGE_BYTES = 2_000_000
"""A body of this size is hashed and made into records in threads: together some thirty milliseconds."""


class Showing:
    """Judges answers, and shows pages to browsers. Its state is whether it stops, and whose pages go together."""

    def __init__(self, stages: Stages, conduct: Conduct) -> None:
        self._to = stages
        self._conduct = conduct
        self._narrator = Narrator(stages.events, stages.ledger, stages.clock)
        self._judges_alone = stages.shared is None and stages.extensions is None
        """Nobody else is asked before an answer of ordinary size is judged."""
        self.stopping = False
        self.leaving = False
        """Whether leases end with the page that is asked for next, as no more work is taken on."""
        self.sending: set[asyncio.Task[None]] = set()
        """Tasks that wait for their turn or for an answer: they may be cancelled without leaving anything half done."""
        self.settling = 0
        """Leases whose last answer has come and is being settled: their hosts are not asked any more."""
        self._together: dict[Token, Together] = {}
        """Leases whose pages are settled together."""
        self.departures = Departures(conduct.now)
        """Those who wait for their turn."""
        self.answered: Callable[[], None] = lambda: None
        """Called when there is one more of those."""

    def _ends(self, lease: Lease, under_way: UnderWay, attempt: int, release: Release) -> bool:
        """Whether a lease ends with this task: it is the last, or the host is given back while it rests."""
        if attempt == len(lease.tasks) - 1 or self.stopping or self.leaving:
            return True
        if release.wait_ms <= HOLD_MS:
            return False
        now_ms = self._to.clock.steady_ms()
        began_ms = now_ms if under_way.began_ms is None else under_way.began_ms
        return now_ms + release.wait_ms > began_ms + TIMES_ITS_SPAN * self._conduct.span_ms

    def _unsent(self, under_way: UnderWay) -> Release:
        """How long the host rests whose next task is not finished."""
        return under_way.unsent(self._conduct.now(), self._to.clock.steady_ms())

    def _rests(self, under_way: UnderWay, release: Release) -> None:
        """One task is done with, and the lease lasts while its host rests."""
        wait_ms = release.wait_ms + (release.wait_ms > 0)
        under_way.rest(release.pace, self._conduct.now() + wait_ms, self._to.clock.steady_ms() + wait_ms)

    async def _wait_on(
        self, lease: Lease, under_way: UnderWay, task: PageTask, attempt: int, wait_ms: int
    ) -> Release | None:
        """What a page waits for has not come: nothing is sent, and it waits on."""
        release = self._unsent(under_way)
        ends = self._ends(lease, under_way, attempt, release)
        await self._settle(lease, task, Deferred(wait_ms, DeferReason.RENDER), release if ends else None)
        return None if ends else release

    async def _has_turn(self, lease: Lease, under_way: UnderWay) -> bool:
        """Wait until the host may be asked; False when we must not send any more."""
        now = self._conduct.now()
        if under_way.left_ms(now, self._to.clock.steady_ms()):
            if under_way.began_ms is not None:  # who waits takes no place: that makes one
                asyncio.get_running_loop().call_soon(self.answered)
            now = await self._interruptibly(under_way, self._let_rest(under_way, now))
        if under_way.together is not None:
            under_way.together.check()
        # A worker that was stopped and resumed, or merely slow, must not send on a lease that may be reaped under it.
        return not self.stopping and now + self._conduct.fetch_limit_ms < self._conduct.expires_at(lease)

    async def _let_rest(self, under_way: UnderWay, now: int) -> int:
        """Let the host rest, as long as we are not to stop; the time that it is then."""
        while not self.stopping and (left_ms := under_way.left_ms(now, self._to.clock.steady_ms())):
            await self.departures.until(now + min(left_ms, 500))
            now = self._conduct.now()
        return now

    async def _interruptibly(self, under_way: UnderWay, doing: Awaitable[T]) -> T:
        """Await something that a stop may cut off."""
        self.sending.add(under_way.worker)
        try:
            return await doing
        finally:
            self.sending.discard(under_way.worker)

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
    ) -> Found | Waiting:
        """Judge an answer, as a browser shows it where its scripts make it."""
        if self._to.lists is not None:
            answer = self._to.lists.lists.sorted_out(task, answer, self._conduct.wanted)
        if self._judges_alone and len(answer.body) < LARGE_BYTES:
            judged = self._to.judge.judge(task, answer)
        else:
            judged = await self._judged(task, answer)
        found = Found(answer, answer, judged)
        rendering = self._to.rendering
        if rendering is None:
            return found
        held = under_way.held
        sign = rendering.sign(lease, answer, found.judged.page) if held is None else held.sign
        if sign is None or found.judged.error:
            return found
        if rendering.renderer is None:
            rendering.tell_wanted(lease, task, sign)
            return found
        if self.stopping and held is not None:
            return Waiting(WAIT_MS)
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
    ) -> Found | Waiting:
        """Show a page to a browser, and judge what that makes of it; or wait for what it needs of other hosts."""
        answer, holding, held = found.answer, rendering.holding, under_way.held
        notes = None if holding is None else holding.notes
        grounds = Grounds(self._to, self._conduct, rendering.settings, rendering.cache, lambda: self.stopping, notes)
        worth = partial(rendering.is_worth_waiting, lease)
        elsewhere = None if holding is None else holding.elsewhere(task, lease.host, held, worth)
        visit = under_way.visit = Visit(grounds, lease, task, attempt, rules, answer, elsewhere, held)
        shown = await self._interruptibly(under_way, rendering.show(visit, lease, answer))
        waiting = await rendering.wait(shown, lease, task, sign, answer)
        if waiting is not None:
            return waiting
        after = replace(found, notes=tuple(notes_of_showing(shown)), visit=visit.counts)
        if isinstance(shown.rendered, Rendered):
            view = rendered_view(answer, shown.rendered.html)
            judged = await self._judged(task, view, targets_of(shown.rendered))
            kept = shown.rendered.html if judged.body_kept else None
            after = replace(after, view=view, judged=judged, rendered=kept)
        rendering.learn(lease, task, sign, shown, (found.judged.page, after.judged.page))
        if isinstance(shown.rendered, Rendered):
            before = None if held is None else self._to.judge.page(rendered_view(answer, held.first))
            rendering.learn_of_waiting(lease, visit, (before, after.judged.page))
        return after

    async def _wait(
        self, lease: Lease, under_way: UnderWay, task: PageTask, waiting: Waiting, release: Release | None
    ) -> None:
        """Put a page off until what it needs has come; its request, if one was made now, is told of (K1)."""
        outcome = Deferred(waiting.wait_ms, DeferReason.RENDER)
        settlement = Settlement(task, outcome, waiting.links)
        settled = await self._settled(lease, [settlement], release)
        visit = () if under_way.visit is None else under_way.visit.counts
        self._narrator.waiting(lease, task, outcome, under_way.answer, visit, accepted=settled.accepted)

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

    async def advised(self, task: PageTask, answer: Fetched, judged: Judgement) -> Judgement:
        """A judgement with the links that plugins leave of it."""
        return judged if self._to.extensions is None else await sifted_by(self._to.extensions, task, answer, judged)

    def _rest(self, pace: Pace, answer: Answer | None, rules: OriginRules | None, lease: Lease) -> Release:
        return self._to.politeness.release(pace, answer, rules, self._to.clock.wall_ms(), lease.user_agent)

    async def _settled(self, lease: Lease, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """Settle, together with other pages of the lease where that is done."""
        together = self._together.get(lease.token)
        if together is None:
            return await self._to.frontier.settle(lease.token, settlements, release)
        return await together.settle(settlements, release)

    async def _settle(
        self,
        lease: Lease,
        task: PageTask,
        outcome: Outcome,
        release: Release | None,
        answer: FetchFailed | None = None,
        links: Sequence[Candidate] = (),
    ) -> None:
        settled = await self._settled(lease, [Settlement(task, outcome, links)], release)
        if not settled.accepted:
            self._narrator.late(lease, task, answer)
            return
        self._narrator.ending(lease, task, outcome, answer)

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
        release = until_its_turn(self._unsent(under_way), answer, reason)
        settled = await self._settled(lease, [], release)
        if settled.accepted:
            self._to.events.emit(deferral(lease, task, release, self._to.clock.wall_ms()))


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()

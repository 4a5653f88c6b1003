"""The last words of the sentence: what was judged is stored and settled, and told to those who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from nephila.model.errors import leaves_all_as_it_is
from nephila.model.exchange import Answer, Fetched, FetchFailed
from nephila.model.likeness import Likeness
from nephila.model.listing import ListKind
from nephila.model.outcome import Deferred, Done, OriginRules, Outcome, Release, Retry, Settlement
from nephila.model.record import Original, StoredCapture
from nephila.model.task import Lease, PageTask
from nephila.urls import origin_of

from .capturing import Found, capture_of
from .extending import hand_on
from .judgement import Judgement
from .listing import Beside, capture_row, planned, sizes_of
from .notfound import PROBE, SOFT_404
from .parts import CrawledPage
from .showing import LARGE_BYTES, Showing


class Concluding(Showing):
    """Stores and settles answers."""

    @property
    def _keeps_bodies(self) -> bool:
        """Whether somebody is to be given the page once it is settled: what was fetched stays in memory until then."""
        extensions = self._to.extensions
        return self._conduct.deliver is not None or (extensions is not None and extensions.wants_bodies)

    async def _concluding(self, concluding: Awaitable[None]) -> None:
        """Settle what ends a lease; meanwhile it needs nobody's place on the wire, unless its body is kept (Q5)."""
        if self._keeps_bodies:
            await concluding
        else:
            await self._aside(concluding)

    async def _aside(self, concluding: Awaitable[None]) -> None:
        """Await what needs nobody's place on the wire."""
        self.settling += 1
        self.answered()
        try:
            await concluding
        finally:
            self.settling -= 1

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
        remembered: Likeness | None = None
        try:
            if judged.listing is not None and not await self._taken(lease, task, answer, judged.listing):
                ledger.settled(ref.segment, ref.offset, None)
                await self._settled(lease, [], release)
                return False
            if judged.digest and judged.original is None and judged.body_kept:
                original = Original(task.url, stored.record_id, stored.at, stored.payload_digest, stored.coding)
                ledger.first_of_its_kind(ref.segment, ref.offset, judged.digest, original)
            remembered = self._to.near.remember(judged.likeness, task.url)
            outcome = judged.ending(ref)
            sizes = judged.sizes or sizes_of(answer)
            if not self._keeps_bodies:
                answer = answer.without_content()
            if self._to.lists is not None and isinstance(outcome, Done) and outcome.page:
                expected_s = self._to.lists.expected_s(lease.host, task.fingerprint)
                outcome = replace(outcome, expected_s=expected_s) if expected_s else outcome
            settlement = Settlement(task, outcome, judged.sifted.candidates, judged.sifted.refused)
            # Made before: what the frontier has accepted is listed, whatever breaks.
            beside = Beside(self._conduct.worker_of(ref.segment), self.signals(lease, rules), self._wall_offset())
            row = capture_row(lease, task, answer, judged, stored, beside, sizes)
            settled = await self._settled(lease, [settlement], release)
        except Exception as error:
            if not leaves_all_as_it_is(error):  # it is nobody's: it must hold nothing up, and nothing may refer to it
                ledger.settled(ref.segment, ref.offset, None)
                self._refer_no_more(task, judged, stored, remembered)
            raise
        ledger.settled(ref.segment, ref.offset, planned(row, settled.outlook) if settled.accepted else None)
        if not settled.accepted:
            self._refer_no_more(task, judged, stored, remembered)
        if settled.accepted and judged.sifted.refused:
            judged = replace(judged, sifted=replace(judged.sifted, refused=self._conduct.noted(judged.sifted.refused)))
        self._narrator.answer(lease, task, answer, sizes[1], judged, settled, outcome, visit)
        if settled.accepted:
            self._learn(lease, task, answer, judged, outcome)
            await self._hand_on(task, answer, judged, outcome)
        return settled.accepted

    async def _taken(self, lease: Lease, task: PageTask, answer: Fetched, kind: ListKind) -> bool:
        """Admit what a list names; False where we are to stop, and that would take long: it is read anew later."""
        if self._to.lists is None:
            return True
        return await self._to.lists.take(lease, task, answer, kind, lambda: self.stopping)

    def _refer_no_more(
        self, task: PageTask, judged: Judgement, stored: StoredCapture, remembered: Likeness | None
    ) -> None:
        """A capture is nobody's: let nothing be taken for a copy of it."""
        if judged.digest:
            self._to.duplicates.forget(judged.digest, stored.record_id)
        self._to.near.forget(remembered, task.url)

    def _learn(self, lease: Lease, task: PageTask, answer: Fetched, judged: Judgement, outcome: Outcome) -> None:
        """What an answer that counts says of its site."""
        if self._to.learning is not None:
            self._to.learning.learn(lease, task, answer, judged, outcome)
        if self._to.lists is not None and isinstance(outcome, Done) and outcome.page:
            same = judged.not_modified or (bool(judged.digest) and judged.digest == task.digest)
            self._to.lists.visited(lease, task, outcome.text or judged.digest[:8], same=same)

    async def _hand_on(self, task: PageTask, answer: Fetched, judged: Judgement, outcome: Outcome) -> None:
        """Give what counts as a page to those who wait for it: the caller of the library, and plugins."""
        if judged.error in {SOFT_404, PROBE} or not (isinstance(outcome, Done) and outcome.page):
            return
        if self._conduct.deliver is not None and 200 <= answer.status < 300:
            original_url = judged.original.url if judged.original else ""
            near_url = judged.near.url if judged.near else ""
            await self._conduct.deliver(CrawledPage(task, answer, judged.page, original_url, near_url))
        if self._to.extensions is not None:
            await hand_on(self._to.extensions, task, answer, judged)

    # What recovery needs, too

    def signals(self, lease: Lease, rules: OriginRules | None) -> str:
        """The content signals of rules for whom we are to a host (X2)."""
        return self._to.politeness.signals(rules, lease.user_agent)

    def remember_again(self, task: PageTask, judged: Judgement) -> None:
        """Know a page that was settled before a crash: whether the index of near-duplicates does is not certain."""
        self._to.near.remember(judged.likeness, task.url)

    def rest_after(self, lease: Lease, answer: Answer | None, rules: OriginRules | None) -> Release:
        """How long a host rests after an answer under these rules; None for one that nobody has."""
        return self._rest(lease.pace, answer, rules, lease)

    def _wall_offset(self) -> int:
        return self._to.clock.wall_ms() - self._conduct.now()

"""Pages that are concluded apart from their lease, which goes on to the next: they are settled together.

What `Pipeline.work` does about errors of a page that it waits for is done here for one that it does not wait for: our
own failures end the crawl and leave the lease as a kill would; a bug costs the page.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from nephila.model.errors import MemoryShortageError, NephilaError, is_shortage
from nephila.model.exchange import FetchRequest
from nephila.model.outcome import Dead, Settlement
from nephila.model.plugin import IncomingAnswer
from nephila.model.task import Lease, PageTask

from .capturing import Found
from .concluding import Concluding
from .holding import Waiting
from .parts import Conduct, Stages
from .resources import is_resource
from .together import Room, Together
from .under_way import UnderWay


class ConcludingApart(Concluding):
    """Concludes pages while their lease goes on."""

    def __init__(self, stages: Stages, conduct: Conduct) -> None:
        super().__init__(stages, conduct)
        self._room = Room()
        """For what waits to be settled together."""

    def _goes_together(self, lease: Lease) -> bool:
        """Whether the pages of a lease are settled together: several, where nobody keeps their bodies until then."""
        if not self._conduct.together_s or len(lease.tasks) == 1 or self._keeps_bodies:
            return False
        return all(isinstance(task, PageTask) and not is_resource(task) for task in lease.tasks)

    def _begin_together(self, lease: Lease, under_way: UnderWay) -> None:
        """Let the pages of a lease be settled together, where they may be."""
        if self._goes_together(lease):
            clock, wait_s = self._to.clock, self._conduct.together_s
            under_way.together = Together(self._to.frontier, lease.token, wait_s, clock.steady_ms, self._room)
            self._together[lease.token] = under_way.together

    def _fails(self, under_way: UnderWay, error: NephilaError) -> None:
        """Our own failure ends the crawl. Those who wait for one call hear of it together, and it is told once."""
        if under_way.together is None or under_way.together.fails(error):
            self._conduct.fatal(error)

    async def _end_together(self, lease: Lease, under_way: UnderWay) -> None:
        """Wait for the pages that are concluded beside a lease; its host is not asked meanwhile."""
        together = under_way.together
        if together is None:
            return
        try:
            if together.is_busy:
                await self._aside(together.end())
        finally:
            del self._together[lease.token]

    def _may_go_on(self, under_way: UnderWay, request: FetchRequest, found: Found | Waiting | None) -> bool:
        """Whether a lease may go on while this is concluded: an ordinary page, or a failure.

        A list is admitted under its place and its lease, and takes its time; what browsers are shown is settled as it
        comes.
        """
        if under_way.together is None or under_way.visit is not None or request.max_body_bytes is not None:
            return False
        return found is None or (isinstance(found, Found) and found.judged.listing is None)

    def _go_on(
        self,
        lease: Lease,
        under_way: UnderWay,
        task: PageTask,
        concluding: Awaitable[None],
        told: IncomingAnswer | None = None,
    ) -> None:
        """Conclude a page apart from its lease; with it, a place of the allowance is given back if it was asked for."""
        together = under_way.together
        if together is None:
            raise TypeError("only what is settled together is concluded apart")
        under_way.goes_on_apart = under_way.sent
        together.begin(self._conclude_apart(lease, replace(under_way), task, concluding, told), f"settle-{lease.host}")

    async def _conclude_apart(
        self,
        lease: Lease,
        page: UnderWay,
        task: PageTask,
        concluding: Awaitable[None],
        told: IncomingAnswer | None,
    ) -> None:
        """`page` is how far the lease had come with it."""
        try:
            try:
                await concluding
                if self._to.extensions is not None and told is not None:
                    await self._to.extensions.after(told)
            except NephilaError:
                raise
            except Exception as error:  # the catch-all of `work`, for what it does not wait for
                if is_shortage(error):  # nobody's bug: the lease is left as a kill would leave it
                    raise MemoryShortageError from error
                self._narrator.bug(lease, error)
                self._tell_broken_off(lease, page)
                if page.together is not None:
                    await page.together.settle_alone(given_up(task, error))
        except NephilaError as error:
            self._fails(page, error)
        finally:
            if page.sent:
                self._conduct.allowance.give()

    def _tell_broken_off(self, lease: Lease, under_way: UnderWay) -> None:
        """A request that may have left is told of, whatever became of it (K1)."""
        if under_way.sent and under_way.task is not None:
            visit = () if under_way.visit is None else under_way.visit.counts
            self._narrator.broken_off(lease, under_way.task, under_way.sent_ms, under_way.answer, visit)


def given_up(task: PageTask, error: Exception) -> Settlement:
    """How a page ends on which we broke."""
    return Settlement(task, Dead("bug", f"{type(error).__name__}: {error}"))

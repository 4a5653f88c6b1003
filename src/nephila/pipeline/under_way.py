"""How far a lease has come, so that it can be ended at any point."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nephila.model.outcome import Release
from nephila.model.task import Pace, Task

from .holding import Held
from .narration import Trace
from .together import Together
from .visit import Visit

BROKEN_OFF_MS = 250
"""An exchange that we broke off ends, for the server, when it notices."""


@dataclass(slots=True)
class UnderWay:
    """How far a lease has come: what must be known to end it at any point."""

    worker: asyncio.Task[None]
    """Who works on it."""
    pace: Pace
    not_before: int
    """When the host may be asked next, if nothing was sent since."""
    rested_ms: int = 0
    """The same on the clock that does not jump, where the lease lasts through a rest: a fleet's timeline leaps ahead
    when the engine's is known better, and must not cut the rest short that it was reckoned by."""
    began_ms: int | None = None
    """When the host was asked first under this lease, on that clock."""
    together: Together | None = None
    """Who settles its pages together; None where each is settled for itself."""
    goes_on_apart: bool = False
    """Whether `task` is concluded by a task of its own, so that it is no business of this one any more."""
    task: Task | None = None
    sent: bool = False
    """Whether the host was asked for `task`."""
    sent_ms: int = 0
    """When, at the earliest, on the clock that does not jump."""
    answer: Trace | None = None
    """When and where it was asked, as long as nobody else has told of it; nothing of what came (Q5)."""
    headers: tuple[tuple[str, str], ...] = ()
    """What plugins add to the request for `task`."""
    visit: Visit | None = None
    """What a browser asks the host for on top, while it is shown `task`."""
    held: Held | None = None
    """`task` was asked for before, has waited for other hosts, and goes on from here."""

    def ask(self, sent_ms: int) -> None:
        """The host is being asked."""
        self.sent, self.sent_ms, self.answer, self.visit, self.held = True, sent_ms, None, None, None
        if self.began_ms is None:
            self.began_ms = sent_ms

    def show_again(self, held: Held) -> None:
        """Nothing is asked for: the task has waited, and its answer is at hand."""
        self.sent, self.answer, self.visit, self.held = False, None, None, held

    def rest(self, pace: Pace, not_before: int, rested_ms: int) -> None:
        """One task is done with; the host rests."""
        self.pace, self.not_before, self.rested_ms, self.task, self.sent = pace, not_before, rested_ms, None, False
        self.visit = self.held = None
        self.goes_on_apart = False

    def left_ms(self, now: int, steady_ms: int) -> int:
        """How long the host must still rest, if nothing was sent since."""
        return max(0, self.not_before - now, self.rested_ms - steady_ms)

    def unsent(self, now: int, steady_ms: int) -> Release:
        """How long a host rests whose next task is not finished: a full delay if it was asked, else what was due."""
        pace = self.pace
        requests = int(self.sent) if self.visit is None else self.visit.requests
        if requests:
            wait_ms = max(pace.delay_ms, pace.crawl_delay_ms, pace.base_ms) * requests
            if self.visit is not None:
                wait_ms = max(wait_ms, self.visit.release.wait_ms)
            return Release(wait_ms + BROKEN_OFF_MS, pace)
        return Release(self.left_ms(now, steady_ms), pace)

"""What the sentence asks of whoever extends it: the plugins of a crawl as one (E1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nephila.model.exchange import Fetched
from nephila.model.page import Link
from nephila.model.plugin import Extract, Glimpse, IncomingAnswer, OutgoingRequest, PageRecord, RequestAdvice
from nephila.model.task import Candidate, Refusal

NOTHING = RequestAdvice()


class Extensions(Protocol):
    """All plugins of a crawl. None of these raises for what a plugin does, and each returns within their deadlines."""

    async def before(self, request: OutgoingRequest) -> RequestAdvice:
        """What to add to a request, or why it is not to be sent."""

    async def after(self, answer: IncomingAnswer) -> None:
        """Tell what came of it."""

    async def extract(self, fetched: Fetched) -> Sequence[tuple[str, Extract]]:
        """What was read out of a 2xx answer, each with the name of who did."""

    async def sift(
        self, page: Glimpse, links: Sequence[Link], candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], list[Refusal]]:
        """What is left of the candidates, with their points, and what was kept out; `links` are theirs, in order."""

    @property
    def wants_bodies(self) -> bool:
        """Whether a sink is to be given the bodies of pages, which are let go early otherwise."""

    async def deliver(self, record: PageRecord) -> None:
        """Hand a stored page to the sinks; waits where they are behind."""

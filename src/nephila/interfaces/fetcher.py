"""Asking one question over the wire."""

from __future__ import annotations

from typing import Protocol

from nephila.model.exchange import Answer, FetchRequest


class Fetcher(Protocol):
    """One exchange, never more: no redirect is followed, no robots.txt fetched, no retry made.

    Promises: never raises for anything a server, resolver or network does (that is a `FetchFailed`); returns within the
    whole-fetch limit; holds at most the body limit in memory per exchange, decoded size bounded too; connects to no
    address that the guard refuses. Cancelling it closes the connection.
    """

    async def fetch(self, request: FetchRequest) -> Answer:
        """The answer or the failure."""

    async def close(self) -> None:
        """Close every idle connection; exchanges in flight are the caller's to cancel first."""

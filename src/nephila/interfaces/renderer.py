"""Showing a page to a browser, and taking what its scripts made of it (J2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from nephila.model.rendering import (
    Rendered,
    RenderFailed,
    RenderFigures,
    RenderOrder,
    SiteRendering,
    Supplied,
    Wanted,
    Withheld,
)

Supply = Callable[[Wanted], Awaitable[Supplied | Withheld]]
"""How a page gets at anything: what is withheld fails for it, as if there were no network."""


class Renderer(Protocol):
    """A pool of browsers.

    Promises: never raises for anything a page or a browser does (that is a `RenderFailed`); returns soon after the time
    limit of a page; nothing that a page wants goes anywhere but through `supply`, and the page itself is not asked for
    again; nothing is kept from one page to the next. Cancelling it ends the page.
    """

    @property
    def places(self) -> int:
        """Pages at once."""

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        """The document as its scripts left it."""

    def figures(self) -> RenderFigures:
        """How the pool is doing."""

    async def close(self) -> None:
        """End every browser."""


class Shelf(Protocol):
    """Bytes by name, each kept for a time: shared by all who show pages of one crawl, and bounded.

    What was kept may be lost at any time. Never raises for a disk or a server that does not take it.
    """

    async def find(self, name: str) -> bytes | None:
        """What is kept under a name, while its time lasts."""

    async def keep(self, name: str, data: bytes, lasts_ms: int) -> bool:
        """Keep something under a name, in place of what was there; False where there is no room for it."""

    async def drop(self, name: str) -> None:
        """Keep it no longer."""


class Renderings(Protocol):
    """Remembers what browsers were good for. What was kept is seen by `of` at once, and is there after `flush`."""

    def of(self, host: str) -> SiteRendering | None:
        """What is known of a host, None when it is nothing."""

    def keep(self, host: str, known: SiteRendering) -> None:
        """From now on this is known."""

    def flush(self) -> None:
        """Make durable what was kept."""

    def close(self) -> None:
        """Flush and close."""

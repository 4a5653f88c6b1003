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

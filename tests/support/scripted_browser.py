"""A browser on a desk: it asks for what a test says, and makes the same document of every page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from worker import linking

from nephila.interfaces.renderer import Supply
from nephila.model.rendering import (
    PartKind,
    Rendered,
    RenderFailed,
    RenderFigures,
    RenderOrder,
    Supplied,
    Wanted,
    Withheld,
)

HOME = "https://a.test/"
SHELL = b'<body><div id="root"></div><script src="/app.js"></script></body>'
MADE = b"<body>" + linking("/next")


class Scripted:
    """A browser that does to `supply` what a test says; the document is then the made one."""

    places = 2

    def __init__(
        self, act: Callable[[Supply], Awaitable[Any]], rendered: Rendered | RenderFailed | None = None
    ) -> None:
        self._act = act
        self._rendered = rendered or Rendered(MADE)
        self.orders: list[RenderOrder] = []
        self.got: Any = None

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        self.orders.append(order)
        if len(self.orders) == 1 or isinstance(self._rendered, RenderFailed):
            self.got = await self._act(supply)
        return self._rendered

    def figures(self) -> RenderFigures:
        return RenderFigures()

    async def close(self) -> None:
        """Nothing is open."""


def reasons(got: list[Supplied | Withheld]) -> list[str | int]:
    return [one.status if isinstance(one, Supplied) else one.reason for one in got]


async def ask(supply: Supply, *urls: str, kind: PartKind = PartKind.SCRIPT) -> list[Supplied | Withheld]:
    return [await supply(Wanted(url, kind)) for url in urls]

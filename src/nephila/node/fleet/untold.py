"""What seeds bring that all must know before they are admitted: the scope they open, http to fall back to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from .registry import Registry


class Untold:
    """Kept here until `tell`, which is awaited before anything is admitted."""

    def __init__(self, registries: Sequence[Registry]) -> None:
        """The registers of all regions of the crawl: what seeds let in holds for all."""
        self._registries = registries
        self._lines: list[bytes] = []
        self._twins: dict[str, str] = {}
        self._one = asyncio.Lock()
        """Held while something is told: many tasks wait for that at once."""

    def add_to_scope(self, unsaved: Callable[[], bytes]) -> None:
        """What was let into the scope here."""
        if lines := unsaved():
            self._lines.append(lines)

    def keep_twin(self, origin: str, path: str) -> None:
        """A seed named no scheme: whoever finds that its origin does not answer over https tries http (S1)."""
        known = self._twins.get(origin)
        self._twins[origin] = path if known is None else f"{known} {path}"

    async def tell(self) -> None:
        """Tell the others; what could not be told stays for the next time."""
        if not self._lines and not self._twins:
            return
        async with self._one:
            while self._lines:
                for registry in self._registries:
                    await registry.add_to_scope(self._lines[0])
                del self._lines[0]
            if twins := dict(self._twins):
                for registry in self._registries:
                    await registry.keep_twins(twins)
                for origin, paths in twins.items():
                    if self._twins[origin] == paths:  # else more have come meanwhile
                        del self._twins[origin]

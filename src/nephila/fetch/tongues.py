"""Which servers are offered HTTP/2: those that speak nothing else, or all of them but those that refuse it.

What was learned is kept for a while, so that no second handshake is paid for each connection; those that were met
longest ago are forgotten first.
"""

from __future__ import annotations

MOST_ORIGINS = 4096
"""How many are remembered. One that is forgotten costs another handshake."""


class Tongues:
    """What is offered to whom, by the setting and by what was learned."""

    def __init__(self, choice: str, size: int = MOST_ORIGINS) -> None:
        """`choice` is that of the setting: ``fallback``, ``prefer`` or ``off``."""
        self._prefers = choice == "prefer"
        self._falls_back = choice == "fallback"
        self._size = size
        self._known: dict[str, bool] = {}
        """Origins, and whether they want HTTP/2."""

    def __len__(self) -> int:
        return len(self._known)

    def offers_http2(self, origin: str) -> bool:
        """Whether the server may choose it at the next handshake."""
        return self._known.get(origin, self._prefers)

    def falls_back(self, origin: str) -> bool:
        """Whether a server that speaks nothing that it was offered is offered HTTP/2 now."""
        return self._falls_back and not self.offers_http2(origin)

    def learn(self, origin: str, *, http2: bool) -> None:
        """The server wants it, or refuses it."""
        self._known.pop(origin, None)
        self._known[origin] = http2
        if len(self._known) > self._size:
            del self._known[next(iter(self._known))]

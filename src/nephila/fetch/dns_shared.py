"""Addresses of names that the workers of a fleet share (H4): asked before the name servers are, told afterwards.

An answer is shared for its time to live, at most a day; that a name does not exist, or could not be looked up, is not
shared. A server that does not answer is as one that does not know. What comes out is judged by the guard of addresses
at the moment of connecting, like any answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from nephila.interfaces.network import Resolved
from nephila.interfaces.shared import SharedState
from nephila.model.errors import EngineAwayError

ASK_S = 1.0
"""For an answer of the servers: the name servers know it, too."""

_decode = msgspec.msgpack.Decoder(tuple[str, ...]).decode


class SharedAddresses:
    """Implements `interfaces.network.SharedNames`."""

    def __init__(self, state: SharedState, crawl: str, most_s: float, least_s: float) -> None:
        self._state = state
        self._prefix = f"nephila:{crawl}:names:"
        self._most_s = most_s
        self._least_s = least_s

    async def find(self, name: str) -> Resolved | None:
        """As the interface."""
        try:
            async with asyncio.timeout(ASK_S):
                packed = await self._state.call("GET", self._prefix + name)
                left_ms = int(await self._state.call("PTTL", self._prefix + name)) if packed is not None else 0
        except (EngineAwayError, TimeoutError):
            return None
        return Resolved(_decode(packed), left_ms / 1000) if left_ms > 0 else None

    async def keep(self, name: str, answer: Resolved) -> None:
        """As the interface."""
        holds_ms = int(min(max(answer.ttl_s, self._least_s), self._most_s) * 1000)
        if holds_ms <= 0 or answer.stale:
            return
        packed = msgspec.msgpack.encode(answer.addresses)
        with suppress(EngineAwayError, TimeoutError):
            async with asyncio.timeout(ASK_S):
                await self._state.call("SET", self._prefix + name, packed, "PX", holds_ms)

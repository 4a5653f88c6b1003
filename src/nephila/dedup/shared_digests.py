"""Exact duplicates over a fleet (D2): a worker's own index, and beside it what the others have brought to the store.

A revisit record must never point at nothing. So a body is shared only when the segment it lies in has arrived in the
store of objects; until then its own worker alone knows it. Two workers that meet the same body within that minute store
it twice, which is the price; hosts stay with their workers, so few do.

`ask` looks on the servers, before `find` is called for the same digest; what it found is remembered for a while. A
server that does not answer costs a second copy, nothing else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

from nephila.interfaces.shared import SharedState
from nephila.model.errors import EngineAwayError
from nephila.model.record import Original

from .digests import LmdbDigestIndex, MemoryDigestIndex

REMEMBERED = 10_000
"""Answers of the servers that are kept: whatever is judged was asked for a moment ago."""
ASK_S = 1.0
AWAY_S = 5.0
"""A server that did not answer within `ASK_S` is not asked again for so long: a page must not wait for it."""
FORGOTTEN_AT_ONCE = 200
WAITING = 200_000
"""Digests that may wait to be shared; the oldest is let go then."""

_FIELDS = tuple[str, str, int, str, str]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_FIELDS).decode


async def forget_shared(state: SharedState, crawl: str, digests: Iterable[bytes], names: Callable[[str], bool]) -> None:
    """Let no worker of a fleet take anything for a copy of captures of URLs that `names` picks out (K2, W5)."""

    async def forget(digest: bytes) -> None:
        packed = await state.call("HGET", _key(crawl, digest), digest)
        if packed is not None and names(_decode(packed)[0]):
            await state.call("HDEL", _key(crawl, digest), digest)

    left = iter(digests)
    while some := list(islice(left, FORGOTTEN_AT_ONCE)):
        await asyncio.gather(*map(forget, some))


def _key(crawl: str, digest: bytes) -> str:
    return f"nephila:{{{crawl}:{digest[0]:02x}}}:contents"


class SharedDigestIndex:
    """Implements `interfaces.duplicates.SharedDigests`. `arrived` may be called from a thread."""

    def __init__(self, own: LmdbDigestIndex | MemoryDigestIndex, state: SharedState, crawl: str) -> None:
        self._own = own
        self._state = state
        self._crawl = crawl
        self._found: OrderedDict[bytes, Original] = OrderedDict()
        self._arrived: deque[tuple[bytes, str, int]] = deque(maxlen=WAITING)
        self._away_until = 0.0

    # On the servers

    async def ask(self, digest: bytes) -> None:
        """As the interface."""
        now = asyncio.get_running_loop().time()
        if now < self._away_until or digest in self._found or self._own.find(digest) is not None:
            return
        try:
            async with asyncio.timeout(ASK_S):
                packed = await self._state.call("HGET", _key(self._crawl, digest), digest)
        except (EngineAwayError, TimeoutError):
            self._away_until = now + ASK_S + AWAY_S
            return
        if packed is not None:
            self._found[digest] = Original(*_decode(packed))
            if len(self._found) > REMEMBERED:
                self._found.popitem(last=False)

    def arrived(self, captures: Iterable[tuple[bytes, str, int]]) -> None:
        """These captures of this worker are in the store of objects: content, URL and date of each."""
        self._arrived.extend(captures)

    async def share(self) -> int:
        """Tell the servers what has arrived; how many. What cannot be told now is told later."""
        count = 0
        while self._arrived:
            digest, url, at = self._arrived[0]
            original = self._own.find(digest)
            if original is not None and (original.url, original.at) == (url, at):
                fields = (original.url, original.record_id, original.at, original.payload_digest, original.coding)
                try:
                    await self._state.call("HSETNX", _key(self._crawl, digest), digest, _encode(fields))
                except EngineAwayError:
                    return count
                count += 1
            self._arrived.popleft()
        return count

    # Takedowns

    async def forget_named(self, may_name: Callable[[bytes], bool], names: Callable[[str], bool]) -> None:
        """Let nothing here refer to captures of URLs that `names` picks out, nor be shared any more (K2)."""
        await asyncio.to_thread(self._own.forget_named, may_name, names)
        for digest, original in list(self._found.items()):
            if names(original.url):
                self._found.pop(digest, None)

    # As the interface

    def find(self, digest: bytes) -> Original | None:
        """As the interface; what others have stored is found only after `ask`."""
        return self._own.find(digest) or self._found.get(digest)

    def remember(self, digest: bytes, original: Original) -> None:
        """As the interface."""
        self._own.remember(digest, original)

    def forget(self, digest: bytes, record_id: str) -> None:
        """As the interface: a capture that was refused has not been shared."""
        self._own.forget(digest, record_id)

    def flush(self) -> None:
        """As the interface."""
        self._own.flush()

    def close(self) -> None:
        """As the interface."""
        self._own.close()

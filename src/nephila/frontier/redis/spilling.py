"""Long queues: their far ends leave the engine for a store of chunks, and come back before they are needed (F8).

A worker does this for the shards that fall to it; two that do it at once do no harm. The order loses nothing wherever
it is cut: a chunk is durable in the store before its URLs leave the engine (in one act there, and only what is still as
it was stored); it is deleted from the store when it has been back in the engine for longer than an engine that
restarts or fails over could forget. A chunk that was stored and never left, since its worker died between the two, is
nobody's: it is found by going through the store now and then, and deleted when it is old enough that no call about it
can still come.

The rules are with the functions (`lua/spilling.lua`). Here is who calls them, and how a chunk is packed.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from struct import Struct

from nephila.interfaces.chunks import ChunkStore
from nephila.model.errors import FrontierError

from .calling import Caller

HOSTS_AT_ONCE = 100
"""Hosts with something outside that one call looks at."""
GRACE_S = 3600.0
"""A chunk that came back is kept for so long: an engine that lost its last moments asks for it again. It must be longer
than `LATEST_MS` in `lua/spilling.lua`, after which a chunk that was picked cannot leave any more."""
CLEARED_AT_ONCE = 500
LEVEL = 6
FORMAT = b"2"
"""Of a chunk: it changes with that of bundles (`lua/bundles.lua`)."""

_LENGTH = Struct(">I")


def pack(bundles: Iterable[bytes]) -> bytes:
    """Bundles as they are stored in the engine, as one chunk."""
    return FORMAT + zlib.compress(b"".join(_LENGTH.pack(len(one)) + one for one in bundles), LEVEL)


def unpack(body: bytes) -> list[bytes]:
    """The same, back; raises `FrontierError` for anything else."""
    if body[:1] != FORMAT:
        raise FrontierError("a chunk of a queue was written by another version of Nephila", "use that version")
    try:
        return list(_bundles(zlib.decompress(body[1:])))
    except (zlib.error, ValueError) as error:
        raise FrontierError(f"a chunk of a queue is damaged: {error}", "restore the table `spilled`") from error


def _bundles(text: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(text):
        (length,) = _LENGTH.unpack_from(text, at)
        at += _LENGTH.size + length
        if at > len(text):
            raise ValueError("its end is missing")
        yield text[at - length : at]


@dataclass(frozen=True, slots=True)
class Spilled:
    """What a turn has done."""

    out: int = 0
    """URLs that left the engine."""
    back: int = 0
    """URLs that came back."""
    missing: int = 0
    """Chunks that should have come back, and are not in the store."""

    def __add__(self, other: Spilled) -> Spilled:
        return Spilled(self.out + other.out, self.back + other.back, self.missing + other.missing)


class Spilling:
    """One worker's part."""

    def __init__(self, caller: Caller, chunks: ChunkStore) -> None:
        self._caller = caller
        self._chunks = chunks

    async def turn(self, shards: Iterable[int]) -> Spilled:
        """Look at shards once, and do what is to be done there."""
        done = Spilled()
        for shard in shards:
            done += await self._look(shard)
        return done

    async def _look(self, shard: int) -> Spilled:
        cursor, done, seen = b"0", Spilled(), set[bytes]()
        while True:
            cursor, hosts, back = await self._caller.call(shard, "spill_look", cursor, HOSTS_AT_ONCE)
            if back:
                done += await self._bring_back(shard, [one for one in back if one[2] not in seen])
                seen |= {one[2] for one in back}
            for host in hosts if cursor == b"0" else ():
                done += await self._spill(shard, host)
            if cursor == b"0":
                return done

    async def _spill(self, shard: int, host: bytes) -> Spilled:
        """Chunk after chunk, until the host has no more than it may."""
        out = 0
        while True:
            picked_at, told, urls = await self._caller.call(shard, "spill_pick", host)
            if not told:
                return Spilled(out)
            numbers, bundles = told[::2], told[1::2]
            chunk = secrets.randbits(63)
            body = await asyncio.to_thread(pack, bundles)
            await asyncio.to_thread(self._chunks.put, chunk, shard, urls, body)
            named = [word for pair in zip(numbers, map(_digest, bundles), strict=True) for word in pair]
            _, left = await self._caller.call(shard, "spill_out", host, chunk, picked_at, *named)
            if not left:
                return Spilled(out)  # its queue was changed meanwhile, or the answer to the first call was lost
            out += left

    async def _bring_back(self, shard: int, wanted: Sequence[Sequence[bytes]]) -> Spilled:
        found = await asyncio.to_thread(self._chunks.get, [int(chunk) for _, _, chunk in wanted])
        back = 0
        for host, number, chunk in wanted:
            body = found.get(int(chunk))
            if body is not None:
                back += int(await self._caller.call(shard, "spill_back", host, number, chunk, *unpack(body)))
        return Spilled(back=back, missing=len(wanted) - len(found))

    # Clearing up

    async def clear(self, shards: Iterable[int]) -> int:
        """Delete chunks that have been back for long enough; how many."""
        count = 0
        for shard in shards:
            while done := await self._caller.call(shard, "spill_done", int(GRACE_S * 1000), CLEARED_AT_ONCE):
                await asyncio.to_thread(self._chunks.delete, [int(one) for one in done])
                await self._caller.call(shard, "spill_forget", *done)
                count += len(done)
        return count

    async def clear_strangers(self, shards: Iterable[int]) -> int:
        """Delete old chunks that the engine knows nothing of; how many."""
        count = 0
        for shard in shards:
            after = -1
            while old := await asyncio.to_thread(self._chunks.older, shard, GRACE_S, after, CLEARED_AT_ONCE):
                strangers = [int(one) for one in await self._caller.call(shard, "spill_strangers", *old)]
                if strangers:
                    await asyncio.to_thread(self._chunks.delete, strangers)
                count, after = count + len(strangers), old[-1]
        return count


def _digest(bundle: bytes) -> str:
    return sha1(bundle, usedforsecurity=False).hexdigest()

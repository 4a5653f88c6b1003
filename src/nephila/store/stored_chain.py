"""A chain of hashes that lies in a store of objects and nowhere else: that of a fleet's takedowns (K1, K2).

    PREFIX/trail/takedowns/chain-000000000004-000000000004-9f...e4.jsonl

Workers seal what they write in chains of their own. Whoever takes something out of the archive has written none of it,
and has no directory: its receipts are lines of a chain of theirs, which an audit reads beside the others. It goes on
where the store has its end, whoever wrote that; one at a time writes to it, and holds a lock meanwhile.

What must stay true: a line is in the store before what it announces is done; a line that is there is never changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from nephila.interfaces.clock import Clock
from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import ObjectExistsError, StorageError

from .place import ArchivePlace
from .trail import FIRST
from .trail_line import NO_HASH, Receipt, TrailLine, instant, read_line, spelled
from .trail_place import TrailListing, stretch_key

TAKEDOWNS = "takedowns"
"""Whose chain it is, among those of workers: their ids are sixteen hexadecimal digits."""
_READ_BYTES = 8 << 20


class StoredChain:
    """The chain of takedowns. Every call blocks; not for a loop that runs."""

    def __init__(self, objects: ObjectStore, place: ArchivePlace, clock: Clock) -> None:
        self._objects = objects
        self._place = place
        self._clock = clock

    def append(self, receipts: Sequence[Receipt] = (), *, end: bool = False) -> None:
        """One line for each receipt, and one that says that nothing is under way. Raises `StorageError`.

        The end of the chain is looked for each time: whoever wrote to it in spite of the lock must not be passed over.
        """
        last = self._last()
        if end and not receipts and (last is None or last.end):
            return
        lines = [TrailLine(0, self._now(), NO_HASH, chain=FIRST)] if last is None else []
        number, head = (0, NO_HASH) if last is None else (last.n + 1, last.hash)
        lines += [TrailLine(0, self._now(), "", receipt=one) for one in receipts]
        if end:
            lines.append(TrailLine(0, self._now(), "", end=True))
        first, data = number, b""
        for line in lines:
            written, head = spelled(_numbered(line, number, head))
            data, number = data + written, number + 1
        key = stretch_key(self._place, TAKEDOWNS, first, number - 1, head)
        with suppress(ObjectExistsError):  # its name is its hash: it is the same
            asyncio.run(self._objects.create(key, _body(data)))

    def lines(self) -> Iterator[TrailLine]:
        """All of them, as they are in the store now."""
        for stretch in self._stretches():
            yield from self._read(stretch)

    def receipts(self) -> tuple[list[tuple[str, Receipt]], str]:
        """All receipts with their times, and the head of the chain."""
        found, head = [], ""
        for line in self.lines():
            head = line.hash
            if line.receipt is not None:
                found.append((line.at, line.receipt))
        return found, head

    def _last(self) -> TrailLine | None:
        stretches = self._stretches()
        last = None
        for line in self._read(stretches[-1]) if stretches else ():
            last = line
        return last

    def _stretches(self) -> list[str]:
        keys = asyncio.run(self._objects.keys(self._place.key(f"trail/{TAKEDOWNS}/")))
        return [one.key for one in TrailListing(self._place, keys).chains.get(TAKEDOWNS, [])]

    def _read(self, key: str) -> Iterator[TrailLine]:
        data = b""
        while piece := self._objects.read(key, len(data), _READ_BYTES):
            data += piece
        for raw in data.splitlines(keepends=True):
            line = read_line(raw)
            if line is None:
                raise StorageError(f"a line of {key} was changed", hint="`nephila audit` tells more")
            yield line

    def _now(self) -> str:
        return instant(self._clock.wall_ms())


def _numbered(line: TrailLine, number: int, prev: str) -> TrailLine:
    return TrailLine(number, line.at, prev, chain=line.chain, receipt=line.receipt, end=line.end)


def _body(data: bytes) -> ObjectBody:
    return ObjectBody(len(data), sha256(data).hexdigest(), lambda offset, size: data[offset : offset + size])

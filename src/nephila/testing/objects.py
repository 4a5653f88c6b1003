"""A store of objects in memory that misbehaves as real ones do, under whatever time the loop has.

Answers take time; the store can be away, slow, or throttling; an answer can be lost *after* the bytes were stored, and
an upload in parts can be left half made. Which of these happens when is drawn from a seeded source or ordered by a
test, so that a failing run replays exactly. It keeps the promises of `interfaces.objects.ObjectStore` all the same, and
remembers what was asked of it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from nephila.interfaces.objects import ObjectBody, ObjectInfo
from nephila.model.errors import ObjectChangedError, ObjectExistsError, StoreAwayError, StoreRefusedError

PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Weather:
    """How badly a store behaves: a chance for each fault, and how long things take."""

    latency_s: float = 0.05
    bytes_per_s: float = 50_000_000.0
    lost_before: float = 0.0
    """The connection breaks before the object is stored."""
    lost_after: float = 0.0
    """The object is stored and the answer does not arrive."""
    slow_down: float = 0.0
    """503 SlowDown."""
    half_made: float = 0.0
    """An upload in parts is begun and breaks: its parts stay until somebody aborts them."""


FAIR = Weather()
STORMY = Weather(latency_s=0.3, bytes_per_s=2e6, lost_before=0.15, lost_after=0.15, slow_down=0.15, half_made=0.1)


@dataclass
class SimulatedObjectStore:
    """Implements `interfaces.objects.ObjectStore`. Objects outlive whoever wrote them: crawls come and go."""

    seed: int = 0
    weather: Weather = FAIR
    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    """Bytes and digest by key."""
    holes: dict[str, int] = field(default_factory=dict)
    """Where objects tell what they lack, of those that lack something."""
    half_made: list[str] = field(default_factory=list)
    """Keys of uploads in parts that were begun and not completed."""
    away: bool = False
    refuses: str = ""
    """A sentence: credentials or permissions are wrong."""
    stored: Callable[[str], None] = lambda _key: None
    """Called right after an object was stored, before the answer leaves: a test may end the world there."""
    asked: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    most_under_way: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311 - faults, not secrets

    async def create(self, key: str, body: ObjectBody) -> None:
        """As the interface."""
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._answer("create", body.size)
            if self._draw.random() < self.weather.half_made:
                self.half_made.append(key)
                raise StoreAwayError("the connection broke between two parts")
            if self._draw.random() < self.weather.lost_before:
                raise StoreAwayError("the connection broke while the object was sent")
            if key in self.objects:
                raise ObjectExistsError("there is an object under this key already")
            pieces = [body.read_at(start, PIECE_BYTES) for start in range(0, body.size, PIECE_BYTES)]
            self.objects[key] = (b"".join(pieces)[: body.size], body.digest)
            self.holes[key] = body.holes
            self.stored(key)
            if self._draw.random() < self.weather.lost_after:
                raise StoreAwayError("the object was stored and its answer lost")
        finally:
            self.under_way -= 1

    async def replace(self, key: str, was: str, body: ObjectBody) -> None:
        """As `interfaces.objects.RewritingStore`."""
        await self._answer("replace", body.size)
        if self.objects.get(key, (b"", ""))[1] not in {was, body.digest}:
            raise ObjectChangedError(f"{key} is not the object any more that was to be replaced")
        self.objects[key] = (body.read_at(0, body.size), body.digest)
        self.holes[key] = body.holes
        self.stored(key)

    async def look(self, key: str) -> ObjectInfo | None:
        """As the interface."""
        await self._answer("look")
        found = self.objects.get(key)
        return None if found is None else ObjectInfo(len(found[0]), found[1], self.holes.get(key, 0))

    def read(self, key: str, start: int, size: int) -> bytes:
        """As the interface; takes no time."""
        self.asked["read"] += 1
        self._check()
        if key not in self.objects:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
        return self.objects[key][0][start : start + size]

    async def keys(self, prefix: str) -> list[str]:
        """As the interface."""
        await self._answer("keys")
        return sorted(key for key in self.objects if key.startswith(prefix))

    async def abort_unfinished(self, prefix: str) -> int:
        """As the interface."""
        await self._answer("abort_unfinished")
        ours = [key for key in self.half_made if key.startswith(prefix)]
        self.half_made = [key for key in self.half_made if not key.startswith(prefix)]
        return len(ours)

    async def close(self) -> None:
        """As the interface: there is nothing to let go of."""

    async def _answer(self, verb: str, size: int = 0) -> None:
        """Let the time of an answer pass, and whatever the weather brings."""
        self.asked[verb] += 1
        weather = self.weather
        await asyncio.sleep(weather.latency_s * (0.5 + self._draw.random()) + size / weather.bytes_per_s)
        self._check()
        if self._draw.random() < weather.slow_down:
            raise StoreAwayError("the archive's store is busy (503 SlowDown)")

    def _check(self) -> None:
        if self.away:
            raise StoreAwayError("the archive's store does not answer: connection refused")
        if self.refuses:
            raise StoreRefusedError(self.refuses, hint="mend it")

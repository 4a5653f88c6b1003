"""Events of all workers, for whoever reads along from anywhere (C1, O1): a bounded stream on the server they share.

The whole account stands in each worker's event files. Here come some of it: as many a second as `fleet.events_per_s`
says of the whole fleet, rare kinds before frequent ones, and a count of what was left out. A worker keeps no more than
that in memory, encodes only what it tells, and does nothing but drop events while the server is away.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from nephila.interfaces.shared import SharedState
from nephila.model.errors import EngineAwayError, NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.settings import FleetSettings
from nephila.observe.line import LineEncoder

from .registry import check_crawl_name

TELL_S = 1.0
LEAST = 2
"""Events that a worker may always tell in a second, however many there are."""
KEPT = 10_000
"""Events in the stream, about: some four megabytes."""
READ_AT_ONCE = 1000
_ID = re.compile(r"\d{1,15}-\d{1,15}")

_TELL = """
for at = 2, #ARGV, 3 do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'k', ARGV[at], 's', ARGV[at + 1], 'e', ARGV[at + 2])
end
return 1
"""


def stream_key(crawl: str) -> str:
    """Where the events of a crawl are."""
    return f"nephila:{{{check_crawl_name(crawl)}}}:events"


class Broadcast:
    """An `EventSink` of a worker, and what tells the others."""

    def __init__(self, state: SharedState, settings: FleetSettings, worker: str, started_at: int) -> None:
        self._state = state
        self._key = stream_key(settings.crawl)
        self._encoder = LineEncoder(started_at, worker)
        self._per_s = settings.events_per_s
        """Events of the whole fleet in a second."""
        self._kept: dict[EventKind, deque[Event]] = {}
        self._seen = 0
        self.alive = 1
        """Workers that are at work, as was heard last."""

    @property
    def most(self) -> int:
        """Events that this worker may tell at once."""
        return max(LEAST, self._per_s // max(1, self.alive)) if self._per_s else 0

    def emit(self, event: Event) -> None:
        """Keep it, in place of an older one of its kind where there are too many."""
        self._seen += 1
        kept = self._kept.get(event.kind)
        if kept is None:
            kept = self._kept[event.kind] = deque(maxlen=max(LEAST, self._per_s))
        kept.append(event)

    def flush(self) -> None:
        """What is kept is told by `run`."""

    def close(self) -> None:
        """Nothing is open."""

    async def run(self) -> None:
        """Tell, until cancelled."""
        while True:
            await asyncio.sleep(TELL_S)
            try:
                await self.tell()
            except NephilaError:
                continue  # these are in the event files only

    async def tell(self) -> None:
        """Tell what was chosen of what has come, and forget the rest."""
        chosen, skipped = self._chosen()
        if not chosen:
            return
        words: list[str | bytes | int] = [KEPT]
        for event in chosen:
            line = bytearray()
            self._encoder.append(event, line)
            words += (event.kind, skipped, bytes(line[:-1]))
            skipped = 0  # it is told once
        await self._state.run(_TELL, [self._key], words)

    def _chosen(self) -> tuple[list[Event], int]:
        """Some of each kind, the rarest first, in the order of time; and how many others there were."""
        kinds, self._kept = sorted(self._kept.values(), key=len), {}
        seen, self._seen = self._seen, 0
        left, found = self.most, list[Event]()
        for place, kept in enumerate(kinds):
            some = min(len(kept), max(1, left // (len(kinds) - place)))
            if left <= 0:
                break
            found += list(kept)[-some:]
            left -= some
        return sorted(found, key=lambda event: event.at), seen - len(found)


class StreamLine(NamedTuple):
    """An event out of the stream."""

    id: str
    kind: str
    text: bytes
    skipped: int


class StreamTail:
    """An `EventTail` of a fleet's crawl."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state = state
        self._key = stream_key(crawl)
        self._last = "0-0"

    async def begin(self, after: str, backlog: int) -> list[StreamLine]:
        """As the interface."""
        if _ID.fullmatch(after):
            self._last = after
            return []
        try:
            found = await self._state.call("XREVRANGE", self._key, "+", "-", "COUNT", max(1, backlog))
        except EngineAwayError:
            return []
        lines = [_line(entry) for entry in reversed(found)]
        if lines:
            self._last = lines[-1].id
        return lines[-backlog:] if backlog else []

    async def look(self) -> list[StreamLine]:
        """As the interface. A server that is away has nothing new to tell."""
        try:
            found = await self._state.call("XRANGE", self._key, f"({self._last}", "+", "COUNT", READ_AT_ONCE)
        except EngineAwayError:
            return []
        lines = [_line(entry) for entry in found]
        if lines:
            self._last = lines[-1].id
        return lines


def _line(entry: Sequence[Any]) -> StreamLine:
    number, fields = entry
    told = dict(zip(fields[::2], fields[1::2], strict=True))
    return StreamLine(number.decode(), told[b"k"].decode(), told[b"e"], int(told[b"s"]))

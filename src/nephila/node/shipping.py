"""The shipper: carries closed segments and their indexes from the spool to the store of objects (W2).

Segments go one after the other, in the order in which they were closed: a capture refers to what was stored before it,
and must not lie in the store while that lies in the spool alone (D2). The client sends the parts of one at once. Where
several files are open at once no order would do: there captures refer to what has arrived and nothing else (see
`spooled_books`), and a few files are sent at once, when those that an earlier run left have arrived. Indexes go beside.

One that fails is tried again for ever, with doubling, jittered pauses; while the store is away only one is tried at a
time. Whether an upload whose answer was lost had arrived is found out by looking: same key, same size, same digest.
Nothing is ever overwritten.

It also watches how much waits. When the spool is full, `is_full` holds whoever claims back until there is room again.

Uploads run in threads of the store's client; here is only the deciding, on the loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import (
    NephilaError,
    ObjectExistsError,
    ObjectStoreError,
    StorageError,
    StoreAwayError,
    StoreRefusedError,
)
from nephila.model.events import Event, EventKind
from nephila.model.record import SegmentId
from nephila.model.settings import SpoolSettings
from nephila.model.summary import SpoolStanding
from nephila.store import MARKER, ArchivePlace, SpooledArchive, index_name

from .memory import failure_of

MEASURE_S = 1.0
ROOM_SHARE = 0.9
"""A full spool has room again when it is down to this share of what it may hold."""
TELL_AFTER = 3
"""Failures in a row: a single one is nobody's concern."""
START_TRIES = 4
HURRY_S = 2.0
"""How long an upload may still take after Ctrl-C."""


@dataclass(slots=True)
class Parcel:
    """One file on its way."""

    segment: SegmentId
    name: str
    again: bool
    """It may have arrived before: look first."""

    @property
    def is_index(self) -> bool:
        """Whether it is the index, which follows its segment."""
        return self.name != self.segment


@dataclass(slots=True)
class Line:
    """Parcels of one kind, taken in their order."""

    parcels: deque[Parcel] = field(default_factory=deque)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    is_broken: bool = False
    """One of them cannot be brought; what must not overtake it stays in the spool."""


class Shipper:
    """One for each process that has an archive in a store. Its tasks are its own, and end with `close`."""

    def __init__(
        self,
        archive: SpooledArchive,
        objects: ObjectStore,
        place: ArchivePlace,
        settings: SpoolSettings,
        uploads: int,
        clock: Clock,
        events: EventSink,
        draw: random.Random,
    ) -> None:
        self._archive = archive
        self._objects = objects
        self.place = place
        self._settings = settings
        self._uploads = uploads
        self._clock = clock
        self._events = events
        self._draw = draw
        self._segments, self._indexes = Line(), Line()
        self._left: set[SegmentId] = set()
        """Segments of an earlier run that have not arrived: those of this one may refer to them."""
        self._watching: asyncio.Task[None] | None = None
        self._failures = 0
        self._told = False
        self._retry_at = 0.0
        self._measured_at = float("-inf")
        self._give_up_at = float("inf")
        self._one_at_a_time = asyncio.Lock()
        self._progress = asyncio.Event()
        self._acknowledged: list[Callable[[], None]] = []
        self._room: list[Callable[[], None]] = []
        self._asks_first = False
        self.fail: Callable[[NephilaError], None] = _raise
        """Told of what cannot be mended by waiting."""
        self.in_order = True
        """Whether no segment may be in the store before those that were closed before it."""
        self.standing = SpoolStanding(str(place))
        """As of the last measurement."""
        self.is_hurried = False

    # For those who wait

    @property
    def is_full(self) -> bool:
        """Whether nothing new should be fetched."""
        return self.standing.full

    @property
    def is_busy(self) -> bool:
        """Whether something is on its way, or waits to be."""
        return any(line.parcels or line.tasks for line in (self._segments, self._indexes))

    @property
    def was_cut_short(self) -> bool:
        """Whether somebody wanted it to end, and something stays behind because of that."""
        return self.is_hurried and self.standing.segments > 0

    @property
    def has_given_up(self) -> bool:
        """Whether nobody waits for the rest any more."""
        return asyncio.get_running_loop().time() >= self._give_up_at

    def on_acknowledged(self, listener: Callable[[], None]) -> None:
        """Call `listener` when an upload was acknowledged."""
        self._acknowledged.append(listener)

    def on_room(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a full spool has room again."""
        self._room.append(listener)

    def give_up_in(self, seconds: float) -> None:
        """The end has come: how long the rest may take."""
        wait_s = HURRY_S if self.is_hurried else seconds
        self._give_up_at = min(self._give_up_at, asyncio.get_running_loop().time() + wait_s)

    def hurry(self) -> None:
        """Somebody wants it to end now; what is not uploaded within a moment stays in the spool."""
        self.is_hurried = True
        if self._give_up_at != float("inf"):
            self.give_up_in(HURRY_S)
        self._progress.set()

    async def progress(self, at_most_s: float) -> None:
        """Wait until something has arrived since the last call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._progress.wait()
        self._progress.clear()

    # The beginning

    async def begin(self, crawl: str, files: str, *, is_new: bool) -> None:
        """Find out whether the store takes what will be brought, and claim the prefix, before anything is fetched.

        `files` is how the names of its files begin, if they all do so. Raises `ObjectStoreError` with a sentence. A
        crawl that goes on does so while the store is away: it spools.
        """
        self._archive.clean()
        for attempt in range(1, START_TRIES + 1):
            try:
                await self._claim(f"nephila crawl {crawl}\n".encode())
                if files:  # else what is half made may be another crawl's
                    await self._objects.abort_unfinished(self.place.key(files))
            except StoreAwayError as error:
                if attempt < START_TRIES:
                    await asyncio.sleep(self._pause_s(attempt))
                elif is_new:
                    raise
                else:
                    self._stumbled(error, at_once=True)
            else:
                return

    async def _claim(self, marker: bytes) -> None:
        key = self.place.key(MARKER)
        digest = sha256(marker).hexdigest()
        body = ObjectBody(len(marker), digest, lambda offset, size: marker[offset : offset + size])
        loop = asyncio.get_running_loop()
        for _ in range(2):
            # Listing is asked for first: a bucket that does not exist is told by some servers only there.
            if key in await self._objects.keys(key):
                found = await loop.run_in_executor(None, self._objects.read, key, 0, len(marker) + 1)
                if found != marker:
                    raise StoreRefusedError(
                        f"{self.place} holds the archive of another crawl", hint="choose another prefix for --archive"
                    )
            try:
                await self._objects.create(key, body)
            except ObjectExistsError:
                if key in await self._objects.keys(key):
                    found = await loop.run_in_executor(None, self._objects.read, key, 0, len(marker) + 1)
                    if found == marker:
                        return
        self._asks_first = True
        self._tell(
            "store_overwrites",
            "the archive's store does not know If-None-Match: it is asked before every upload whether a key is taken",
        )

    # Uploads

    def ship(self, segment: SegmentId, *, again: bool = False) -> None:
        """Upload a closed segment, and acknowledge it to the archive then."""
        if again:
            self._left.add(segment)
        self._add(Parcel(segment, segment, again))

    def ship_index(self, segment: SegmentId) -> None:
        """Upload the index of a segment that is there, and remove both from the spool then."""
        self._add(Parcel(segment, index_name(segment), again=True))

    @property
    def _keeps_order(self) -> bool:
        """Whether segments must not overtake each other now."""
        return self.in_order or bool(self._left)

    def _add(self, parcel: Parcel) -> None:
        line = self._indexes if parcel.is_index else self._segments
        if not line.is_broken:
            line.parcels.append(parcel)
            self._begin_work(line)

    def _begin_work(self, line: Line) -> None:
        at_once = 1 if line is self._segments and self._keeps_order else self._uploads
        if line.parcels and len(line.tasks) < at_once:
            task = asyncio.create_task(self._work(line), name=f"ship-{line.parcels[0].segment}")
            line.tasks.add(task)
            task.add_done_callback(partial(self._ended, line))

    def _ended(self, line: Line, task: asyncio.Task[None]) -> None:
        line.tasks.discard(task)
        self._progress.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(failure_of(error, "an upload"))
            if line is self._segments and self._keeps_order:
                line.is_broken = True
                line.parcels.clear()
        self._begin_work(line)  # the others shall arrive all the same

    async def _work(self, line: Line) -> None:
        while line.parcels:
            await self._deliver(line.parcels.popleft())
            self._begin_work(line)

    async def _deliver(self, parcel: Parcel) -> None:
        loop = asyncio.get_running_loop()
        body = await loop.run_in_executor(None, self._archive.body, parcel.name)
        while not await self._tried(parcel, body):
            parcel.again = True
        if parcel.is_index:
            await loop.run_in_executor(None, self._archive.remove, parcel.segment)
            if self.is_full:
                await self.measure(at_once=True)
        else:
            self._left.discard(parcel.segment)
            self._archive.acknowledge(parcel.segment, body.size)
            for listener in self._acknowledged:
                listener()
        self._progress.set()

    async def _tried(self, parcel: Parcel, body: ObjectBody) -> bool:
        """Try once, alone while the store is known to be away; whether it has arrived."""
        if not self._failures:
            return await self._attempt(parcel, body)
        async with self._one_at_a_time:
            loop = asyncio.get_running_loop()
            if self._failures and (wait_s := self._retry_at - loop.time()) > 0:
                await asyncio.sleep(wait_s)
            return await self._attempt(parcel, body)

    async def _attempt(self, parcel: Parcel, body: ObjectBody) -> bool:
        try:
            arrived = await self._bring(parcel, body)
        except (StoreAwayError, StoreRefusedError) as error:
            self._stumbled(error, at_once=isinstance(error, StoreRefusedError))
            return False
        self._recovered()
        return arrived

    async def _bring(self, parcel: Parcel, body: ObjectBody) -> bool:
        key = self.place.key(parcel.name)
        if parcel.again or self._asks_first:
            found = await self._objects.look(key)
            if found is not None:
                if (found.size, found.digest) != (body.size, body.digest):
                    self._clash(parcel, key)
                return True
        try:
            await self._objects.create(key, body)
        except ObjectExistsError:
            return False  # perhaps an answer that was lost: the next try looks
        return True

    def _clash(self, parcel: Parcel, key: str) -> None:
        sentence = f"s3://{self.place.bucket}/{key} holds something else than what was to be stored there"
        if parcel.is_index:  # it can be made from its segment at any time
            self._tell("index_differs", f"{sentence}: it is left as it is")
        else:
            raise StorageError(sentence, hint="find out who writes there; the segment stays in the spool")

    # The store's moods

    def _pause_s(self, failures: int) -> float:
        longest: float = min(self._settings.retry_max_s, self._settings.retry_s * 2 ** min(failures - 1, 30))
        return longest * self._draw.uniform(0.5, 1.0)

    def _stumbled(self, error: ObjectStoreError, *, at_once: bool) -> None:
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + self._pause_s(self._failures)
        self.standing = replace(self.standing, away=str(error))
        if not self._told and (at_once or self._failures >= TELL_AFTER):
            self._told = True
            kind = "store_refuses" if isinstance(error, StoreRefusedError) else "store_away"
            hint = f" ({error.hint})" if error.hint else ""
            self._tell(kind, f"{error}{hint}; what is fetched waits in the spool meanwhile")

    def _recovered(self) -> None:
        self._failures = 0
        self.standing = replace(self.standing, away="")
        if self._told:
            self._told = False
            self._tell("store_back", f"the archive's store takes uploads again; {self.standing.words()} wait")

    # The spool's size

    async def measure(self, *, at_once: bool = False) -> None:
        """Look how much waits, at most once a second."""
        loop = asyncio.get_running_loop()
        if not at_once and loop.time() - self._measured_at < MEASURE_S:
            return
        self._measured_at = loop.time()
        found = await loop.run_in_executor(None, self._archive.standing, self._clock.wall_ms())
        free = await loop.run_in_executor(None, self._archive.free)
        limit = min(self._settings.max_bytes, int(self._settings.max_share * (free + found.bytes)))
        was_full = self.standing.full
        is_full = found.bytes >= (limit * ROOM_SHARE if was_full else limit)
        self.standing = replace(found, place=str(self.place), away=self.standing.away, full=is_full)
        if is_full and not was_full:
            self._tell("spool_full", f"the spool is full ({found.words()}): fetching waits until there is room")
            self._watching = self._watching or asyncio.create_task(self._watch(), name="spool")
        elif was_full and not is_full:
            self._tell("spool_room", f"the spool has room again ({found.words()}): fetching goes on")
            for listener in self._room:
                listener()

    async def _watch(self) -> None:
        """A full spool may be emptied by another process."""
        try:
            while self.is_full:
                await asyncio.sleep(MEASURE_S)
                await self.measure()
        except NephilaError as error:
            self.fail(error)
        finally:
            self._watching = None

    def _tell(self, reason: str, detail: str) -> None:
        self._events.emit(Event(EventKind.WARNING, self._clock.wall_ms(), reason=reason, detail=detail))

    async def close(self) -> None:
        """Break off what is under way: it stays in the spool."""
        tasks = [*self._segments.tasks, *self._indexes.tasks]
        tasks += [self._watching] if self._watching is not None else []
        for line in (self._segments, self._indexes):
            line.parcels.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._objects.close()


def _raise(error: NephilaError) -> None:
    raise error

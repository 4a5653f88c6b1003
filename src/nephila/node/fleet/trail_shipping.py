"""Carrying a worker's evidence to the store: event files that are done, and its chain in stretches (K1, W2).

An auditor has neither the worker's disk nor its word. So event files are closed like archive files, by age or size, and
uploaded; then the stretch of the chain that has grown since the last time, which seals them and the archives. When a
file has arrived the chain says so: from then on it must be there. Nothing is uploaded twice under different names, so
whatever is cut off is simply done again; what the store has already is found by looking.

The chain of a worker also notes the heads of all others' chains, when the worker begins and when it ends: a trail that
is taken away as a whole is missed by those who have met it.

A store that is away is waited for: files stay, and the next look tries again. It never holds up a crawl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from nephila.engines.disk import LookingDisk
from nephila.interfaces.clock import Clock
from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import ObjectExistsError, ObjectStoreError, StorageError
from nephila.model.settings import SpoolSettings
from nephila.node.directory import CrawlDirectory
from nephila.node.evidence import Evidence
from nephila.observe.eventfile import event_files
from nephila.store import ArchivePlace
from nephila.store.stored_chain import StoredChain
from nephila.store.trail import EVENTS, FIRST, SUFFIX, raw_lines
from nephila.store.trail_line import read_line
from nephila.store.trail_place import TrailListing, events_key, stretch_key

LOOK_S = 1.0
LAST_S = 15.0
"""How long the end of a worker waits for the store to take the rest."""
HASH_BYTES = 1 << 20

T = TypeVar("T")


class TrailShipper:
    """One for each worker. `begin` before anything is fetched, `run` beside the work, then three steps at the end."""

    def __init__(
        self,
        directory: CrawlDirectory,
        evidence: Evidence,
        owner: str,
        store: tuple[ObjectStore, ArchivePlace],
        settings: SpoolSettings,
        clock: Clock,
        tell: Callable[[str, str], None],
    ) -> None:
        """`store` is for this one alone: it is closed in the end."""
        self._directory = directory
        self._evidence = evidence
        self._owner = owner
        self._objects, self._place = store
        self._settings = settings
        self._clock = clock
        self._tell = tell
        self._disk = LookingDisk()
        self._rolled_at = self._shipped_at = clock.steady_ms()
        self._next = 0
        """The first line of the chain that is not in the store."""
        self._offset = 0
        """Where it begins."""
        self._is_unsure = False
        """Whether a stretch may have arrived of which that is not known: no line may lie there in two."""
        self._under_way: asyncio.Task[None] | None = None
        self._carried: list[Path] = []
        """Event files that have arrived since the last line was carried."""
        self._away = ""
        self._give_up_at = float("inf")

    async def begin(self) -> None:
        """Take up where the last run left off, note what others have, and let the store know the chain."""
        with self._patiently():
            await self._take_up()
            await self._note_others()
            await self._ship_chain()

    async def run(self) -> None:
        """Carry what there is, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Close the event file if it is due, and carry what has grown if that is."""
        now, age_ms = self._clock.steady_ms(), int(self._settings.segment_age_s * 1000)
        _, size = self._evidence.sink.writing
        if size and (now - self._rolled_at >= age_ms or size >= self._settings.segment_bytes):
            self._evidence.sink.roll()
            self._rolled_at = now
        if now - self._shipped_at >= age_ms:
            self._shipped_at = now
            self._under_way = asyncio.create_task(self._carry(), name="trail-carrying")
            await asyncio.shield(self._under_way)

    def hurry(self) -> None:
        """Carry what there is with the next look."""
        self._shipped_at = self._clock.steady_ms() - int(self._settings.segment_age_s * 1000)

    def left(self) -> list[Path]:
        """Event files that are not in the store, or may not be. Blocks; may run in a thread."""
        return events_left(self._directory)

    # The end

    async def leave(self) -> None:
        """Nothing more is fetched: note what others have by now. The rest may take a while, and no longer."""
        self._give_up_at = asyncio.get_running_loop().time() + LAST_S
        with self._patiently():
            async with asyncio.timeout_at(self._give_up_at):
                if self._under_way is not None:
                    await self._under_way
                await self._note_others()

    async def carry_events(self) -> None:
        """The event files are closed, the chain is not: what arrives now is noted in it."""
        with self._patiently():
            async with asyncio.timeout_at(self._give_up_at):
                self._carried = await self._ship_events()

    async def finish(self) -> None:
        """The chain is closed, too: carry its end. What does not arrive is carried by the next run."""
        try:
            with self._patiently():
                async with asyncio.timeout_at(self._give_up_at):
                    await self._ship_chain()
                    for path in self._carried:  # the chain says that they have arrived
                        path.unlink(missing_ok=True)
        finally:
            await self._objects.close()

    # -- parts

    async def _carry(self) -> None:
        """Never cut off in the middle, but by the end of all patience: an upload goes on though nobody waits for it."""
        with self._patiently():
            if self._away:
                await self._take_up()
                self._away = ""
            await self._ship()

    async def _ship(self) -> None:
        await self._seal()
        writing, _ = self._evidence.sink.writing
        arrived = await self._ship_events(but=writing)
        await self._seal()  # what has arrived is in the chain, and need not be here
        for path in arrived:
            path.unlink(missing_ok=True)
        await self._ship_chain()

    async def _seal(self) -> None:
        """Events are written where they are told, on the loop: in a thread some could be lost between two steps."""
        self._evidence.sink.flush()
        await self._in_thread(partial(self._evidence.trail.seal, now=True))

    async def _ship_events(self, but: str = "") -> list[Path]:
        """Carry the event files, but for the one that is being written; those that have arrived."""
        found = []
        for path in event_files(self._directory.events):
            if path.name != but and (size := path.stat().st_size):
                body = await self._in_thread(partial(_body, path, 0, size))
                await self._bring(events_key(self._place, self._owner, path.name), body)
                self._evidence.trail.arrived(f"{EVENTS}/{path.name}")
                found.append(path)
        return found

    async def _ship_chain(self) -> None:
        """Carry what the chain has grown by."""
        if self._is_unsure:
            await self._take_up()
        end, last, head = self._evidence.trail.mark()
        if last >= self._next:
            body = await self._in_thread(partial(_body, self._chain, self._offset, end))
            self._is_unsure = True
            await self._bring(stretch_key(self._place, self._owner, self._next, last, head), body)
            self._next, self._offset, self._is_unsure = last + 1, end, False

    async def _take_up(self) -> None:
        """Find out up to where the store has the chain."""
        prefix = self._place.key(f"trail/{self._owner}/chain-")
        stretches = TrailListing(self._place, await self._objects.keys(prefix)).chains.get(self._owner, [])
        self._next = max((stretch.last + 1 for stretch in stretches), default=0)
        self._offset = await self._in_thread(partial(self._where, self._next))
        self._is_unsure = False

    def _where(self, number: int) -> int:
        """Where a line of the chain begins; its end for one that is not there yet."""
        end = 0
        for offset, data in raw_lines(self._disk, self._chain):
            line = read_line(data)
            if line is not None and line.n == number:
                return offset
            end = offset + len(data)
        return end

    async def _note_others(self) -> None:
        listing = TrailListing(self._place, await self._objects.keys(self._place.key("trail/")))
        heads = {owner: head for owner, head in listing.heads().items() if owner != self._owner}
        await self._in_thread(partial(self._evidence.trail.note, heads))

    async def _bring(self, key: str, body: ObjectBody) -> None:
        """Store an object, unless it is there; raises `StorageError` where something else is."""
        try:
            await self._objects.create(key, body)
        except ObjectExistsError as error:
            found = await self._objects.look(key)
            if found is not None and (found.size, found.digest) == (body.size, body.digest):
                return
            if not await self._in_thread(partial(self._was_rewritten, key, body)):
                raise StorageError(
                    f"s3://{self._place.bucket}/{key} holds something else than what was to be stored there",
                    hint="find out who writes there: another worker, on a copy of this one's directory?",
                ) from error

    def _was_rewritten(self, key: str, body: ObjectBody) -> bool:
        """Whether a takedown has rewritten what had arrived before this worker knew of it (K2)."""
        file = f"{self._owner}/{EVENTS}/{key.rpartition('/')[2]}"
        receipts, _ = StoredChain(self._objects, self._place, self._clock).receipts()
        return any(one.file == file and one.was == (body.size, body.digest) for _, one in receipts)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, act)

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """A store that is away, or takes too long at the end, is told of once; the rest waits on the disk."""
        try:
            yield
        except (ObjectStoreError, TimeoutError) as error:
            if not self._away:
                told = str(error) or "the archive's store does not answer"
                self._tell("trail_waits", f"{told}; event files and chain wait in the worker's directory meanwhile")
            self._away = str(error) or "no answer"

    @property
    def _chain(self) -> Path:
        return self._directory.chain / (FIRST + SUFFIX)


def events_left(directory: CrawlDirectory) -> list[Path]:
    """The event files in a worker's directory that hold anything. Blocks."""
    found = []
    for path in event_files(directory.events):
        with suppress(FileNotFoundError):  # it has just arrived
            if path.stat().st_size:
                found.append(path)
    return found


def _body(path: Path, start: int, end: int) -> ObjectBody:
    """A stretch of a file as an object. Blocks."""
    digest = sha256()
    for piece in _pieces(path, start, end):
        digest.update(piece)

    def read_at(offset: int, count: int) -> bytes:
        with path.open("rb") as stream:
            stream.seek(start + offset)
            return stream.read(min(count, end - start - offset))

    return ObjectBody(end - start, digest.hexdigest(), read_at)


def _pieces(path: Path, start: int, end: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            while start < end and (piece := stream.read(min(HASH_BYTES, end - start))):
                start += len(piece)
                yield piece
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error

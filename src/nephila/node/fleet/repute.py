"""How the ranks of domains reach the workers of a fleet (R3): one object beside the archive, replaced now and then.

    PREFIX/rank/domains.grades

Whoever computes ranks puts it there (`publish`), whole or not at all. Every worker looks once a minute whether it is
another one and brings it to its own disk (`Follower`), where the frontier's side of the worker has it mapped. Nothing
depends on it: without the object, or with a store that is away, a worker scores by the ranks it has, or by what is
counted online.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from nephila.frontier.redis import RedisFrontier
from nephila.frontier.referral import HIGHEST_GRADE
from nephila.interfaces.clock import Clock
from nephila.interfaces.objects import ObjectBody, ObjectInfo, ObjectStore, RewritingStore
from nephila.model.errors import ObjectStoreError, StorageError, StoreAwayError
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.importance.grades import FileGrades
from nephila.ranking import GRADES, DamagedFileError, DomainGrades, GradesAfar
from nephila.ranking.sections import DRAFT
from nephila.store import ArchivePlace
from nephila.urls import registrable_domain

LOOK_S = 60.0
"""How often a worker looks whether there are other ranks: a request that costs next to nothing."""
_PIECE_BYTES = 8 << 20
MOST_AFAR = 64
"""Domains that a command asks the store for, some 64 KB each, before it brings all of them."""
PATIENCE_S = 10.0
"""How long a command waits for a store that does not answer, before it does without."""


def key_of(place: ArchivePlace) -> str:
    """Where the grades of a crawl are."""
    return place.key(f"rank/{GRADES}")


async def publish(objects: RewritingStore, place: ArchivePlace, path: Path) -> bool:
    """Put a file of grades in place for all workers; False where it is there already. Raises `StorageError`."""
    body, key = _body(path), key_of(place)
    found = await objects.look(key)
    if found is None:
        await objects.create(key, body)
    elif found.digest == body.digest:
        return False
    else:
        await objects.replace(key, found.digest, body)
    return True


class Follower:
    """Brings what is published to this machine. `grades` is what the frontier asks."""

    def __init__(
        self, folder: Path, objects: ObjectStore, place: ArchivePlace, clock: Clock, warn: Callable[[str, str], None]
    ) -> None:
        """`warn` hears, once, why ranks cannot be had. A store that is away is told of by those who need it."""
        self._path = folder / GRADES
        self._objects = objects
        self._key = key_of(place)
        self._warn = warn
        self._has_failed = False
        self._have = ""
        self.grades = FileGrades(self._path, DomainGrades, clock.steady_ms)

    def serve(self, frontier: RedisFrontier, stack: AsyncExitStack) -> Self:
        """Let a frontier score by what is here now, and what will be, until `stack` ends."""
        self.grades.identity = identity_of(frontier.secret)
        stack.callback(self.grades.close)
        frontier.heed(self.grades)
        return self

    def begin(self, frontier: RedisFrontier, stack: AsyncExitStack) -> None:
        """The same, with a task of its own that looks."""
        task = asyncio.create_task(self.serve(frontier, stack).run(), name="ranks")
        stack.push_async_callback(_end, task)

    async def run(self) -> None:
        """Until it is cancelled."""
        draw = random.Random()  # noqa: S311 - not all workers at once
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S * draw.uniform(0.8, 1.2))

    async def look(self) -> None:
        """Bring the newest here, if there is another one."""
        try:
            found = await self._objects.look(self._key)
            await asyncio.to_thread(self._bring, found)
        except StoreAwayError:
            return
        except (ObjectStoreError, OSError) as error:
            if not self._has_failed:
                self._warn("rank", f"the ranks of domains cannot be had, and scores go by those that are here: {error}")
            self._has_failed = True
            return
        self._has_failed = False

    def _bring(self, found: ObjectInfo | None) -> None:
        """In a thread: a large crawl has some hundred megabytes."""
        if found is None:
            self._path.unlink(missing_ok=True)
            self._have = ""
            return
        if not self._have:
            self._have = _digest_of(self._path)
        if found.digest == self._have:
            return
        draft = self._path.with_name(GRADES + DRAFT)
        try:
            draft.parent.mkdir(parents=True, exist_ok=True)
            digest = self._copy(draft, found.size)
            if digest == found.digest:  # else it was replaced meanwhile, and is looked for again
                draft.replace(self._path)
                self._have = digest
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _copy(self, draft: Path, size: int) -> str:
        digest, at = hashlib.sha256(), 0
        with draft.open("wb") as stream:
            while at < size and (piece := self._objects.read(self._key, at, min(_PIECE_BYTES, size - at))):
                stream.write(piece)
                digest.update(piece)
                at += len(piece)
        return digest.hexdigest()


class RegionalRanks:
    """Lets the frontiers of other regions score by what is published for each: for a process that stays."""

    def __init__(self, folder: Path, objects: ObjectStore, clock: Clock, warn: Callable[[str, str], None]) -> None:
        self._folder, self._objects, self._clock, self._warn = folder, objects, clock, warn

    async def __call__(self, settings: Settings, frontier: RedisFrontier, stack: AsyncExitStack) -> None:
        """The settings are the region's. Nobody waits for its ranks: until they are here, links are counted."""
        folder, place = self._folder / settings.fleet.crawl, ArchivePlace.parse(settings.archive.url)
        Follower(folder, self._objects, place, self._clock, self._warn).begin(frontier, stack)


class PublishedRepute:
    """Implements `interfaces.repute.Repute` for whoever looks at a URL or two. Blocks; not for a loop that runs.

    A store that does not answer is as one without ranks: whoever only looks is told all the rest.
    """

    def __init__(self, objects: ObjectStore, place: ArchivePlace, identity: str) -> None:
        self._objects = objects
        self._key = key_of(place)
        self._identity = identity
        self._grades: GradesAfar | None = None

    def look(self) -> bool:
        """As the interface."""
        self._grades = None
        with suppress(ObjectStoreError, DamagedFileError, FileNotFoundError):  # away, of another crawl, just deleted
            found = asyncio.run(_looked(self._objects, self._key))
            if found is not None:
                self._grades = GradesAfar(self._read_at, found.size, self._identity)
        return self._grades is not None

    def grade_of(self, host: str) -> int | None:
        """As the interface."""
        if self._grades is None:
            return None
        try:
            return self._grades.grade_of(registrable_domain(host))
        except (ObjectStoreError, FileNotFoundError):
            return None

    def _read_at(self, offset: int, size: int) -> bytes:
        return self._objects.read(self._key, offset, size)


class VisitorRanks:
    """Implements `interfaces.repute.Repute` for a command that brings URLs, or puts some back, and ends.

    It asks the store for a domain or two; where there are many, it brings all of them here. Reading blocks: nobody else
    waits for such a process. A store that does not answer is as one without ranks.
    """

    def __init__(self, objects: ObjectStore, place: ArchivePlace, identity: str) -> None:
        self._objects = objects
        self._key = key_of(place)
        self._identity = identity
        self._size = 0
        self._afar: GradesAfar | None = None
        self._here: DomainGrades | None = None
        self._known: dict[str, int | None] = {}

    async def begin(self) -> None:
        """Look whether there are ranks: once, for a command is short."""
        with suppress(ObjectStoreError, DamagedFileError, FileNotFoundError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                found = await self._objects.look(self._key)
                if found is not None:
                    self._size = found.size
                    self._afar = await asyncio.to_thread(GradesAfar, self._read_at, found.size, self._identity)

    def look(self) -> bool:
        """As the interface."""
        return self._afar is not None or self._here is not None

    def grade_of(self, host: str) -> int | None:
        """As the interface."""
        domain = registrable_domain(host)
        if self._here is None and domain not in self._known:
            try:
                self._ask(domain)
            except (ObjectStoreError, FileNotFoundError, OSError, DamagedFileError):
                self._afar = None  # what is asked from now on goes by what is counted
                return None
        return self._known.get(domain) if self._here is None else self._here.grade_of(domain)

    def close(self) -> None:
        """Let go of what was brought."""
        if self._here is not None:
            self._here.close()

    def _ask(self, domain: str) -> None:
        if self._afar is None:
            return
        if len(self._known) >= MOST_AFAR:
            self._here = self._brought()
            return
        grade = self._afar.grade_of(domain)
        self._known[domain] = grade if grade is None or grade <= HIGHEST_GRADE else None  # replaced meanwhile

    def _brought(self) -> DomainGrades:
        """The whole file. It is gone from the disk as soon as it is mapped."""
        with TemporaryDirectory(prefix="nephila-rank-") as folder:
            path = Path(folder) / GRADES
            with path.open("wb") as stream:
                at = 0
                while at < self._size and (piece := self._read_at(at, min(_PIECE_BYTES, self._size - at))):
                    stream.write(piece)
                    at += len(piece)
            return DomainGrades(path, self._identity)

    def _read_at(self, offset: int, size: int) -> bytes:
        return self._objects.read(self._key, offset, size)


async def score_as_visitor(settings: Settings, frontier: RedisFrontier, stack: AsyncExitStack) -> None:
    """Let a frontier that a command has opened score by the ranks that are published for its crawl."""
    objects = object_store(settings, SystemClock(), uploads=1)
    stack.push_async_callback(objects.close)
    ranks = VisitorRanks(objects, ArchivePlace.parse(settings.archive.url), identity_of(frontier.secret))
    stack.callback(ranks.close)
    await ranks.begin()
    frontier.heed(ranks)


async def _looked(objects: ObjectStore, key: str) -> ObjectInfo | None:
    return await objects.look(key)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _digest_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _body(path: Path) -> ObjectBody:
    def read_at(offset: int, size: int) -> bytes:
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    try:
        return ObjectBody(path.stat().st_size, _digest_of(path), read_at)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error

"""Sealing the trail: every byte of archive and event log is hashed into a chain, so that later changes are noticed.

Each writing process keeps a chain of its own, `chain/wN.jsonl`, and adds a line at most once a second: which stretches
of which files have grown, and their hashes. What a line seals was synced before; the line is synced too. So after any
crash the files hold at least what the chain says, and what they hold beyond is simply not sealed yet: recovery, or the
next run, seals what it keeps.

The first process of a crawl (number 0: the only one, or the one that supervises) also seals what others left behind,
notes the heads of their chains, and says when a run ended well. From then on nothing may be unsealed. A run did not end
well that missed something which was to be sealed: all of the directory may have been moved.

The hashing runs where the archive is synced, beside the event loop, over bytes that are still in the page cache.

What must stay true: no line is written before its bytes are durable; a file's seals tile it from its first byte on; a
line that was written is never changed, and only a torn last one is cut off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile, LocalDisk
from nephila.interfaces.clock import Clock
from nephila.model.errors import StorageError

from .rotation import INDEX_SUFFIX, WARC_SUFFIXES, index_name
from .trail_line import NO_HASH, Receipt, Seal, TrailLine, instant, read_line, spelled

CHAINS = "chain"
ARCHIVES = "warc"
EVENTS = "events"
SUFFIX = ".jsonl"
FIRST = "w0"
"""The chain that notes the heads of the others."""

SEAL_MS = 1000
"""A line at most so often: 250 bytes and two syncs."""
_CHUNK_BYTES = 1 << 18
_WINDOW_BYTES = 1 << 16


class Trail:
    """The chain of one process. `grown` and `seal` may be called from any thread."""

    def __init__(
        self,
        root: Path,
        writer: int,
        disk: Disk,
        clock: Clock,
        event_disk: Disk | None = None,
        archives: Path | None = None,
    ) -> None:
        """`root` is the crawl directory; events may lie on another disk than the archive. Raises `StorageError`.

        `archives` is where archive files lie while they are written, if not in `warc/`: a spool.
        """
        self._root = root
        self._archives = archives or root / ARCHIVES
        self._disk = disk
        self._event_disk = event_disk or LocalDisk()
        self._clock = clock
        self._name = f"w{writer}"
        self._path = root / CHAINS / (self._name + SUFFIX)
        self._lock = threading.Lock()
        self._one_seal = threading.Lock()
        self._grown: dict[str, tuple[int, bool]] = {}
        self._sealed: dict[str, int] = {}
        """Where the seals of each file end, as far as is known; of closed files nothing."""
        self._closed: set[str] = set()
        self._looked: dict[str, int] = {}
        """Chains of others, by how long they were when they were read."""
        self._arrived: list[str] = []
        self._due_at = 0
        self._broken = False
        self._lacks = False
        """Whether something that grew could not be sealed, because it was not there any more."""
        self.event_marks: Callable[[], list[tuple[str, int]]] = list
        """Asked for event files that have grown, right before a line is written."""
        try:
            self._open()
        except OSError as error:
            raise _refused(error) from error

    # -- what others tell

    def grown(self, file: str, end: int, *, closed: bool = False) -> None:
        """A file of the crawl directory has `end` bytes, all durable (event files are synced here)."""
        with self._lock:
            self._grown[file] = (end, closed)

    def left(self, file: str, end: int) -> None:
        """A file that another process, or another run, left behind was brought in order: it ends here for good."""
        with self._one_seal:
            self._look_at_others()
        if file not in self._closed:
            self.grown(file, end, closed=True)

    def arrived(self, file: str) -> None:
        """A file has arrived in the store of objects: from the next line on it must be there."""
        with self._lock:
            self._arrived.append(file)

    def note(self, heads: dict[str, tuple[int, str]]) -> None:
        """Chains that others keep elsewhere have these lines. Raises `StorageError`."""
        if heads and not self._broken:
            with self._one_seal:
                self._append_or_refuse(heads=heads)

    def event_files(self) -> list[str]:
        """Names of the event files that the chains know, wherever they lie by now."""
        with self._one_seal:
            known = {*self._sealed, *self._closed}
        return [file.removeprefix(f"{EVENTS}/") for file in known if file.startswith(f"{EVENTS}/")]

    def mark(self) -> tuple[int, int, str]:
        """How many bytes the chain has, the number of its last line, and its hash."""
        with self._one_seal:
            return self._size, self._line - 1, self._head

    def seal(self, *, now: bool = False) -> None:
        """Write a line if one is due, or at once. Raises `StorageError` where the disk refuses; that ends the chain."""
        if self._broken or (not now and self._clock.steady_ms() < self._due_at):
            return
        with self._one_seal:
            for name, end in self.event_marks():
                self.grown(f"{EVENTS}/{name}", end)
            with self._lock:
                grown, self._grown = self._grown, {}
                arrived, self._arrived = self._arrived, []
            try:
                seals = [self._sealing(file, end, closed) for file, (end, closed) in grown.items()]
                found = [seal for seal in seals if seal is not None]
                if found or arrived:
                    self._append(seals=found, arrived=arrived)
            except OSError as error:
                self._broken = True
                raise _refused(error) from error
            self._remember(found)
            self._due_at = self._clock.steady_ms() + SEAL_MS

    def receipt(self, receipt: Receipt) -> None:
        """Say that a file is to be replaced, before it is. Raises `StorageError`."""
        with self._one_seal:
            if self._broken:
                raise _refused(OSError("it was refused before"))
            self._append_or_refuse(receipt=receipt)

    def close(self) -> None:
        """Seal what there is; the first process also what others left, and says that the run has ended."""
        try:
            self.seal(now=True)
            if self._name == FIRST and not self._broken:
                self._end()
        finally:
            with suppress(OSError):  # every line was synced when it was written
                self._file.close()

    # -- the chain

    def _open(self) -> None:
        folder = self._path.parent
        known = self._disk.names(folder)
        if self._path.name in known:
            self._file = self._disk.open(self._path)
            self._take_up()
        else:
            self._file = self._disk.create(self._path)
            self._size, self._line, self._head = 0, 0, NO_HASH
            self._disk.sync_directory(folder)
            self._disk.sync_directory(self._root)
        is_first = self._name == FIRST and self._size == 0 and not set(known) - {self._path.name}
        self._append(chain=self._name, before=self._files() if is_first else [])
        self._learn(self._path)
        self._look_at_others()
        if self._name == FIRST:
            self._seal_left()
            self._note_heads()

    def _take_up(self) -> None:
        """Go on after the last line; what a crash left torn behind it is cut off."""
        size = self._file.size()
        self._size, self._line, self._head = size, 0, NO_HASH
        for start, data in _lines_backwards(self._file, size):
            if data.endswith(b"\n"):
                line = read_line(data)
                # A whole line that is none of ours stays where it is: whoever checks the chain is to find it.
                self._line, self._head = (line.n + 1, line.hash) if line else (0, NO_HASH)
                return
            self._file.truncate(start)
            self._size = start

    def _append(
        self,
        *,
        chain: str = "",
        before: list[tuple[str, int]] | None = None,
        seals: list[Seal] | None = None,
        heads: dict[str, tuple[int, str]] | None = None,
        receipt: Receipt | None = None,
        arrived: list[str] | None = None,
        end: bool = False,
    ) -> None:
        line = TrailLine(
            n=self._line,
            at=instant(self._clock.wall_ms()),
            prev=self._head,
            chain=chain,
            before=before or [],
            seals=seals or [],
            heads=heads or {},
            receipt=receipt,
            arrived=arrived or [],
            end=end,
        )
        data, digest = spelled(line)
        try:
            self._file.append(data)
        except OSError:
            self._file.truncate(self._size)
            raise
        try:
            self._file.sync()
        except OSError:
            self._broken = True  # whether the line is there is not known: nothing may be added until somebody looks
            self._file.truncate(self._size)
            raise
        self._size += len(data)
        self._line += 1
        self._head = digest

    def _append_or_refuse(
        self, *, heads: dict[str, tuple[int, str]] | None = None, receipt: Receipt | None = None
    ) -> None:
        try:
            self._append(heads=heads, receipt=receipt)
        except OSError as error:
            raise _refused(error) from error

    # -- what is sealed

    def _sealing(self, file: str, end: int, closed: bool) -> Seal | None:
        start = self._sealed.get(file, 0)
        if end <= start:
            return (file, end, end, sha256().hexdigest(), 1) if closed and end == start else None
        try:
            return (file, start, end, self._digest(file, start, end), int(closed))
        except FileNotFoundError:
            self._lacks = True  # somebody has taken it away: the crawl goes on, and whoever checks the trail misses it
            return None

    def _digest(self, file: str, start: int, end: int) -> str:
        is_event = file.startswith(EVENTS)
        opened = (self._event_disk if is_event else self._disk).open(self._place(file))
        try:
            if is_event:
                opened.sync()
            return digest_of(opened, start, end)
        finally:
            opened.close()

    def _seal_left(self) -> None:
        """Seal event files, and archives that have their index, as far as nobody did; the others are for recovery."""
        for name, size in self._sizes(EVENTS, SUFFIX, self._event_disk):
            self.grown(f"{EVENTS}/{name}", size)
        indexes = {name for name in self._disk.names(self._archives) if name.endswith(INDEX_SUFFIX)}

        def is_left(name: str) -> bool:
            return index_name(name) in indexes and f"{ARCHIVES}/{name}" not in self._closed

        for name, size in self._sizes(ARCHIVES, WARC_SUFFIXES, self._disk, is_left):
            self.grown(f"{ARCHIVES}/{name}", size, closed=True)
        self.seal(now=True)

    def _end(self) -> None:
        try:
            self._look_at_others()
            self._seal_left()
            self._note_heads()
            if not self._lacks:
                self._append(end=True)
        except OSError as error:
            raise _refused(error) from error

    def _note_heads(self) -> None:
        heads = {}
        for name in self._disk.names(self._root / CHAINS):
            if name != self._path.name and name.endswith(SUFFIX):
                last = last_line(self._disk, self._root / CHAINS / name)
                if last is not None:
                    heads[name.removesuffix(SUFFIX)] = (last.n, last.hash)
        if heads:
            self._append(heads=heads)

    def _look_at_others(self) -> None:
        """Learn how far other chains seal the files; those that have not grown are not read again."""
        folder = self._root / CHAINS
        for name, size in self._sizes(CHAINS, SUFFIX, self._disk):
            if name != self._path.name and self._looked.get(name) != size:
                self._looked[name] = size
                self._learn(folder / name)

    def _learn(self, path: Path) -> None:
        for line in lines_of(self._disk, path):
            for file, length in line.before:
                self._sealed[file] = max(length, self._sealed.get(file, 0))
            self._remember(line.seals)

    def _remember(self, seals: list[Seal]) -> None:
        for file, _, end, _, closed in seals:
            if closed:
                self._closed.add(file)
                self._sealed.pop(file, None)
            else:
                self._sealed[file] = max(end, self._sealed.get(file, 0))

    def _files(self) -> list[tuple[str, int]]:
        """What lies in the directory before there is a chain."""
        archives = self._sizes(ARCHIVES, WARC_SUFFIXES, self._disk)
        events = self._sizes(EVENTS, SUFFIX, self._event_disk)
        return [(f"{ARCHIVES}/{name}", size) for name, size in archives] + [
            (f"{EVENTS}/{name}", size) for name, size in events
        ]

    def _place(self, file: str) -> Path:
        """Where a file lies that is called so in the chain."""
        folder, _, name = file.partition("/")
        return self._archives / name if folder == ARCHIVES else self._root / file

    def _sizes(
        self, folder: str, suffix: str | tuple[str, ...], disk: Disk, wanted: Callable[[str], bool] = lambda _name: True
    ) -> Iterator[tuple[str, int]]:
        for name in disk.names(self._archives if folder == ARCHIVES else self._root / folder):
            if name.endswith(suffix) and wanted(name):
                try:
                    file = disk.open(self._place(f"{folder}/{name}"))
                except FileNotFoundError:
                    continue  # it has left the spool meanwhile, sealed before
                try:
                    yield name, file.size()
                finally:
                    file.close()


def digest_of(file: DiskFile, start: int, end: int) -> str:
    """The SHA-256 of a stretch of a file. Raises OSError where it is shorter."""
    digest = sha256()
    while start < end:
        data = file.read_at(start, min(_CHUNK_BYTES, end - start))
        if not data:
            raise OSError(f"{end - start} bytes are missing at its end")
        digest.update(data)
        start += len(data)
    return digest.hexdigest()


def lines_of(disk: Disk, path: Path) -> Iterator[TrailLine]:
    """The lines of a chain that are whole and right; others are passed over."""
    for _, data in raw_lines(disk, path):
        line = read_line(data)
        if line is not None:
            yield line


def raw_lines(disk: Disk, path: Path) -> Iterator[tuple[int, bytes]]:
    """Where each line of a file begins, and its bytes; the last may lack its line end."""
    file = disk.open(path)
    try:
        offset, begun = 0, b""
        position = 0
        while data := file.read_at(position, _CHUNK_BYTES):
            position += len(data)
            *lines, begun = (begun + data).split(b"\n")
            for line in lines:
                yield offset, line + b"\n"
                offset += len(line) + 1
        if begun:
            yield offset, begun
    finally:
        file.close()


def last_line(disk: Disk, path: Path) -> TrailLine | None:
    """The last whole line of a chain."""
    file = disk.open(path)
    try:
        for _, data in _lines_backwards(file, file.size()):
            if data.endswith(b"\n"):
                return read_line(data)
    finally:
        file.close()
    return None


def _lines_backwards(file: DiskFile, size: int) -> Iterator[tuple[int, bytes]]:
    """The last lines of a file, the very last first."""
    window = _WINDOW_BYTES
    end = size
    while end > 0:
        start = max(0, end - window)
        data = file.read_at(start, end - start)
        cut = data.rfind(b"\n", 0, len(data) - 1)
        if cut < 0 and start > 0:
            window *= 2
            continue
        yield start + cut + 1, data[cut + 1 :]
        end = start + cut + 1


def _refused(error: OSError) -> StorageError:
    return StorageError(
        f"The chain that seals archive and events could not be written: {(error.strerror or str(error)).lower()}.",
        hint="Make room (or repair the disk) and start the same command again: it goes on where it was.",
    )

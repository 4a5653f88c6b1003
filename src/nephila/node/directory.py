"""The crawl directory: all of a crawl, and nothing of it elsewhere. Deleting it deletes the crawl.

    nephila-crawl      says that this is one, and of which format; locked while a crawl runs
    config.toml        what the crawl was asked for
    scope              what the seeds allow
    frontier/          the queue (LMDB)
    warc/              the archive: WARC files, each with its CDXJ index
    spool/             what of it waits for its upload, where the archive goes to a store of objects
    catalogue.sqlite   what was captured, in SQL
    indexed.sqlite     what others have marked as indexed, where they do
    duplicates/        contents seen (LMDB)
    near/              what pages say, to know those that say nearly the same (LMDB and sorted tables)
    aliases/           what was learned of sites: aliases, pages that stand for missing ones (LMDB)
    rendering/         what pages in browsers need of other hosts, and pages that wait for it; a cache
    rank/              the link graph, and the ranks of pages and domains; derived from the archive, may be deleted
    events/            JSON lines
    figures.json       figures over time, for charts
    changes.jsonl      what people changed while it ran or stood still: who, when, what
    chain/             hashes that seal archive and events
    takedowns/         what was to be taken out and blocked, and the proof that it was (JSON)
    plugins/           what plugins did and how often they failed, where there are any (JSON)

One `crawl` at a time holds the lock; readers need none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nephila.config import CONFIG_NAME
from nephila.engines.disk import LOCAL_DISK
from nephila.model.errors import CrawlDirectoryError, DirectoryGoneError, NephilaError, StorageError, remedy
from nephila.native import AVAILABLE, native

FORMAT = "nephila crawl directory, format 1\n"
WORKER_FILE = "worker.json"
"""What a directory of a fleet's worker has, and that of a crawl has not."""
LOST_AND_FOUND = "lost+found"
"""In every new ext4 volume, such as a container is given."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
)
"""Memory maps and locks cannot be trusted on these (LMDB's documentation says so of itself)."""


LOCK_TRIES, LOCK_PAUSE_S = 4, 0.05

MOUNTS = Path("/proc/self/mounts")


def plain_file_size(name: bytes) -> int:
    """How many bytes a file has; 0 where there is none."""
    try:
        return os.stat(name).st_size  # noqa: PTH116 - for every page: a path would be spelled anew
    except FileNotFoundError:
        return 0


file_size = native.file_size if AVAILABLE else plain_file_size


class CrawlDirectory:
    """Paths of a crawl directory, and what is done with it as a whole."""

    def __init__(self, root: Path, mounts: Path = MOUNTS) -> None:
        self.root = root
        self._mounts = mounts
        self._made: list[Path] = []
        """Directories that this crawl made, the innermost first."""
        self.is_new = False
        """Whether `held` began a crawl here."""
        self._held: os.stat_result | None = None
        """The marker, while we hold it."""
        self.marker = root / "nephila-crawl"
        self.scope = root / "scope"
        self._scope_name = os.fsencode(self.scope)
        self.frontier = root / "frontier"
        self.warc = root / "warc"
        self.spool = root / "spool"
        self.catalogue = root / "catalogue.sqlite"
        self.indexed = root / "indexed.sqlite"
        self.duplicates = root / "duplicates"
        self.near = root / "near"
        self.aliases = root / "aliases"
        self.rendering = root / "rendering"
        self.visiting = self.rendering / "visiting"
        """There while a worker of a fleet may be visiting hosts with a browser (J3)."""
        self.rank = root / "rank"
        self.events = root / "events"
        self.figures = root / "figures.json"
        self.changes = root / "changes.jsonl"
        self.chain = root / "chain"
        self.plugins = root / "plugins"
        self.takedowns = root / "takedowns"

    @property
    def has_frontier(self) -> bool:
        """Whether there is a frontier of its own."""
        return (self.frontier / "data.mdb").exists()

    def check(self) -> None:
        """Raise `CrawlDirectoryError` unless this is a crawl of a format that we read."""
        if not self.root.is_dir():
            raise CrawlDirectoryError(
                f"there is no crawl at {self.root}", hint="`nephila crawl URL --out DIR` begins one"
            )
        try:
            found = self.marker.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise CrawlDirectoryError(
                f"{self.root} is not a crawl directory", hint="name one that `nephila crawl --out` made"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise CrawlDirectoryError(f"{self.marker} cannot be read: {error}") from error
        self._check_kind()
        if found != FORMAT:
            raise CrawlDirectoryError(
                f"{self.root} was made by another version of nephila ({found.strip()[:80]!r})",
                hint="use the version that made it, or begin a new directory",
            )

    def _check_kind(self) -> None:
        """Raise `CrawlDirectoryError` where it is a worker's: the crawl is not there, and must not be begun there."""
        if (self.root / WORKER_FILE).exists():
            raise CrawlDirectoryError(
                f"{self.root} is the directory of a fleet's worker, and no crawl's",
                hint="ask the fleet's crawl: --config FILE instead of the directory; or choose another --out",
            )

    def watch(self) -> Callable[[], None]:
        """A look whether the directory that we hold is still there: open files outlive it, and would be lost.

        A worker's is that of this moment; its supervisor, who holds it, looks too.
        """
        held = self._held
        if held is None and self.marker.exists():
            held = self.marker.stat()

        def look() -> None:
            try:
                gone = held is None or not os.path.samestat(held, self.marker.stat())
            except OSError:
                gone = True
            if gone:
                raise DirectoryGoneError(
                    f"the crawl directory {self.root} was moved, or was removed or replaced, while the crawl ran",
                    hint="nothing more could be kept in it; one that was moved can be gone on with where it is now",
                )

        return look

    def saved_scope(self, start: int = 0) -> bytes:
        """What the seeds allowed so far, from the byte `start` on; empty for a new crawl."""
        try:
            with self.scope.open("rb") as stream:
                stream.seek(start)
                return stream.read()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise CrawlDirectoryError(f"{self.scope} cannot be read: {error.strerror}") from error

    def scope_size(self) -> int:
        """How many bytes of it were saved: changes whenever somebody adds to it."""
        return file_size(self._scope_name)

    def add_to_scope(self, unsaved: Callable[[], bytes]) -> None:
        """Append what was let in; durable when it returns. What a full disk or a kill left torn is cut off first."""
        lines = unsaved()
        if not lines:
            return
        try:
            with self.scope.open("ab+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)  # several processes of a crawl may widen it
                size = stream.seek(0, os.SEEK_END)
                if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                    stream.truncate(self.saved_scope().rfind(b"\n") + 1)
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise StorageError(
                f"the scope of the crawl cannot be saved: {error.strerror}", hint=remedy(error)
            ) from error

    @contextmanager
    def held(self) -> Iterator[int]:
        """Make the directory where it is not there, and hold it for one crawl.

        Yields the descriptor that the lock is on: a process that inherits it holds the directory too, however long it
        outlives this one.
        """
        self._make()
        self.check()
        try:
            descriptor = os.open(self.marker, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(error) from error
        try:
            _lock(descriptor)
            if not self.marker.exists() or not os.path.samestat(os.fstat(descriptor), self.marker.stat()):
                raise FileNotFoundError(self.marker)  # whoever held it has taken the directory back
        except OSError as error:
            os.close(descriptor)
            raise self._taken() from error
        self._held = os.fstat(descriptor)
        try:
            yield descriptor
        finally:
            self._held = None
            os.close(descriptor)

    def _taken(self) -> CrawlDirectoryError:
        """What to say to the second who wants it."""
        return CrawlDirectoryError(
            f"another crawl is running on {self.root}",
            hint="wait for it, or stop it with Ctrl-C; a second crawl takes a directory of its own",
        )

    def discard(self) -> None:
        """Take back a crawl that came to nothing: what was made for it, and nothing else."""
        learned = (self.duplicates, self.near, self.aliases)
        for folder in (
            self.frontier,
            self.warc,
            self.spool,
            *learned,
            self.rank,
            self.events,
            self.chain,
            self.plugins,
            self.takedowns,
        ):
            shutil.rmtree(folder, ignore_errors=True)
        logs = (self.catalogue.with_name(self.catalogue.name + end) for end in ("-wal", "-shm"))
        drafts = (self.figures, self.figures.with_name(self.figures.name + ".new"), self.changes)
        for path in (self.catalogue, self.indexed, *logs, *drafts, self.scope, self.root / CONFIG_NAME, self.marker):
            path.unlink(missing_ok=True)
        for folder in self._made:
            with suppress(OSError):  # somebody else has put something there meanwhile
                folder.rmdir()

    def _make(self) -> None:
        """Begin a crawl directory: the marker last, so that a crash leaves one that can be begun anew."""
        self._refuse_network_file_system()
        try:
            self._made = [folder for folder in (self.root, *self.root.parents) if not folder.exists()]
            self.root.mkdir(parents=True, exist_ok=True)
            if self.marker.exists():
                return
            draft = self.root / "nephila-crawl.new"
            ours = {self.warc.name, self.takedowns.name, draft.name, LOST_AND_FOUND}
            found = {path.name for path in self.root.iterdir()}
            if found - ours and self.marker.name not in found:
                raise CrawlDirectoryError(
                    f"{self.root} holds something else than a crawl", hint="choose an empty or a new directory"
                )
            self.warc.mkdir(exist_ok=True)
            self.is_new = self._mark(draft)
            LOCAL_DISK.sync_directory(self.root)
            for made in self._made:
                with suppress(PermissionError):  # one in which something may be made, and not be looked
                    LOCAL_DISK.sync_directory(made.parent)
        except FileExistsError as error:
            raise CrawlDirectoryError(
                f"{error.filename} is a file, not a directory", hint="choose another --out"
            ) from error
        except OSError as error:
            raise self._refused(error) from error

    def _mark(self, draft: Path) -> bool:
        """Put the marker there; False where somebody else has.

        The draft is locked meanwhile: a marker that is there may be held, and must never be replaced.
        """
        while True:
            with draft.open("a+b") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                if self.marker.exists():
                    if _is_at(stream.fileno(), draft):
                        draft.unlink()
                    return False
                if not _is_at(stream.fileno(), draft):
                    continue  # of somebody who has begun, and taken it back
                stream.truncate(0)
                stream.write(FORMAT.encode())
                stream.flush()
                os.fsync(stream.fileno())
                draft.replace(self.marker)
                return True

    def _refused(self, error: OSError) -> NephilaError:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StorageError(f"{self.root} cannot be written: the disk is full", hint="make room, and start again")
        return CrawlDirectoryError(
            f"{self.root} cannot be written: {error.strerror}", hint="mend its permissions, or choose another directory"
        )

    def _refuse_network_file_system(self) -> None:
        kind = file_system_of(self.root, self._mounts)
        if kind in NETWORK_FILE_SYSTEMS:
            raise CrawlDirectoryError(
                f"{self.root} is on a network file system ({kind}), where the frontier's locks cannot be trusted",
                hint="choose an --out on a local disk",
            )


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that is called so."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> None:
    """Take the lock; `status`, which looks whether a crawl runs, may hold it for a moment."""
    for attempt in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt == LOCK_TRIES - 1:
                raise
            time.sleep(LOCK_PAUSE_S)
        else:
            return


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system that a path is on, by the longest mount point above it; empty when unknown."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").rstrip("/") or "/"
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind

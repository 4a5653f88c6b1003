"""We misbehaving, or our user: a small tree of exceptions, each told to people in one sentence with what to do."""

from __future__ import annotations

import errno
import mmap


class NephilaError(Exception):
    """The root. `str(error)` is the sentence that a user sees; `hint` says what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(NephilaError):
    """What was asked for makes no sense: a bad flag, seed, pattern, configuration key."""

    exit_code = 2


class QueryError(UsageError):
    """A statement in SQL that cannot be run: misspelled, of a table that is not there, or not one that only reads."""


class CrawlDirectoryError(NephilaError):
    """The crawl directory cannot be used: in use, no crawl, another version, not writable, a network file system."""


class StorageError(NephilaError):
    """The disk or the archive refused: full, read-only, broken."""


class DirectoryGoneError(StorageError):
    """The crawl directory was taken away while a crawl ran in it."""


_REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EACCES: "mend its permissions",
    errno.EPERM: "mend its permissions",
    errno.EROFS: "mend its permissions",
    errno.ENOENT: "make the folder that it belongs in, or name another place",
    errno.ENOTDIR: "make the folder that it belongs in, or name another place",
    errno.EISDIR: "name a file, or move the folder away",
}


def remedy(error: OSError) -> str:
    """What to do where something could not be written."""
    return _REMEDIES.get(error.errno or 0, "see what is wrong with the disk")


class MemoryShortageError(NephilaError):
    """The machine, or a limit on this process, gives no more memory."""

    def __init__(self) -> None:
        super().__init__(
            "there is not enough memory to go on; what was stored is safe",
            hint="lower --concurrency or fetch.max_in_flight_bytes, or give it more, and start the same command again",
        )


SHORTAGE_BYTES = 4 << 20
"""A process that cannot have so much more is out of memory."""


def is_shortage(error: BaseException) -> bool:
    """Whether it comes of memory that ran out, which is not always a `MemoryError`.

    Where an import or a call finds no room, Python may forget to say so (`SystemError`), and a thread without a stack
    "can't start" (`RuntimeError`). Those are bugs unless there is indeed no more to be had.
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if not isinstance(error, (SystemError, RuntimeError)):
        return False
    try:  # not from what the C library has kept
        mmap.mmap(-1, SHORTAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


def leaves_all_as_it_is(error: Exception) -> bool:
    """Whether the crawl ends with it, as by a kill: what became of what was under way is found out when it goes on."""
    return isinstance(error, NephilaError) or is_shortage(error)


class FileShortageError(NephilaError):
    """The machine, or a limit on this process, lets no more files be open at once."""

    def __init__(self) -> None:
        super().__init__(
            "no more files may be open at once, and this needs more; what was stored is safe",
            hint="raise the limit, for example with ulimit -n 1024, and start the same command again",
        )


class UnsentError(StorageError):
    """A crawl came to its end, and part of its archive could not be uploaded yet."""


class FrontierError(NephilaError):
    """The frontier's engine refused: map full, corrupt, another version."""


class ObjectStoreError(StorageError):
    """The store of objects that the archive goes to did not do what it was asked for."""


class StoreAwayError(ObjectStoreError):
    """It does not answer, or asks to wait: the same may work later. It may have been done all the same."""


class StoreRefusedError(ObjectStoreError):
    """It refuses, and will until somebody changes something: credentials, permissions, the bucket, a clock."""


class ObjectExistsError(ObjectStoreError):
    """There is an object under this key already."""


class ObjectChangedError(ObjectStoreError):
    """The object that was to be replaced is not there any more, or is another one by now."""


class DatabaseAwayError(StorageError):
    """The database that the catalogue is in does not answer, or cannot just now: the same may work later."""


class DatabaseRefusedError(StorageError):
    """It refuses, and will until somebody changes something: credentials, permissions, a schema of another version."""


class StreamAwayError(StorageError):
    """The stream that messages go to does not answer, or cannot just now: the same may work later."""


class StreamRefusedError(StorageError):
    """It refuses, and will until somebody changes something: credentials, permissions, a name that is taken."""


class EngineAwayError(NephilaError):
    """A server that the workers of a fleet share does not answer, or cannot just now: the same may work later."""


class EngineLeftError(EngineAwayError):
    """It did not answer when somebody wanted an end, and is not waited for any more: an interruption."""

    exit_code = 130


class EngineRefusedError(NephilaError):
    """It refuses, and will until somebody changes something: credentials, permissions, a setting of its own."""
